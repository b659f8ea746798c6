package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/web"
)

// storeConfig says where the library is and how texts become vectors. It is part
// of every command that reads documents.
type storeConfig struct {
	placeConfig
	embedConfig
}

// embedConfig says how texts become vectors.
type embedConfig struct {
	EmbedModel    string `help:"Embedding model of an OpenAI-compatible endpoint; unset: the embedded one." placeholder:"NAME" group:"Store"`
	EmbedBaseURL  string `help:"Endpoint of the embedding model; unset: that of --base-url." placeholder:"URL" group:"Store"`
	EmbedParallel int    `help:"Requests to the embedding model under way at a time." default:"4" placeholder:"N" group:"Store"`
	EmbedRate     int    `help:"Requests to the embedding model in a minute; 0: as many as it lets through." default:"0" placeholder:"N" group:"Store"`
	endpointConfig
}

// readConfig says how files are read.
type readConfig struct {
	PDF string `help:"How PDF files are read: ${enum}. Auto is the best that is there; 'ibid doctor' says which." name:"pdf" enum:"auto,pdfium,pdftotext,go" default:"auto" placeholder:"KIND" group:"Store"`
	OCR string `help:"Languages of scans and pictures, as tesseract names them (eng+deu), or off to leave those out; unset: tesseract's own choice." name:"ocr" placeholder:"NAMES" group:"Store"`
}

// reader makes what reads the files. What it keeps for itself, it keeps in the
// data directory. Close it.
func (c readConfig) reader(data string) (*ingest.Reader, error) {
	r := &ingest.Reader{PDF: ingest.PDFOptions{Tier: c.PDF, Folder: data, Languages: c.OCR}}
	if err := r.PDF.Check(); err != nil {
		return nil, usageError("--pdf %s: %w", c.PDF, err)
	}
	return r, nil
}

// endpointConfig says how to reach an OpenAI-compatible endpoint.
type endpointConfig struct {
	BaseURL    string `help:"OpenAI-compatible endpoint." default:"https://api.openai.com/v1" placeholder:"URL" group:"Model"`
	APIKeyFile string `help:"File that holds the endpoint's key; unset: the variable OPENAI_API_KEY, which may be empty." name:"api-key-file" placeholder:"FILE" group:"Model"`

	FirstTokenTimeout time.Duration `help:"Longest wait for the first token of a reply, or for vectors: a slow machine reads a long prompt for minutes." default:"${first_token_timeout}" placeholder:"TIME" group:"Model"`
	IdleTimeout       time.Duration `help:"Longest wait for each further token." default:"${idle_timeout}" placeholder:"TIME" group:"Model"`
	ModelTimeout      time.Duration `help:"Longest wait for a whole reply, repeated requests included." default:"${model_timeout}" placeholder:"TIME" group:"Model"`

	prepare func(*http.Request) // adds headers to each request; nil adds none
}

// patience gives the defaults of the flags that bound the waits.
func patience() kong.Vars {
	return kong.Vars{
		"first_token_timeout": openai.DefaultFirstToken.String(),
		"idle_timeout":        openai.DefaultIdle.String(),
		"model_timeout":       openai.DefaultTotal.String(),
	}
}

// options say how to reach a model of the endpoint.
func (c endpointConfig) options(getenv func(string) string, model string) (openai.Options, error) {
	for _, t := range []struct {
		flag string
		set  time.Duration
	}{{"--first-token-timeout", c.FirstTokenTimeout}, {"--idle-timeout", c.IdleTimeout}, {"--model-timeout", c.ModelTimeout}} {
		if t.set <= 0 {
			return openai.Options{}, usageError("%s %s: give a time above 0, such as 90s or 5m", t.flag, t.set)
		}
	}
	key, err := c.apiKey(getenv)
	return openai.Options{
		BaseURL: c.BaseURL, Key: key, Model: model,
		FirstToken: c.FirstTokenTimeout, Idle: c.IdleTimeout, Total: c.ModelTimeout, Prepare: c.prepare,
	}, err
}

// modelConfig says how a question is answered. A model is used only when
// Model is set.
type modelConfig struct {
	Model         string        `help:"Model that writes answers; unset: answers are quoted from the documents." placeholder:"NAME" group:"Model"`
	GateModel     string        `help:"Model that judges passages; unset: that of --model." placeholder:"NAME" group:"Model"`
	RefineModel   string        `help:"Model for the steps after the first; unset: that of --model." placeholder:"NAME" group:"Model"`
	Gate          string        `help:"Who decides which passages are on topic: ${enum}. Auto is both with a model, else score." enum:"auto,score,model,both,off" default:"auto" placeholder:"KIND" group:"Model"`
	GateCalls     int           `help:"Passages of a question that a model may judge; 0: no limit." default:"12" placeholder:"N" group:"Model"`
	GateTokens    int           `help:"Tokens that judging a question may cost; 0: no limit." default:"0" placeholder:"N" group:"Model"`
	GateTime      time.Duration `help:"How long judging a question may take; 0s: no limit. What is not judged by then is decided by its score." default:"1m" placeholder:"TIME" group:"Model"`
	ContextTokens int           `help:"The model's context window, prompt and reply together." default:"4096" placeholder:"N" group:"Model"`
	StepTokens    int           `help:"Evidence for one step, in tokens, one whole passage at the least (1: passage by passage); 0: what the window holds." default:"0" placeholder:"N" group:"Model"`
	Prompts       string        `help:"Folder with prompt templates to use in place of the built-in ones." placeholder:"DIR" group:"Model"`
}

// rerankConfig says who orders the passages anew.
type rerankConfig struct {
	RerankModel   string `help:"Model of a /rerank endpoint (Cohere, Jina, vLLM, llama.cpp) that orders the best 50 passages anew; unset: none." placeholder:"NAME" group:"Model"`
	RerankBaseURL string `help:"Endpoint of the reranker; unset: that of --base-url." placeholder:"URL" group:"Model"`
}

// index says how to search, with the reranker if there is one.
func (c rerankConfig) index(e endpointConfig, getenv func(string) string) (o retrieve.Options, err error) {
	if c.RerankModel == "" {
		return o, nil
	}
	up, err := e.options(getenv, c.RerankModel)
	if err != nil {
		return o, err
	}
	up.BaseURL = cmp.Or(c.RerankBaseURL, up.BaseURL)
	if o.Reranker, err = openai.NewReranker(up); err != nil {
		return o, usageError("the reranker %s at %s (--rerank-base-url): %w", c.RerankModel, up.BaseURL, err)
	}
	return o, nil
}

// citeConfig says how answers are cited.
type citeConfig struct {
	Source string `help:"What counts as one source: ${enum}." enum:"document,page,section,url" default:"document" placeholder:"KIND"`
}

func (c citeConfig) citing() (cite.Options, error) {
	source, ok := cite.SourceByName(c.Source)
	if !ok {
		return cite.Options{}, usageError("--source %q is not known: document, page, section or url", c.Source)
	}
	support := cite.Support{Stem: retrieve.Stem, Sentences: ingest.Sentences}
	return cite.Options{Source: source, Find: support.Find, Join: support.Join}, nil
}

// scopeConfig narrows a question to a part of the library.
type scopeConfig struct {
	Collection string               `help:"Collection to ask; unset: all." placeholder:"NAME"`
	PathPrefix string               `help:"Only documents whose path in their folder begins so." placeholder:"PATH"`
	Format     string               `help:"Only documents of this format: markdown, html, pdf, text and so on." placeholder:"NAME"`
	Tag        []string             `help:"Only documents with this tag, by their own metadata; several: with all of them." placeholder:"TAG"`
	Author     string               `help:"Only documents by this author, by their own metadata; a part of the name will do." placeholder:"NAME"`
	Language   retrieve.LanguageTag `help:"Only documents in this language, by their own metadata: en, de-AT and so on." placeholder:"CODE"`
	Since      retrieve.Date        `help:"Only documents dated on or after this day, month or year, by their own metadata." placeholder:"DATE"`
	Until      retrieve.Date        `help:"Only documents dated on or before it." placeholder:"DATE"`
	TopK       int                  `help:"Passages to look at." default:"12" placeholder:"N"`
	Diversity  float64              `help:"How much unlikeness to the passages before counts against nearness to the question, 0 to below 1." default:"0" placeholder:"X"`
}

func (c scopeConfig) filter() retrieve.Filter {
	return retrieve.Filter{Collection: c.Collection, PathPrefix: c.PathPrefix, Format: c.Format, Tags: c.Tag, Author: c.Author, Language: c.Language, Since: c.Since, Until: c.Until}
}

func (c scopeConfig) check() error {
	if c.TopK < 1 {
		return usageError("--top-k %d: give the number of passages, 1 or more", c.TopK)
	}
	if !(c.Diversity >= 0 && c.Diversity < 1) {
		return usageError("--diversity %g: give a number from 0 to below 1", c.Diversity)
	}
	return nil
}

// maxQuestion is the longest question, in bytes, that is taken on any way in.
const maxQuestion = 16 << 10

// question joins the words of a command line into a question.
func question(words []string) (string, error) {
	q := strings.TrimSpace(strings.Join(words, " "))
	switch {
	case q == "":
		return "", usageError("the question is empty: put it behind the command, in quotes")
	case len(q) > maxQuestion:
		return "", usageError("the question has %d bytes, and at most %d are taken: ask a shorter one, and ingest long texts as documents", len(q), maxQuestion)
	}
	return q, nil
}

// A library is an opened store.
type library struct {
	*retrieve.Index
	store    retrieve.Store
	embedder retrieve.Embedder
	reader   *ingest.Reader // of those that ingest; else nil
}

// logConfig says what is logged.
type logConfig struct {
	LogLevel slog.Level `help:"Least level of what is logged on standard error: debug, info, warn or error." default:"info" placeholder:"LEVEL"`
}

func (c logConfig) logger(w io.Writer, asJSON bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.LogLevel}
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// openLibrary opens the store, and makes it if it is not there.
func openLibrary(ctx context.Context, c storeConfig, o retrieve.Options, s surroundings) (*library, error) {
	return openMeasured(ctx, c, o, s, func(e retrieve.Embedder) retrieve.Embedder { return e })
}

// openMeasured is openLibrary with an embedder around the one that it searches with.
func openMeasured(ctx context.Context, c storeConfig, o retrieve.Options, s surroundings, around func(retrieve.Embedder) retrieve.Embedder) (*library, error) {
	embedder, err := c.embedder(ctx, s.getenv)
	if err != nil {
		return nil, err
	}
	store, err := openStore(ctx, c.placeConfig, s)
	if err != nil {
		return nil, err
	}
	lib, err := newLibrary(ctx, c.placeConfig, store, around(embedder), o)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	lib.embedder = embedder
	return lib, nil
}

// newLibrary makes a library of an open store.
func newLibrary(ctx context.Context, place placeConfig, store retrieve.Store, embedder retrieve.Embedder, o retrieve.Options) (*library, error) {
	index, err := retrieve.NewIndex(ctx, store, embedder, o)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", place, err)
	}
	return &library{Index: index, store: store, embedder: embedder}, nil
}

// figures are the size of the store; that on the disk is told of a data
// directory alone.
func (l *library) figures(ctx context.Context, place placeConfig) (f web.StoreFigures, err error) {
	f.Bytes, f.ReaderDeaths = -1, l.reader.Deaths()
	f.Documents, f.Chunks, err = retrieve.Count(ctx, l.store, retrieve.Filter{})
	if err != nil || place.remote() {
		return f, err
	}
	entries, err := os.ReadDir(place.Data)
	if err != nil {
		return f, fmt.Errorf("looking at the size of the store: %w", err)
	}
	f.Bytes = 0
	for _, e := range entries {
		// One that is gone takes no room.
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			f.Bytes += info.Size()
		}
	}
	return f, nil
}

func (l *library) close() error {
	if l.reader != nil {
		l.reader.Close()
	}
	return l.store.Close()
}

// embedder makes the embedded model, or the client of a remote one.
func (c embedConfig) embedder(ctx context.Context, getenv func(string) string) (retrieve.Embedder, error) {
	if c.EmbedModel == "" {
		return embed.New()
	}
	o, err := c.options(getenv, c.EmbedModel)
	if err != nil {
		return nil, err
	}
	o.BaseURL = cmp.Or(c.EmbedBaseURL, c.BaseURL)
	if c.EmbedParallel < 0 || c.EmbedRate < 0 {
		return nil, usageError("--embed-parallel and --embed-rate count requests: give 0 or more")
	}
	o.Parallel, o.PerMinute, o.Patience = c.EmbedParallel, c.EmbedRate, embedPatience
	m, err := openai.NewEmbedder(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("trying the embedding model %s at %s (--embed-base-url): %w", c.EmbedModel, o.BaseURL, err)
	}
	return m, nil
}

// embedPatience is how often a request for vectors is made again because the
// endpoint said when to come back: an ingest has time.
const embedPatience = 10

// apiKey reads the endpoint's key. Secrets come from a file or the
// environment, never from the command line, where other users can read them.
func (c endpointConfig) apiKey(getenv func(string) string) (string, error) {
	if c.APIKeyFile == "" {
		return strings.TrimSpace(getenv("OPENAI_API_KEY")), nil
	}
	b, err := os.ReadFile(c.APIKeyFile)
	if err != nil {
		return "", fmt.Errorf("reading the key for the model's endpoint: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// answerer puts together what answers questions.
func (l *library) answerer(c modelConfig, e endpointConfig, getenv func(string) string) (*answer.Answerer, error) {
	a, err := newAnswerer(c, e, getenv)
	if err != nil {
		return nil, err
	}
	a.Retriever, a.Embedder = l.Index, l.embedder
	return a, nil
}

// newAnswerer puts together what answers without a search.
func newAnswerer(c modelConfig, e endpointConfig, getenv func(string) string) (*answer.Answerer, error) {
	a := &answer.Answerer{
		Gate:          answer.GateKind(strings.TrimPrefix(c.Gate, "auto")),
		ContextTokens: c.ContextTokens,
		StepTokens:    c.StepTokens,
		JudgeCalls:    cmp.Or(c.GateCalls, -1),
		JudgeTokens:   c.GateTokens,
		JudgeTime:     cmp.Or(c.GateTime, -1),
	}
	if c.GateCalls < 0 || c.GateTokens < 0 || c.GateTime < 0 {
		return nil, usageError("--gate-calls, --gate-tokens and --gate-time are budgets: give 0, for no limit, or more")
	}
	if c.ContextTokens < 0 || c.StepTokens < 0 {
		return nil, usageError("--context-tokens and --step-tokens count tokens: give 0 or more")
	}
	if c.Prompts != "" {
		if info, err := os.Stat(c.Prompts); err != nil || !info.IsDir() {
			return nil, usageError("--prompts %s is no folder", c.Prompts)
		}
		dir, err := filepath.Abs(c.Prompts)
		if err != nil {
			return nil, fmt.Errorf("finding the prompts folder %s: %w", c.Prompts, err)
		}
		prompts, err := answer.ParsePrompts(os.DirFS(dir))
		if err != nil {
			return nil, fmt.Errorf("reading the prompts in %s: %w", dir, err)
		}
		a.Prompts = prompts
	}
	if c.Model == "" {
		if c.GateModel != "" || c.RefineModel != "" || c.Gate == "model" || c.Gate == "both" {
			return nil, usageError("--gate-model, --refine-model and the gates 'model' and 'both' need a model: set --model too")
		}
		return a, nil
	}
	o, err := e.options(getenv, "")
	if err != nil {
		return nil, err
	}
	o.ContextTokens = c.ContextTokens
	for _, m := range []struct {
		name string
		to   *answer.Model
	}{{c.Model, &a.Model}, {c.GateModel, &a.GateModel}, {c.RefineModel, &a.RefineModel}} {
		if m.name == "" {
			continue
		}
		o.Model = m.name
		client, err := openai.New(o)
		if err != nil { // nothing has been asked yet: it is the options that are wrong
			return nil, usageError("--base-url %s, --model %s: %w", e.BaseURL, m.name, err)
		}
		*m.to = client
	}
	if isNear(e.BaseURL) {
		a.Parallel = nearParallel
	}
	return a, nil
}

// nearParallel is how many judge calls a server on this machine or beside it
// is given at a time: as many as Ollama works on at once.
const nearParallel = 4

// isNear tells whether a server stands on this machine or in its own network,
// where a model has one small machine and not a data centre.
func isNear(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal")
}

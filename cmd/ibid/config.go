package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"ibid/answer/openai"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/web"
)

// This file has every group of settings that commands share. A setting is a
// field with a help tag: its flag is --foo-bar and its variable IBID_FOO_BAR.
// To add one, add the field here or to its command, use it there, and run
// 'go generate ./cmd/ibid' for CONFIGURATION.md.

// storeConfig selects the library and the embedder. Every command that reads
// documents has it.
type storeConfig struct {
	placeConfig
	indexConfig
	embedConfig
}

type placeConfig struct {
	Data              string   `help:"Data directory: the folder with the library." default:"${data}" placeholder:"DIR" group:"Store"`
	Store             storeURL `help:"@store" placeholder:"URL" group:"Store"`
	StorePasswordFile string   `help:"File with the password of --store; default: $IBID_STORE_PASSWORD." placeholder:"FILE" group:"Store"`

	StoreWait time.Duration `help:"How long to wait for a database that restarts." default:"5m" placeholder:"DURATION" group:"Store"`

	index indexConfig // for commands that use the search index
}

type indexConfig struct {
	Index        indexURL `help:"@index" placeholder:"URL" group:"Store"`
	IndexKeyFile string   `help:"File with the API key of --index; default: $IBID_INDEX_KEY." placeholder:"FILE" group:"Store"`
}

func (c storeConfig) place() placeConfig { return c.placeConfig.indexedBy(c.indexConfig) }

func (c placeConfig) indexedBy(i indexConfig) placeConfig {
	c.index = i
	return c
}

// AfterApply moves a data directory given as --store to Data.
func (c *placeConfig) AfterApply() error { return c.Store.replaceDir(&c.Data) }

type embedConfig struct {
	EmbedModel string `help:"Embedding model at an OpenAI-compatible endpoint; default: the built-in one." placeholder:"NAME" group:"Store"`

	EmbedBaseURL  string `help:"Endpoint of the embedding model; default: --base-url." placeholder:"URL" group:"Store"`
	EmbedParallel int    `help:"Concurrent requests to the embedding model." default:"4" placeholder:"N" group:"Store"`
	endpointConfig
}

type readConfig struct {
	OCR string `help:"@ocr" name:"ocr" placeholder:"NAMES" group:"Store"`
}

// reader returns the reader of files, which has its caches in the data
// directory. The caller closes it.
func (c readConfig) reader(data string) *ingest.Reader {
	return &ingest.Reader{PDF: ingest.PDFOptions{Helped: true, Folder: data, Languages: c.OCR}}
}

type syncConfig struct {
	Collection string   `help:"Collection of the folders." default:"${default_collection}" placeholder:"NAME"`
	Include    []string `help:"Read only files that match a pattern as in .gitignore: '*.md', 'manuals/'." placeholder:"GLOB"`
	Exclude    []string `help:"Skip files and folders that match a pattern, as in .gitignore." placeholder:"GLOB"`
}

type crawlConfig struct {
	FetchPrivate bool `help:"Also fetch web pages from private addresses and on any port."`
	MaxPages     int  `help:"Largest number of pages to read from a web site." default:"${max_pages}" placeholder:"N"`
	MaxDepth     int  `help:"Depth to which links of a web site are followed." default:"${max_depth}" placeholder:"N"`
}

func (c syncConfig) check() error {
	for _, pattern := range slices.Concat(c.Include, c.Exclude) {
		if err := ingest.CheckGlob(pattern); err != nil {
			return usageError("--include, --exclude: %w", err)
		}
	}
	return nil
}

type endpointConfig struct {
	BaseURL    string `help:"OpenAI-compatible endpoint." default:"https://api.openai.com/v1" placeholder:"URL" group:"Model"`
	APIKeyFile string `help:"File with the endpoint's key; default: $OPENAI_API_KEY." name:"api-key-file" placeholder:"FILE" group:"Model"`

	FirstTokenTimeout time.Duration `help:"Time limit for the first token or vectors." default:"${first}" placeholder:"TIME" group:"Model"`
	IdleTimeout       time.Duration `help:"Time limit for each further token." default:"${idle}" placeholder:"TIME" group:"Model"`
	ModelTimeout      time.Duration `help:"Time limit for a reply, retries included." default:"${total}" placeholder:"TIME" group:"Model"`

	// NoVariable is set if the key in the environment variable is for another endpoint.
	NoVariable bool `kong:"-"`
}

func (c endpointConfig) options(getenv func(string) string, model string) (openai.Options, error) {
	for _, t := range []struct {
		flag string
		set  time.Duration
	}{{"--first-token-timeout", c.FirstTokenTimeout}, {"--idle-timeout", c.IdleTimeout}, {"--model-timeout", c.ModelTimeout}} {
		if t.set <= 0 {
			return openai.Options{}, usageError("%s %s: give a time above 0, such as 90s or 5m", t.flag, t.set)
		}
	}
	variable := getenv("OPENAI_API_KEY")
	if c.NoVariable {
		variable = ""
	}
	key, err := secretFrom(c.APIKeyFile, variable, "the key for the model's endpoint")
	return openai.Options{
		BaseURL: c.BaseURL, Key: key, Model: model,
		FirstToken: c.FirstTokenTimeout, Idle: c.IdleTimeout, Total: c.ModelTimeout,
	}, err
}

// modelConfig selects how questions are answered. Without Model, the model chosen on the page
// is used, if any.
type modelConfig struct {
	Model         string        `help:"Model that writes answers; default: none, documents are quoted." placeholder:"NAME" group:"Model"`
	GateModel     string        `help:"Model that judges passages; default: --model." placeholder:"NAME" group:"Model"`
	RefineModel   string        `help:"Model for the steps after the first; default: --model." placeholder:"NAME" group:"Model"`
	Gate          string        `help:"@gate" enum:"auto,score,model,both,off" default:"auto" placeholder:"KIND" group:"Model"`
	GateCalls     int           `help:"@gate_calls" default:"12" placeholder:"N" group:"Model"`
	GateTokens    int           `help:"@gate_tokens" default:"8000" placeholder:"N" group:"Model"`
	GateTime      time.Duration `help:"@gate_time" default:"1m" placeholder:"TIME" group:"Model"`
	Unproved      string        `help:"@unproved" enum:"drop,mark,off" default:"drop" placeholder:"HOW" group:"Model"`
	Confidence    float64       `help:"@confidence" default:"${confidence}" placeholder:"X" group:"Model"`
	NoFallback    bool          `help:"Report an error when the model gives no answer, instead of quoting sentences." group:"Model"`
	NoSelfTest    bool          `help:"Trust the model without first testing it on a few questions." group:"Model"`
	ContextTokens int           `help:"The model's context window: prompt and reply together." default:"4096" placeholder:"N" group:"Model"`
	BudgetTokens  int           `help:"@budget" default:"8000" placeholder:"N" group:"Model"`
	StepTokens    int           `help:"Tokens of passages per step; 0: as many as fit." default:"0" placeholder:"N" group:"Model"`
	Prompts       string        `help:"Folder with prompt templates that replace the built-in ones." placeholder:"DIR" group:"Model"`

	AnswerLanguage string `help:"Language of the model's answers, such as German; default: the question's." placeholder:"NAME" group:"Model"`
	AnswerStyle    string `help:"Form of the model's answers: ${enum}." enum:"auto,brief,detailed,list" default:"auto" group:"Model"`
}

type rerankConfig struct {
	RerankModel   string `help:"Model of a /rerank endpoint to reorder the best 50 passages; default: none." placeholder:"NAME" group:"Model"`
	RerankBaseURL string `help:"Endpoint of the reranker; default: --base-url." placeholder:"URL" group:"Model"`
	Exact         bool   `help:"Compare the question with every chunk, even if there are more than two million; slower." group:"Store"`
}

type citeConfig struct {
	Source string `help:"What counts as one source: ${enum}." enum:"document,page,section,url" default:"document" placeholder:"KIND"`
	// Off by default, since a document can name any address.
	LinkDocuments bool `help:"Link sources to the address that a document declares for itself, except for uploads."`
}

func (c citeConfig) options() cite.Options {
	source, _ := cite.SourceByName(c.Source) // the flag allows only known sources
	return cite.Options{Source: source, LinkDocuments: c.LinkDocuments}
}

type scopeConfig struct {
	Collection string               `help:"Collection to ask; default: all." placeholder:"NAME"`
	PathPrefix string               `help:"Only documents whose path in their folder has this prefix." placeholder:"PATH"`
	Format     string               `help:"Only documents of this format: markdown, html, pdf, text and so on." placeholder:"NAME"`
	Tag        []string             `help:"Only documents with all of these tags in their metadata." placeholder:"TAG"`
	Author     string               `help:"Only documents whose metadata names this author; a partial name is enough." placeholder:"NAME"`
	Language   retrieve.LanguageTag `help:"Only documents whose metadata names this language: en, de-AT and so on." placeholder:"CODE"`
	Since      retrieve.Date        `help:"Only documents dated on or after this day, month or year." placeholder:"DATE"`
	Until      retrieve.Date        `help:"Only documents dated on or before this day, month or year." placeholder:"DATE"`
	TopK       int                  `help:"Passages to read first; more if they contain no answer." default:"12" placeholder:"N"`
}

func (c scopeConfig) filter() retrieve.Filter {
	return retrieve.Filter{
		Collection: c.Collection, PathPrefix: c.PathPrefix, Format: c.Format, Tags: c.Tag,
		Author: c.Author, Language: c.Language, Since: c.Since, Until: c.Until,
	}
}

// maxQuestion is the maximum length of a question, in bytes.
const maxQuestion = 16 << 10

// question returns words as one question, or an error if the question or --top-k is invalid.
func (c scopeConfig) question(words []string) (string, error) {
	q := strings.TrimSpace(strings.Join(words, " "))
	switch {
	case c.TopK < 1:
		return "", usageError("--top-k %d: give the number of passages, 1 or more", c.TopK)
	case q == "":
		return "", usageError("the question is empty: put it after the command, in quotes")
	case len(q) > maxQuestion:
		return "", usageError("the question has %d bytes, and the limit is %d: ask a shorter one, and ingest long texts as documents",
			len(q), maxQuestion)
	}
	return q, nil
}

type authConfig struct {
	Auth       string   `help:"@auth" enum:"auto,on,off" default:"auto" placeholder:"KIND" group:"Server"`
	NoAuth     bool     `help:"Same as --auth off: everyone who reaches the server can read every document." group:"Server"`
	Rate       int      `help:"Questions and searches per minute for each key, or each address." default:"600" placeholder:"N" group:"Server"`
	UserRate   int      `help:"Questions and searches per minute for each user." default:"60" placeholder:"N" group:"Server"`
	TrustProxy []string `help:"Address or network of a proxy whose X-Forwarded-For is trusted; repeatable." placeholder:"CIDR" group:"Server"`

	AuthHeader       string   `help:"@auth_header" placeholder:"NAME" group:"Server"`
	AuthGroupsHeader string   `help:"@auth_groups" default:"X-Forwarded-Groups" placeholder:"NAME" group:"Server"`
	AuthGroup        []string `help:"@auth_group" placeholder:"GROUP=KIND:COLLECTION" sep:"none" group:"Server"`
	CORSOrigin       []string `help:"@origin" name:"cors-origin" placeholder:"ORIGIN" group:"Server"`
}

func (c authConfig) check() error {
	if c.NoAuth && c.Auth == "on" {
		return usageError("--no-auth and --auth on contradict each other: give one of them")
	}
	if c.Rate < 1 || c.UserRate < 1 {
		return usageError("--rate %d, --user-rate %d: give the questions per minute, 1 or more", c.Rate, c.UserRate)
	}
	for _, origin := range c.CORSOrigin {
		if err := web.CheckOrigin(origin); err != nil {
			return usageError("--cors-origin: %w", err)
		}
	}
	_, err := c.proxies()
	return errors.Join(err, c.checkSignIn())
}

// checkSignIn refuses --auth-header without the flags that make it safe and useful.
func (c authConfig) checkSignIn() error {
	switch {
	case c.AuthHeader == "" && len(c.AuthGroup) == 0:
		return nil
	case c.AuthHeader == "":
		return usageError("--auth-group needs --auth-header: the header in which a proxy names the signed-in user")
	case len(c.TrustProxy) == 0:
		return usageError("--auth-header without --trust-proxy would let everybody claim any name: give the address of the proxy")
	case c.NoAuth || c.Auth == "off":
		return usageError("--auth-header and --no-auth contradict each other: give one of them")
	case len(c.AuthGroup) == 0:
		return usageError("--auth-header without --auth-group admits nobody: give --auth-group staff=read:handbook, or '*=read:*' for all " +
			"who sign in")
	}
	_, err := c.signIn()
	return err
}

// signIn returns the headers in which proxies name people, or nil if none are configured.
func (c authConfig) signIn() (*web.SignIn, error) {
	if c.AuthHeader == "" {
		return nil, nil
	}
	s := &web.SignIn{User: c.AuthHeader, Groups: c.AuthGroupsHeader}
	for _, group := range c.AuthGroup {
		g, err := web.ParseGrant(group)
		if err != nil {
			return nil, usageError("--auth-group %q: %w", group, err)
		}
		s.Grants = append(s.Grants, g)
	}
	if err := s.Check(); err != nil {
		return nil, usageError("--auth-header: %w", err)
	}
	return s, nil
}

func (c authConfig) proxies() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, s := range c.TrustProxy {
		p, err := netip.ParsePrefix(s)
		if a, notOne := netip.ParseAddr(s); err != nil && notOne == nil {
			p, err = a.Unmap().Prefix(a.Unmap().BitLen())
		}
		if err != nil || p.Addr().Is4In6() {
			return nil, usageError("--trust-proxy %q is not an address or network: give 10.0.0.7 or 10.0.0.0/24", s)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

type logConfig struct {
	LogLevel slog.Level `help:"Lowest level that is logged to standard error: debug, info, warn or error." default:"info" placeholder:"LEVEL"`
}

// secretFrom returns the secret in a file, or the value of its variable. Secrets are never on
// the command line, which other users of the machine can read.
func secretFrom(file, variable, what string) (string, error) {
	if file == "" {
		return strings.TrimSpace(variable), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", what, err)
	}
	return strings.TrimSpace(string(b)), nil
}

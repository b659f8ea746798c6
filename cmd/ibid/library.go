package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/prompt"
	"ibid/answer/trial"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/disk"
	"ibid/retrieve/embed"
	"ibid/retrieve/embed/encoder"
	"ibid/retrieve/library"
	"ibid/retrieve/state"
	"ibid/web"
)

// An openedLibrary is an open library with everything else that commands need.
type openedLibrary struct {
	*library.Library
	place    placeConfig
	embedder retrieve.Embedder
	encoders []*encoder.Model              // open encoders: the one in use and earlier ones
	changing sync.Mutex                    // held to change the encoder
	reader   *ingest.Reader                // nil for commands that read no files
	damaged  []state.Damage                // found when the library was opened
	encoded  atomic.Pointer[encodedChunks] // nil before they are counted
	indexed  atomic.Int64                  // last known revision of an index in a cluster; 0 if unknown
	surroundings
}

// openLibrary opens the library, and creates it if it does not exist.
func openLibrary(ctx context.Context, c storeConfig, o retrieve.Options, s surroundings) (*openedLibrary, error) {
	embedder, err := c.embedder(ctx, s.getenv)
	if err != nil {
		return nil, err
	}
	store, err := openStore(ctx, c.placeConfig, s)
	if err != nil {
		return nil, err
	}
	return c.openOver(ctx, store, embedder, o, s)
}

// openAnswerer opens the library and its answerer, with the models chosen by flags or on the
// page.
func openAnswerer(ctx context.Context, c storeConfig, r rerankConfig, m modelConfig, s surroundings) (
	lib *openedLibrary, a *answer.Answerer, err error) {
	options, err := r.index(c.endpointConfig, s.getenv)
	if err != nil {
		return nil, nil, err
	}
	if lib, err = openLibrary(ctx, c, options, s); err != nil {
		return nil, nil, err
	}
	m, e, err := s.chooseFrom(ctx, lib.State, c.Data, m, c.endpointConfig)
	if err == nil {
		a, err = lib.answerer(ctx, m, e)
	}
	if err == nil && m.Model != "" && !m.NoSelfTest {
		var r trial.Result
		var known bool
		if r, known, err = lib.trialResult(ctx, m, e); known {
			a.Trust = func() (answer.Trust, func()) { return r.Trust(), func() {} }
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, lib.close())
	}
	return lib, a, nil
}

// openOver returns the library of an open store, with the encoder if installed. Closing it
// closes both. On failure it closes the store.
func (c storeConfig) openOver(ctx context.Context, store *state.Store, embedder retrieve.Embedder, o retrieve.Options, s surroundings) (
	*openedLibrary, error) {
	l := &openedLibrary{place: c.place(), embedder: embedder, surroundings: s}
	encoder, err := c.encoder()
	if encoder != nil {
		o.Encoder, l.encoders = encoder, append(l.encoders, encoder)
	} else if err != nil {
		err = fmt.Errorf("searching without the encoder: %w", err)
	}
	if err != nil {
		s.printMessage("%v", err)
	}
	o.Rebuilding = newProgress(s.stderr, "documents in the search index")
	o.Damaged = func(err error) { s.printMessage("%v; it is rebuilt from the library", err) }
	o.Unwritten = func(err error) { s.printMessage("%v; the next search rebuilds the rest", err) }
	o.Feeding = func(err error) {
		if err == nil {
			s.printMessage("the search index at %s is being updated again", l.place.index.Index)
			return
		}
		s.printMessage("updating the search index at %s failed; documents are still stored: %v", l.place.index.Index, err)
	}
	at, err := l.place.open(s)
	if err == nil {
		l.damaged, err = store.ListDamage(ctx)
	}
	if err == nil {
		if l.Library, err = library.OpenWithState(ctx, at, store, embedder, o); err != nil {
			err = fmt.Errorf("opening %s: %w", l.place, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, store.Close(), l.closeEncoders())
	}
	return l, nil
}

// changeEncoder switches to the best installed encoder and returns its name, or "" if it is
// already in use. Earlier encoders remain open, since answers may be using them.
func (l *openedLibrary) changeEncoder(ctx context.Context, c storeConfig) (name string, err error) {
	l.changing.Lock()
	defer l.changing.Unlock()
	m, err := c.encoder()
	if m == nil {
		return "", err
	}
	if used := l.Encoder(); used != nil && used.Space() == m.Space() {
		return "", m.Close()
	}
	l.encoders = append(l.encoders, m)
	l.encoded.Store(nil)
	return m.Name, errors.Join(err, l.ChangeEncoder(ctx, m))
}

func (l *openedLibrary) closeEncoders() (err error) {
	for _, m := range l.encoders {
		err = errors.Join(err, m.Close())
	}
	return err
}

// newProgress returns a function that shows the progress of a task, unless the task ends at once.
func newProgress(stderr io.Writer, what string) func(done, total int) {
	var shown *meter
	return func(done, total int) {
		if shown == nil && done >= total {
			return
		}
		if shown == nil {
			shown = newMeter(stderr, what, total)
		}
		shown.update(done, total)
		if done >= total {
			shown.clear()
			shown = nil
		}
	}
}

// writers returns how many documents to store concurrently: with a database server, storing is
// mostly waiting.
func (l *openedLibrary) writers() int {
	if l.place.remote() {
		return 4
	}
	return 1
}

// followIndex brings the search index up to date, so that the next question does not wait for
// it. A lagging index in a cluster is no error: the documents are stored.
func (l *openedLibrary) followIndex(ctx context.Context) error {
	err := l.Follow(ctx)
	if err == nil || ctx.Err() != nil || l.place.index.Index.cluster == nil {
		return err
	}
	l.printMessage("%v; the next server or command continues the update", err)
	return nil
}

func (l *openedLibrary) figures(ctx context.Context) (f web.StoreFigures, err error) {
	f.Bytes, f.Lag, f.ReaderDeaths = -1, -1, l.reader.Deaths()
	f.Documents, f.Chunks, err = l.State.Count(ctx, retrieve.Filter{})
	if l.Clustered != nil {
		now, _, failed := l.State.Revision(ctx)
		lag, unreachable := l.Clustered.Lag(ctx)
		if unreachable == nil {
			l.indexed.Store(now - lag)
		}
		if known := l.indexed.Load(); failed == nil && known > 0 { // the lag grows while the cluster is unreachable
			f.Lag = now - known
		}
	}
	if err == nil && !l.place.remote() {
		f.Bytes = folderBytes(l.place.Data)
	}
	return f, err
}

// encodedChunks returns how many of the chunks are encoded. Both results are 0 without an
// encoder, or until the number is known.
func (l *openedLibrary) encodedChunks() (done, total int) {
	if e := l.encoded.Load(); e != nil {
		return e.done, e.total
	}
	return 0, 0
}

// folderBytes returns the size of the files in a folder, without its subfolders. Unreadable
// files do not count.
func folderBytes(dir string) (bytes int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
	}
	return bytes
}

func (l *openedLibrary) checkReachable(ctx context.Context) error {
	_, _, err := l.State.Revision(ctx)
	if err == nil && l.place.Data != "" {
		err = cmp.Or(l.State.CheckRoom(), checkSpace(l.place.Data))
	}
	if err == nil && l.Clustered != nil {
		err = l.Clustered.Searchable(ctx)
	}
	return err
}

// leastFree is the space that a small upload may need: its file, its documents, and the log of
// the database.
const leastFree = 2 << 20

// checkSpace returns an error if the disk of a folder is full. An unknown size is no error,
// since the folder can still be searched.
func checkSpace(dir string) error {
	if free, err := disk.Free(dir); err == nil && free < leastFree {
		return fmt.Errorf("the disk of %s is full: free space on it: %w", dir, syscall.ENOSPC)
	}
	return nil
}

func (l *openedLibrary) close() error {
	if l.reader != nil {
		l.reader.Close()
	}
	found, err := l.State.ListDamage(context.Background())
	for _, d := range found {
		if !slices.Contains(l.damaged, d) {
			l.printMessage("damage in %s: %s", l.place, damageLine(d))
		}
	}
	return errors.Join(err, l.Library.Close(), l.closeEncoders())
}

// filterFlags returns the flags that set a filter.
func filterFlags(f retrieve.Filter) (flags []string) {
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"--path-prefix", f.PathPrefix != ""}, {"--format", f.Format != ""}, {"--tag", len(f.Tags) > 0}, {"--author", f.Author != ""},
		{"--language", f.Language != ""}, {"--since", f.Since != ""}, {"--until", f.Until != ""},
	} {
		if flag.set {
			flags = append(flags, flag.name)
		}
	}
	return flags
}

// refuseEmpty explains what to do if there is nothing to ask.
func (l *openedLibrary) refuseEmpty(ctx context.Context, f retrieve.Filter) error {
	if any, err := l.Holds(ctx, f); err != nil || any {
		return err
	}
	if collection := (retrieve.Filter{Collection: f.Collection}); !f.Equal(collection) {
		if err := l.refuseEmpty(ctx, collection); err != nil {
			return err
		}
		return fmt.Errorf("no document in %s matches %s: change or omit a filter", l.place, strings.Join(filterFlags(f), ", "))
	}
	if f.Collection != "" {
		return fmt.Errorf("the collection %q in %s has no documents: ingest a folder with 'ibid ingest --collection %s FOLDER'",
			f.Collection, l.place, f.Collection)
	}
	if len(l.damaged) > 0 {
		return &exitError{exitDamage,
			fmt.Errorf("all documents in %s are damaged: ingest the folders again", l.place)}
	}
	return fmt.Errorf("nothing has been ingested into %s yet: run 'ibid ingest FOLDER' first", l.place)
}

// builtIn returns the built-in model, which a process loads once.
var builtIn = sync.OnceValues(embed.New)

func (c embedConfig) embedder(ctx context.Context, getenv func(string) string) (retrieve.Embedder, error) {
	if c.EmbedModel == "" {
		return builtIn()
	}
	o, err := c.options(getenv, c.EmbedModel)
	if err != nil {
		return nil, err
	}
	o.BaseURL = cmp.Or(c.EmbedBaseURL, c.BaseURL)
	if c.EmbedParallel < 0 {
		return nil, usageError("--embed-parallel counts requests: give 0 or more")
	}
	o.Parallel = c.EmbedParallel
	m, err := openai.NewEmbedder(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("testing the embedding model %s at %s (--embed-base-url): %w", c.EmbedModel, o.BaseURL, err)
	}
	return m, nil
}

// index returns the options of searches, with the reranker if configured.
func (c rerankConfig) index(e endpointConfig, getenv func(string) string) (o retrieve.Options, err error) {
	o.Exact = c.Exact
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

// answerer returns the answerer for questions about the library.
func (l *openedLibrary) answerer(ctx context.Context, c modelConfig, e endpointConfig) (*answer.Answerer, error) {
	a, err := newAnswerer(c, e, l.getenv)
	if err != nil {
		return nil, err
	}
	a.Retriever, a.Embedder, a.Encoder = l.Index, l.embedder, l.Encoder
	return a, l.rememberAbilities(ctx, a, c, e)
}

func newAnswerer(c modelConfig, e endpointConfig, getenv func(string) string) (*answer.Answerer, error) {
	if err := c.checkModel(); err != nil {
		return nil, err
	}
	a := &answer.Answerer{
		Gate:          answer.GateKind(c.Gate),
		Unproved:      answer.Unproved(c.Unproved),
		NoFallback:    c.NoFallback,
		Confidence:    cmp.Or(c.Confidence, -1),
		ContextTokens: c.ContextTokens,
		StepTokens:    c.StepTokens,
		BudgetTokens:  c.BudgetTokens,
		JudgeCalls:    cmp.Or(c.GateCalls, -1),
		JudgeTokens:   cmp.Or(c.GateTokens, -1),
		JudgeTime:     cmp.Or(c.GateTime, -1),
		Style:         c.styleRules(),
		Translations:  &answer.Translations{},
	}
	if c.Prompts != "" {
		dir, err := filepath.Abs(c.Prompts)
		if err != nil {
			return nil, fmt.Errorf("finding the prompts folder %s: %w", c.Prompts, err)
		}
		if a.Prompts, err = prompt.Parse(os.DirFS(dir)); err != nil {
			return nil, fmt.Errorf("reading the prompts in %s: %w", dir, err)
		}
	}
	if c.Model == "" {
		return a, nil
	}
	o, err := e.options(getenv, "")
	if err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name string
		to   *answer.Model
	}{{c.Model, &a.Model}, {c.GateModel, &a.GateModel}, {c.RefineModel, &a.RefineModel}} {
		if m.name == "" {
			continue
		}
		o.Model = m.name
		client, err := openai.New(o)
		if err != nil { // no request was sent: the options are wrong
			return nil, usageError("--base-url %s, --model %s: %w", e.BaseURL, m.name, err)
		}
		*m.to = client
	}
	if isNear(e.BaseURL) {
		a.Parallel = nearParallel
	}
	return a, nil
}

func (c modelConfig) checkModel() error {
	if c.GateCalls < 0 || c.GateTokens < 0 || c.GateTime < 0 {
		return usageError("--gate-calls, --gate-tokens and --gate-time are budgets: give 0, for no limit, or more")
	}
	if !(c.Confidence >= 0 && c.Confidence <= 1) {
		return usageError("--confidence %g is not between 0 and 1", c.Confidence)
	}
	if c.ContextTokens < 0 || c.StepTokens < 0 || c.BudgetTokens < 0 {
		return usageError("--context-tokens, --step-tokens and --budget-tokens count tokens: give 0 or more")
	}
	if c.ContextTokens > 0 && c.ContextTokens < answer.LeastBudget {
		return usageError("--context-tokens %d has no room for a question and a passage: give the model's context window, %d or more",
			c.ContextTokens, answer.LeastBudget)
	}
	if c.BudgetTokens > 0 && c.BudgetTokens < answer.LeastBudget {
		return usageError("--budget-tokens %d has no room for a question and a passage: give %d or more, or 0 for no limit",
			c.BudgetTokens, answer.LeastBudget)
	}
	if info, err := os.Stat(c.Prompts); c.Prompts != "" && (err != nil || !info.IsDir()) {
		return usageError("--prompts %s is not a folder", c.Prompts)
	}
	if c.Model == "" && (c.GateModel != "" || c.RefineModel != "" || c.Gate == "model" || c.Gate == "both") {
		return usageError("--gate-model, --refine-model and the gates 'model' and 'both' need a model: " +
			"add --model NAME (and --base-url URL, if it is not OpenAI's)")
	}
	return nil
}

// nearParallel is the number of concurrent judge calls to a server in the local network. Ollama
// processes as many at once.
const nearParallel = 4

// isNear reports whether a server is on this machine or in the local network, where models
// usually run on one small machine.
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

// originals reads the files that documents were read from, and draws their pages.
type originals struct {
	lib    *openedLibrary
	data   string // the data directory with the uploaded files
	shared bool   // other servers may have the files of folders
}

// CanDraw reports whether pages of documents of this format can be drawn.
func (o *originals) CanDraw(ctx context.Context, format string) bool {
	if format != "pdf" {
		return false
	}
	from, _ := o.lib.reader.PDFium()
	return from != ""
}

// DrawPage returns a PNG of a page with a quote marked.
func (o *originals) DrawPage(ctx context.Context, doc *ingest.Document, page int, quote string, width int) ([]byte, error) {
	data, err := o.Original(ctx, doc)
	if err != nil {
		return nil, err
	}
	image, err := o.lib.reader.DrawPage(ctx, data, page, quote, width)
	if err != nil {
		return nil, err
	}
	return image.PNG, nil
}

// Original returns the file that a document was read from.
func (o *originals) Original(ctx context.Context, doc *ingest.Document) ([]byte, error) {
	if data, err := o.storedFile(ctx, doc); !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	files, closer, err := o.folder(ctx, doc)
	var data []byte
	if err == nil {
		data, err = o.lib.reader.Original(ctx, files, doc)
		err = errors.Join(err, closer.Close())
	}
	if o.shared && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ingest.ErrElsewhere, err)
	}
	return data, err
}

// storedFile returns a document's file from a store that keeps uploaded files.
func (o *originals) storedFile(ctx context.Context, doc *ingest.Document) ([]byte, error) {
	id, err := o.find(ctx, doc)
	if err != nil {
		return nil, err
	}
	var first error
	for _, received := range []bool{false, true} { // an upload that has not ended may already have documents from the received file
		data, err := o.lib.State.Originals().Read(ctx, id, received)
		if err == nil {
			data, err = o.lib.reader.Original(ctx, ingest.OneFile(strings.TrimPrefix(id, doc.Root+"/"), data), doc)
		}
		if first = cmp.Or(first, err); err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ingest.ErrChanged) {
			return data, err
		}
	}
	return nil, first
}

// find returns the id under which the store has a document's file, or the archive that contains
// it.
func (o *originals) find(ctx context.Context, doc *ingest.Document) (id string, err error) {
	files := o.lib.State.Originals()
	if files == nil {
		return "", fs.ErrNotExist
	}
	var ids []string
	for id := doc.ID; id != doc.Root && id != "."; id = path.Dir(id) {
		ids = append(ids, id)
	}
	return files.Find(ctx, ids...)
}

// IsLocal reports whether this server has a document's file, or the archive that contains it.
func (o *originals) IsLocal(ctx context.Context, doc *ingest.Document) bool {
	if !o.shared {
		return true
	}
	if _, err := o.find(ctx, doc); err == nil {
		return true
	}
	files, closer, err := o.folder(ctx, doc)
	if err != nil {
		return false
	}
	defer closer.Close()
	for name := doc.Path; name != "."; name = path.Dir(name) {
		if info, err := fs.Lstat(files, name); err == nil {
			return info.Mode().IsRegular()
		}
	}
	return false
}

func (o *originals) folder(ctx context.Context, doc *ingest.Document) (fs.FS, io.Closer, error) {
	roots, err := o.lib.Roots(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("finding the folder of %s: %w", doc.ID, err)
	}
	at := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Name == doc.Root })
	if at < 0 {
		return nil, nil, fmt.Errorf("finding the folder of %s: %w", doc.ID, fs.ErrNotExist)
	}
	f := &folder{lib: o.lib}
	f.path, _ = folderOf(o.data, roots[at])
	return f.open()
}

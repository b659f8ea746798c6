package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/library"
	"ibid/retrieve/state"
	"ibid/web"
)

type doctorCmd struct {
	JSON bool `help:"Print one JSON object." name:"json"`
	modelConfig
	readConfig
	storeConfig

	encoded string // space of the encoder in use; "" without an encoder
}

type finding = web.Finding

// The states of a finding.
const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateFailed  = "failed"
)

func ok(check, format string, args ...any) finding {
	return finding{Check: check, State: stateOK, Detail: fmt.Sprintf(format, args...)}
}

func advice(check, detail, next string) finding {
	return finding{Check: check, State: stateOK, Detail: detail, Next: next}
}

func warning(check, detail, next string) finding {
	return finding{Check: check, State: stateWarning, Detail: detail, Next: next}
}

func failed(check string, err error, next string) finding {
	return finding{Check: check, State: stateFailed, Detail: err.Error(), Next: next}
}

// A checkup collects findings, and prints each at once.
type checkup struct {
	findings []finding
	failed   int
	damaged  bool
	print    func(finding) error // nil for JSON
	err      error               // from printing
}

func (c *checkup) add(findings ...finding) {
	c.findings = append(c.findings, findings...)
	for _, f := range findings {
		if f.State == stateFailed {
			c.failed++
		}
		if c.print != nil {
			c.err = errors.Join(c.err, c.print(f))
		}
	}
}

// Run shows what is in use and what is wrong, with next steps. The exit code is 1 if something
// necessary failed, 4 if there is only damage.
func (c *doctorCmd) Run(ctx context.Context, s surroundings) error {
	if c.Data == "" && !c.remote() {
		return usageError("--data is empty: name a folder")
	}
	up := &checkup{}
	if !c.JSON {
		up.print = func(f finding) error {
			line := fmt.Sprintf("%-8s %-14s %s\n", f.State, f.Check, strings.ReplaceAll(f.Detail, "\n", " "))
			if f.Next != "" {
				line += fmt.Sprintf("%-23s → %s\n", "", f.Next)
			}
			return s.print(false, nil, line)
		}
	}
	up.add(ok("version", "%s", buildInfo()))
	embedder := c.checkEmbedder(ctx, s, up)
	up.add(c.checkParts(), c.checkEncoder())
	c.checkStore(ctx, s, up, embedder)
	up.add(c.checkPDF(ctx), c.checkOCR())
	if err := c.checkModels(ctx, s, up); err != nil {
		return err
	}
	if c.JSON {
		up.err = json.NewEncoder(s.stdout).Encode(map[string]any{"ok": up.failed == 0 && !up.damaged, "checks": up.findings})
	}
	switch {
	case up.err != nil:
		return up.err
	case up.failed > 0:
		return &exitError{exitFailed, fmt.Errorf("%d of %d checks failed", up.failed, len(up.findings))}
	case up.damaged:
		return &exitError{exitDamage, fmt.Errorf("damage found in %s", c.placeConfig)}
	}
	return nil
}

func (c *doctorCmd) checkEmbedder(ctx context.Context, s surroundings, up *checkup) retrieve.Embedder {
	const check = "embeddings"
	start := time.Now()
	embedder, err := c.embedder(ctx, s.getenv)
	if err == nil {
		_, err = embedder.Embed(ctx, []string{"the harbour light is lit at dusk", "when is the light lit?"})
	}
	switch {
	case err != nil:
		up.add(failed(check, err, "check --embed-model and --embed-base-url, or omit them to use the built-in model"))
		return nil
	case c.EmbedModel != "":
		up.add(ok(check, "%s, %s for two texts", embedder.Space(), shortDuration(time.Since(start))))
	default:
		up.add(ok(check, "%s, built in: no service needed", embedder.Space()))
	}
	return embedder
}

func (c *doctorCmd) checkEncoder() finding {
	const check = "encoder"
	m, err := c.encoder()
	switch {
	case c.EmbedModel != "":
		return ok(check, "unused, because --embed-model is set")
	case err != nil:
		if m != nil {
			err = errors.Join(err, m.Close())
		}
		return warning(check, err.Error(), "run 'ibid setup' for that part, or delete the file")
	case m != nil:
		f := ok(check, "%s orders the best passages of each search", m.Name)
		c.encoded = retrieve.EncodedSpace(m)
		if err := m.Close(); err != nil {
			f.State, f.Detail = stateWarning, err.Error()
		}
		return f
	}
	return ok(check, "none: the built-in model searches alone")
}

// checkParts lists the installed optional parts, after checking their digests, and the parts
// that 'ibid setup' would install.
func (c *doctorCmd) checkParts() finding {
	var here, missing, damaged []string
	for _, name := range partNames {
		p, err := partOf(name)
		if err == nil {
			_, err = p.findInstalled(c.Data)
		}
		switch {
		case err == nil:
			here = append(here, name)
		case !errors.Is(err, fs.ErrNotExist):
			damaged = append(damaged, err.Error())
		case p.useless == "":
			missing = append(missing, fmt.Sprintf("%s (%s) %s", name, megabytes(p.pkg.bytes), p.purpose))
		}
	}
	f := ok("parts", "%s", cmp.Or(strings.Join(here, ", "), "none"))
	if len(missing) > 0 {
		f.Next = "'ibid setup NAME' installs more: " + strings.Join(missing, "; ")
	}
	if len(damaged) > 0 {
		f.State, f.Detail, f.Next = stateWarning, strings.Join(damaged, "; "), "run 'ibid setup' for that part, or delete the file"
	}
	return f
}

const ingestFirst = "run 'ibid ingest FOLDER'"

// checkStore opens and checks the library, if it exists.
func (c *doctorCmd) checkStore(ctx context.Context, s surroundings, up *checkup, embedder retrieve.Embedder) {
	check, unreachable := "data", "check the folder's permissions and what else uses it, or name another one with --data"
	if c.remote() {
		check = "store"
		unreachable = "check that the server is running and reachable from here, and that its password is in the file named by " +
			"--store-password-file or in $IBID_STORE_PASSWORD"
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
	} else if !c.exists() {
		up.add(warning(check, c.Data+": nothing has been ingested yet", ingestFirst))
		return
	}
	store, err := startStore(ctx, c.placeConfig, s)
	if errors.Is(err, state.ErrLayout) {
		unreachable = "do that, or name another folder with --data"
	}
	if err != nil {
		up.add(failed(check, err, unreachable))
		return
	}
	c.checkIndex(ctx, s, up, store)
	c.modelConfig, c.endpointConfig, err = s.chooseFrom(ctx, store, c.Data, c.modelConfig, c.endpointConfig)
	if err = errors.Join(err, c.checkLibrary(ctx, store, up, embedder, check), store.Close()); err != nil {
		up.add(failed(check, fmt.Errorf("%s: %w", c.placeConfig, err),
			"check that the server is still running; if this is a data directory, copy it, and ingest the documents into a new one with --data"))
	}
}

func (c *doctorCmd) checkIndex(ctx context.Context, s surroundings, up *checkup, store *state.Store) {
	place, err := c.place().open(s)
	if err != nil {
		return // unreachable: the store was opened with the same settings
	}
	if err := library.CheckWritable(ctx, place, store); err != nil {
		up.add(warning("index", "the search index cannot be written: "+err.Error(),
			"make its folder writable; until then, every start indexes the missing documents again"))
	}
	if c.Index.cluster == nil {
		return
	}
	var lag int64
	x, err := library.Cluster(ctx, place, store)
	if err == nil {
		if lag, err = x.Lag(ctx); err == nil && lag > 0 {
			err = x.Searchable(ctx)
		}
		err = errors.Join(err, x.Close())
	}
	building := (*retrieve.BuildingError)(nil)
	switch {
	case errors.As(err, &building):
		up.add(warning("index", fmt.Sprintf("%s: %v", c.Index, err), "a running server builds it while all replicas are reachable"))
	case err != nil:
		up.add(failed("index", err, "check that the cluster is running and reachable from here, and that its key is in "+
			"the file named by --index-key-file or in $IBID_INDEX_KEY; documents are still stored"))
	case lag > 0:
		up.add(warning("index", fmt.Sprintf("%s lacks the last %s of the library", c.Index, countOf(int(lag), "change")),
			"a running server updates it while all replicas are reachable"))
	default:
		up.add(ok("index", "%s has all changes of the library", c.Index))
	}
}

// checkLibrary checks the content of a store. It returns an error if the store
// cannot be read.
func (c *doctorCmd) checkLibrary(ctx context.Context, store *state.Store, up *checkup, embedder retrieve.Embedder, check string) error {
	what := c.placeConfig.String()
	if c.remote() {
		server, schema, err := store.Inspect(ctx)
		if err != nil {
			return err
		}
		up.add(ok("server", "%s", server), ok("schema", "%s", schema))
	} else {
		what += fmt.Sprintf(" (%s)", megabytes(folderBytes(c.Data)))
	}
	documents, chunks, err := store.Count(ctx, retrieve.Filter{})
	if err != nil {
		return err
	}
	roots, err := store.Roots(ctx)
	if err != nil {
		return err
	}
	f := ok(check, "%s: %s in %s, %s", what, countOf(documents, "document"), countOf(len(roots), "folder"), countOf(chunks, "chunk"))
	if documents == 0 {
		f.State, f.Next = stateWarning, ingestFirst
	}
	up.add(f)
	space, err := store.Space(ctx)
	if err != nil {
		return err
	}
	if embedder != nil && space != "" {
		f := ok("space", "the stored vectors were made by %s", space)
		if space != embedder.Space() {
			f = failed("space", fmt.Errorf("the stored vectors were made by %s, but %s is in use", space, embedder.Space()),
				"run 'ibid reembed', or select the embedding model of the stored vectors")
		}
		up.add(f)
	}
	if err := c.checkEncoded(ctx, store, up); err != nil {
		return err
	}
	if err := checkCallers(ctx, store, up); err != nil {
		return err
	}
	damaged, err := store.ListDamage(ctx)
	for _, d := range damaged {
		up.damaged = true
		up.add(warning("damage", damageLine(d), "run 'ibid ingest' on its folder, which re-reads damaged documents"))
	}
	for _, r := range roots {
		if r.Path == "" || ingest.IsAddress(r.Path) || c.remote() { // the folder may be on another machine
			continue
		}
		folder, _ := folderOf(c.Data, r)
		if _, err := os.Stat(folder); err != nil {
			up.add(warning("folder "+r.Name, fmt.Sprintf("its folder cannot be read: %v", err),
				fmt.Sprintf("restore it, or run 'ibid forget %s'; until then its documents stay unchanged", r.Name)))
		}
	}
	return err
}

// checkEncoded counts the chunks that the encoder in use has encoded.
func (c *doctorCmd) checkEncoded(ctx context.Context, store *state.Store, up *checkup) error {
	if c.encoded == "" {
		return nil
	}
	done, total, err := store.CountEmbedded(ctx, c.encoded)
	if err != nil {
		return err
	}
	f := ok("encoded", "%d of %s encoded", done, countOf(total, "chunk"))
	if done < total {
		f.Next = "a running server encodes the rest; 'ibid ingest --encode FOLDER' encodes them now"
	}
	up.add(f)
	return nil
}

// checkCallers counts the keys, and the stored answers with quotes that have changed since.
func checkCallers(ctx context.Context, store *state.Store, up *checkup) error {
	ring, err := store.Keyring().Ring(ctx)
	if err != nil {
		return err
	}
	valid := slices.DeleteFunc(slices.Clone(ring.Keys), isExpired)
	up.add(ok("keys", "%d, %d of them valid: 'ibid serve' requires one if other machines can reach it, or with --auth on",
		len(ring.Keys), len(valid)))
	callers := []string{""}
	for _, k := range ring.Keys {
		callers = append(callers, k.ID)
	}
	changed, answers, err := web.ChangedAnswers(ctx, store, store.Ledger(), callers)
	if err != nil {
		return err
	}
	if answers > 0 {
		up.add(advice("answers", fmt.Sprintf("%s stored, %d of them with sources that have changed since", countOf(answers, "answer"), changed),
			"the page lists them under History, where you can ask again"))
	}
	return nil
}

// isExpired reports whether a key is no longer valid.
func isExpired(k retrieve.Key) bool { return !k.Expires.IsZero() && !time.Now().Before(k.Expires) }

//go:embed sample.pdf
var samplePDF []byte

const getPDFium = "run 'ibid setup pdfium'"

// checkPDF reads a sample PDF file, and says how to get PDFium.
func (c *doctorCmd) checkPDF(ctx context.Context) finding {
	const check = "pdf reader"
	r := c.reader(c.Data)
	defer r.Close()
	if _, err := os.Stat(c.Data); err != nil {
		r.PDF.Folder = "" // do not create it
	}
	// The child process refuses to work if it cannot limit itself.
	doc, err := r.Read(ctx, "sample.pdf", samplePDF)
	if err == nil && !strings.Contains(doc.Text, "harbour light is lit at dusk") {
		err = fmt.Errorf("it was read as %q", oneLine(doc.Text, 80))
	}
	if err != nil {
		return failed(check, fmt.Errorf("reading a sample in a child process: %w", err),
			"allow this program to start child processes of itself with memory and time limits")
	}
	f := ok(check, "built in: a sample was read in a child process")
	switch from, trouble := r.PDFium(); {
	case trouble != "":
		f.State, f.Detail, f.Next = stateWarning, f.Detail+"; "+trouble, getPDFium
	case from == "":
		f.Next = "PDFium draws pages, which tesseract needs to read scans: " + getPDFium
	default:
		f.Detail += "; PDFium (" + from + ") draws pages"
	}
	return f
}

func (c *doctorCmd) checkOCR() finding {
	const check = "scans"
	path := ingest.PDFOptions{Helped: true, Languages: c.OCR}.OCR()
	switch {
	case c.OCR == ingest.NoOCR:
		return ok(check, "scans and pictures are skipped (--ocr off)")
	case path == "":
		return advice(check, "scans and pictures are skipped: tesseract is not installed",
			"to read them, install tesseract-ocr with the languages of your documents")
	}
	return ok(check, "read by %s", path)
}

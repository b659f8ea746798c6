package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
)

type doctorCmd struct {
	JSON bool `help:"Print one JSON object." name:"json"`
	modelConfig
	readConfig
	storeConfig
}

// A finding is what one check came to.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // "ok", "warning" (Ibid works, but not as well as it could) or "failed"
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"` // what the person can do; empty when there is nothing to do
}

// The states of a finding.
const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateFailed  = "failed"
)

func ok(check, format string, args ...any) finding {
	return finding{Check: check, State: stateOK, Detail: fmt.Sprintf(format, args...)}
}

// A checkup collects findings, and shows each as soon as it is there.
type checkup struct {
	findings []finding
	damage   bool
	show     func(finding) error
}

func (c *checkup) add(f finding) error {
	c.findings = append(c.findings, f)
	return c.show(f)
}

func (c *checkup) failed() int {
	n := 0
	for _, f := range c.findings {
		if f.State == stateFailed {
			n++
		}
	}
	return n
}

// Run says what is in use and what is wrong, each with the next step. Exit
// code 1 when something that is needed failed, 4 when only damage was found.
func (c *doctorCmd) Run(ctx context.Context, s surroundings) error {
	if c.Data == "" && !c.remote() {
		return usageError("--data is empty: name a folder")
	}
	up := &checkup{show: func(f finding) error { return showFinding(s, f) }}
	if c.JSON {
		up.show = func(finding) error { return nil }
	}
	if err := c.examine(ctx, s, up); err != nil {
		return err
	}
	if c.JSON {
		if err := json.NewEncoder(s.stdout).Encode(map[string]any{"ok": up.failed() == 0 && !up.damage, "checks": up.findings}); err != nil {
			return err
		}
	}
	switch n := up.failed(); {
	case n > 0:
		return &exitError{exitFailed, fmt.Errorf("%d of %d checks failed", n, len(up.findings))}
	case up.damage:
		return &exitError{exitDamage, fmt.Errorf("damage found in %s", c.placeConfig)}
	}
	return nil
}

func showFinding(s surroundings, f finding) error {
	line := fmt.Sprintf("%-8s %-14s %s\n", f.State, f.Check, strings.ReplaceAll(f.Detail, "\n", " "))
	if f.Next != "" {
		line += fmt.Sprintf("%-23s → %s\n", "", f.Next)
	}
	_, err := fmt.Fprint(s.stdout, printable(line))
	return err
}

// examine makes the checks, one after the other. Its error is not about what
// was found, but about telling it.
func (c *doctorCmd) examine(ctx context.Context, s surroundings, up *checkup) error {
	if err := up.add(ok("version", "%s", built())); err != nil {
		return err
	}
	embedder, found := c.checkEmbedder(ctx, s)
	if err := up.add(found); err != nil {
		return err
	}
	if err := c.checkStore(ctx, s, up, embedder); err != nil {
		return err
	}
	for _, f := range []finding{
		checkSandbox(ctx),
		c.checkPDF(ctx),
		c.checkOCR(),
		ok("browser", "not needed: pages and HTML files are read by Ibid itself"),
	} {
		if err := up.add(f); err != nil {
			return err
		}
	}
	return c.checkModels(ctx, s, up)
}

func (c *doctorCmd) checkEmbedder(ctx context.Context, s surroundings) (retrieve.Embedder, finding) {
	const check = "embeddings"
	start := time.Now()
	embedder, err := c.embedder(ctx, s.getenv)
	if err == nil {
		_, err = embedder.Embed(ctx, []string{"the harbour light is lit at dusk", "when is the light lit?"})
	}
	switch {
	case err != nil && c.EmbedModel != "":
		return nil, finding{check, stateFailed, err.Error(), "check --embed-model and --embed-base-url, or leave them out to use the embedded model"}
	case err != nil:
		return nil, finding{check, stateFailed, err.Error(), "the model that is part of the program does not load: install Ibid anew"}
	case c.EmbedModel != "":
		return embedder, ok(check, "%s, %s for two texts", embedder.Space(), short(time.Since(start)))
	}
	return embedder, ok(check, "%s, embedded: no service needed", embedder.Space())
}

//go:embed sample.pdf
var samplePDF []byte

// samplePDFSays is a part of what stands in the sample.
const samplePDFSays = "harbour light is lit at dusk"

// checkSandbox reads a sample in a child process, as every PDF file is read.
// The child refuses to work when it cannot limit itself.
func checkSandbox(ctx context.Context) finding {
	const check, next = "child process", "PDF and office files cannot be read; allow this program to start itself again, with limits on memory and time"
	var r ingest.Reader
	defer r.Close()
	start := time.Now()
	doc, err := r.Read(ctx, "sample.pdf", samplePDF)
	switch {
	case err != nil:
		return finding{check, stateFailed, "reading a sample in a child process: " + err.Error(), next}
	case !strings.Contains(doc.Text, samplePDFSays):
		return finding{check, stateFailed, fmt.Sprintf("a sample was read as %q", oneLine(doc.Text, 80)), "this build reads PDF files wrongly: install Ibid anew"}
	}
	limits := "limited in time and output, and watching its own memory"
	if runtime.GOOS == "linux" {
		limits = "limited in memory, time, files and output"
	}
	return ok(check, "a sample was read in %s, %s", short(time.Since(start)), limits)
}

// checkPDF says which way PDF files are read, and how to get a better one.
func (c *doctorCmd) checkPDF(ctx context.Context) finding {
	const check = "pdf reader"
	r, err := c.reader(c.Data)
	if err != nil {
		return finding{check, stateFailed, err.Error(), "or leave --pdf out, and the best that is there is used"}
	}
	defer r.Close()
	if _, err := os.Stat(c.Data); err != nil {
		r.PDF.Folder = "" // nothing is to be made there
	}
	use, err := r.PDFInUse(ctx)
	if err == nil {
		var doc *ingest.Document
		if doc, err = r.Read(ctx, "sample.pdf", samplePDF); err == nil && !strings.Contains(doc.Text, samplePDFSays) {
			err = fmt.Errorf("a sample was read as %q", oneLine(doc.Text, 80))
		}
	}
	if err != nil {
		return finding{check, stateFailed, err.Error(), "choose another way to read PDF files with --pdf"}
	}
	f := ok(check, "%s (%s)", use.Tier, use.From)
	switch {
	case use.Trouble != "":
		f.State, f.Detail, f.Next = stateWarning, f.Detail+"; "+use.Trouble, ingest.GetPDFium(c.Data)
	case use.Tier != ingest.PDFium && c.PDF == ingest.PDFAuto:
		f.Next = "PDFium reads them better and draws their pages: " + ingest.GetPDFium(c.Data)
	}
	return f
}

// checkOCR says whether scans and pictures are read.
func (c *doctorCmd) checkOCR() finding {
	const check = "scans"
	path := ingest.PDFOptions{Tier: ingest.PDFAuto, Languages: c.OCR}.OCR()
	switch {
	case c.OCR == ingest.NoOCR:
		return ok(check, "scans and pictures are left out, by --ocr off")
	case path == "":
		f := ok(check, "scans and pictures are left out: tesseract is not installed")
		f.Next = "install tesseract-ocr, with the languages of your documents, to have them read"
		return f
	}
	return ok(check, "read by %s", path)
}

func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"ibid/cite"
)

type citeCmd struct {
	Documents string `help:"JSON file with the documents that the text may cite: [{\"id\":1,\"source\":\"a.html\",\"title\":\"A\"}, …]. A document's id is its place in the list, from 1 on." required:"" placeholder:"FILE"`
	Style     string `help:"How citations are shown: ${enum}." enum:"empty,text,markdown,html" default:"markdown" placeholder:"NAME"`
	Profile   string `help:"Which markers count: default takes [1](id=3), [3], [1, 2-4] and 【3】; strict takes [1](id=3) alone." enum:"default,strict" default:"default" placeholder:"NAME"`
	JSON      bool   `help:"Print one JSON object with the text, the list and the sources when the text has ended." name:"json"`
}

// Run reads a model's output from standard input and prints it with numbered citations.
func (c *citeCmd) Run(ctx context.Context, s surroundings) error {
	documents, err := readDocuments(c.Documents)
	if err != nil {
		return err
	}
	style, ok := cite.StyleByName(c.Style)
	if !ok {
		return usageError("unknown style %q: use empty, text, markdown or html", c.Style)
	}
	profile, ok := cite.ProfileByName(c.Profile)
	if !ok {
		return usageError("unknown profile %q: use default or strict", c.Profile)
	}
	out := s.stdout
	if isTerminal(out) {
		out = printing{out}
	}
	return citeText(ctx, cite.NewRewriter(documents, style, profile), s.stdin, out, c.JSON)
}

// printing writes only what may be shown on a terminal. It must be given whole
// characters.
type printing struct{ w io.Writer }

func (p printing) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// readDocuments reads the documents that a text may cite. Ids may be left out;
// given ones must be the documents' places, because it is by these that the
// text cites.
func readDocuments(name string) ([]cite.Document, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the documents to cite: %w", err)
	}
	var documents []cite.Document
	if err := json.Unmarshal(data, &documents); err != nil {
		return nil, usageError("%s is not a list of documents such as [{\"id\":1,\"source\":\"a.html\",\"title\":\"A\"}]: %w", name, err)
	}
	for i, d := range documents {
		if d.ID != 0 && d.ID != i+1 {
			return nil, usageError("%s: document %d has the id %d: a document's id must be its place in the list; reorder the list, or leave the ids out", name, i+1, d.ID)
		}
	}
	return documents, nil
}

// citeText passes a text through the rewriter, piece by piece as it comes, and
// puts the list of its sources behind it; in JSON, all of it at the end.
func citeText(ctx context.Context, r *cite.Rewriter, in io.Reader, out io.Writer, asJSON bool) error {
	var all bytes.Buffer
	var decided []byte
	show := func() error {
		if asJSON {
			all.Write(decided)
			return nil
		}
		if len(decided) == 0 {
			return nil
		}
		if _, err := out.Write(decided); err != nil {
			return fmt.Errorf("writing the text: %w", err)
		}
		return nil
	}
	piece := make([]byte, 32<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.Read(piece)
		decided = r.Append(decided[:0], piece[:n])
		if err := show(); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			// What was read is shown; half a marker at its end is text.
			decided = r.Close(decided[:0])
			return errors.Join(fmt.Errorf("reading the text: %w", err), show())
		}
	}
	decided = r.Close(decided[:0])
	if !asJSON {
		decided = append(decided, r.List()...)
		return show()
	}
	if err := show(); err != nil {
		return err
	}
	sources := r.Sources()
	if sources == nil {
		sources = []cite.NumberedSource{}
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Text    string                `json:"text"`
		List    string                `json:"list"`
		Sources []cite.NumberedSource `json:"sources"`
	}{all.String(), r.List(), sources})
}

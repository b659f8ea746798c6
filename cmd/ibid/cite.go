package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
)

type citeCmd struct {
	Documents string `help:"JSON file with the list of the documents that the text may cite." required:"" placeholder:"FILE"`
	Style     string `help:"How citations are shown: ${enum}." enum:"empty,text,markdown,footnote,html" default:"markdown" placeholder:"NAME"`
	Profile   string `help:"${profile_help}" enum:"default,strict" default:"default" placeholder:"NAME"`
	JSON      bool   `help:"Print one JSON object with the text, the list and the sources when the text has ended." name:"json"`
}

// Help is the text of 'ibid cite --help' before the flags.
func (citeCmd) Help() string {
	return `The list holds the documents in the order in which they were shown to the model:

    [{"source": "about.html", "title": "About us"}, {"source": "tea.html", "title": "Tea"}]

A document's place in the list is its id: the text cites the first as [1] and the second as [2], or as [1](id=2), whatever the number in the brackets. Entries may repeat their ids ("id": 1), but not change them. The output is numbered by first use and ends in the list of sources:

    $ echo 'Served at four [2].' | ibid cite --documents docs.json --style text
    Served at four [1].

    - [1] Tea (tea.html)

A document that is not in the list cannot be cited: [7] stays in the text, and [1](id=7) is removed.`
}

// exampleDocuments is a list of documents.
const exampleDocuments = `[{"source":"a.html","title":"A"}]`

// Run reads a model's output from standard input and prints it with numbered citations.
func (c *citeCmd) Run(ctx context.Context, s surroundings) error {
	documents, err := readDocuments(c.Documents)
	if err != nil {
		return err
	}
	style, ok := rewrite.StyleByName(c.Style)
	if !ok {
		return usageError("unknown style %q: use empty, text, markdown, footnote or html", c.Style)
	}
	profile, form := marker.Default, "[1]"
	if c.Profile == "strict" {
		profile, form = marker.Strict, "[1](id=1)"
	}
	out := s.stdout
	if isTerminal(out) {
		out = printing{out}
	}
	if in, ok := s.stdin.(*os.File); ok && isTerminal(in) {
		fmt.Fprintln(s.stderr, "ibid: reading the text from the terminal: end it with Ctrl-D (on Windows Ctrl-Z and Enter)")
	}
	r := rewrite.New(documents, style, profile)
	if err := citeText(ctx, r, s.stdin, out, c.JSON); err != nil {
		return err
	}
	if len(r.Sources()) == 0 && len(documents) > 0 {
		fmt.Fprintf(s.stderr, "ibid: the text cites none of %s in %s: a document is cited by its place in the list, the first as %s\n",
			counted(len(documents), "document"), c.Documents, form)
	}
	return nil
}

// A printing writes only characters that are safe on a terminal. Each write
// must be whole characters.
type printing struct{ w io.Writer }

func (p printing) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// readDocuments reads the documents that a text may cite. Either no entry has an
// id, or all have their place in the list, by which the text cites.
func readDocuments(name string) ([]rewrite.Document, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the documents to cite: %w", err)
	}
	const byteOrderMark = "\uFEFF"
	var documents []rewrite.Document
	err = json.Unmarshal(bytes.TrimPrefix(data, []byte(byteOrderMark)), &documents)
	if err == nil && documents == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, usageError("%s is not a JSON list of documents such as %s: %w", name, exampleDocuments, err)
	}
	for i, d := range documents {
		if d.ID != i+1 && (d.ID != 0 || documents[0].ID != 0) {
			return nil, usageError("%s: document %d has the id %d: a document's id must be its place in the list, by which the text cites it; "+
				"reorder the list, or leave all ids out", name, i+1, d.ID)
		}
	}
	return documents, nil
}

// citeText passes a text through the rewriter as it comes, followed by the list of
// its sources; in JSON, all at the end.
func citeText(ctx context.Context, r *rewrite.Rewriter, in io.Reader, out io.Writer, asJSON bool) error {
	var whole bytes.Buffer
	to := out
	if asJSON {
		to = &whole
	}
	var decided []byte
	piece := make([]byte, 32<<10)
	for ended := false; !ended; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.Read(piece)
		decided = r.Append(decided[:0], piece[:n])
		if err != nil { // half a marker at the end is text
			decided = r.Close(decided)
		}
		if ended = errors.Is(err, io.EOF); ended && !asJSON {
			decided = append(decided, r.List()...)
		}
		if len(decided) > 0 {
			if _, err := to.Write(decided); err != nil {
				return fmt.Errorf("writing the text: %w", err)
			}
		}
		if err != nil && !ended {
			return fmt.Errorf("reading the text: %w", err)
		}
	}
	if !asJSON {
		return nil
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Text    string           `json:"text"`
		List    string           `json:"list"`
		Sources []rewrite.Source `json:"sources"`
	}{whole.String(), r.List(), append([]rewrite.Source{}, r.Sources()...)})
}

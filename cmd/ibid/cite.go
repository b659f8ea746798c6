package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
)

type citeCmd struct {
	Documents string `help:"JSON file with the list of the documents that the text may cite." placeholder:"FILE"`
	SourceKey string `help:"Key of the documents' metadata that holds the source." placeholder:"KEY"`
	Exclude   []int  `help:"Numbers of documents in the list that the text must not cite, such as 2,5." placeholder:"N"`
	Style     string `help:"@cite_style" enum:"text,markdown,footnote,html,empty" default:"markdown" placeholder:"NAME"`
	Inline    string `help:"Template of a citation, such as '({number})'; also {title}, {source}, {link}." placeholder:"TEXT"`
	Entry     string `help:"Template of a line of the list, such as '{number}. {title}: {link}'." placeholder:"TEXT"`
	JSON      bool   `help:"Print one JSON object with the text, the list and the sources when the text ends." name:"json"`
	Stream    bool   `help:"With --json, print one JSON object per line as the text arrives: cited, text and done."`
	Prompt    bool   `help:"Print the instruction that tells a model how to cite, and exit."`
}

// Help is the text of 'ibid cite --help' before the flags.
func (citeCmd) Help() string {
	return `List the documents in the order in which the model received them:

    [{"source": "about.html", "title": "About us"}, {"source": "tea.html", "title": "Tea"}]

It may also contain LangChain documents (page_content, metadata) and LlamaIndex nodes; the sources keep their metadata.

A document's position in the list is its id: the text cites the first as [1] and the second as [2], ` +
		`or as [1](id=2) with any number in the brackets. An entry may have an id ("id": 1) if it equals the position. ` +
		`The output is numbered by first use and ends with the list of sources:

    $ echo 'Served at four [2].' | ibid cite --documents docs.json --style text
    Served at four [1].

    - [1] Tea (tea.html)

A document that is not in the list cannot be cited: [7] stays in the text, and [1](id=7) is removed.`
}

const exampleDocuments = `[{"source":"a.html","title":"A"}]`

// Run reads a model's output from standard input and prints it with numbered citations.
func (c *citeCmd) Run(ctx context.Context, s surroundings) error {
	if c.Prompt {
		_, err := fmt.Fprintln(s.stdout, rewrite.Prompt)
		return err
	}
	if c.Documents == "" {
		return usageError("missing flags: --documents=FILE (see 'ibid cite --help')")
	}
	if c.Stream && !c.JSON {
		return usageError("--stream needs --json: text streams without it")
	}
	documents, err := readDocuments(c.Documents, c.SourceKey)
	if err != nil {
		return err
	}
	style, _ := rewrite.StyleByName(c.Style) // the flag allows only known styles
	if c.Inline != "" || c.Entry != "" {
		if style, err = rewrite.NewStyle(c.Inline, c.Entry); err != nil {
			return usageError("%w", err)
		}
	}
	for _, id := range c.Exclude {
		if id < 1 || id > len(documents) {
			return usageError("--exclude %d: the documents in %s are numbered from 1 to %d", id, c.Documents, len(documents))
		}
	}
	style.Exclude = func(d rewrite.Document) bool { return slices.Contains(c.Exclude, d.ID) }
	out := s.stdout
	if isTerminal(out) {
		out = printing{out}
	}
	if in, ok := s.stdin.(*os.File); ok && isTerminal(in) {
		s.printMessage("reading the text from the terminal: end it with Ctrl-D (on Windows Ctrl-Z and Enter)")
	}
	r := rewrite.New(documents, style, marker.Default)
	if err := citeText(ctx, r, s.stdin, out, c.JSON, c.Stream); err != nil {
		return err
	}
	if len(r.Sources()) == 0 && len(documents) > 0 {
		fmt.Fprintf(s.stderr, "ibid: the text cites none of %s in %s: cite a document by its position in the list, the first as [1]\n",
			countOf(len(documents), "document"), c.Documents)
	}
	return nil
}

// A printing writes only characters that are safe on a terminal. Each write must consist of
// whole characters.
type printing struct{ w io.Writer }

func (p printing) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

func readDocuments(name, key string) ([]rewrite.Document, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError("--documents %s: there is no such file", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the documents to cite: %w", err)
	}
	const byteOrderMark = "\uFEFF"
	documents, err := rewrite.ReadDocuments(bytes.TrimPrefix(data, []byte(byteOrderMark)), key)
	if err != nil {
		return nil, usageError("%s is not a JSON list of documents such as %s: %w", name, exampleDocuments, err)
	}
	return documents, nil
}

// citeText passes a text through the rewriter as it arrives, followed by the list of its
// sources. JSON is printed at the end or, with stream, one event per line.
func citeText(ctx context.Context, r *rewrite.Rewriter, in io.Reader, out io.Writer, asJSON, stream bool) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for e, err := range r.Events(rewrite.Pieces(in)) {
		if err != nil {
			return fmt.Errorf("reading the text: %w", err)
		}
		switch {
		case stream:
			err = encoder.Encode(e)
		case !asJSON && e.Done != nil:
			_, err = io.WriteString(out, e.Done.List)
		case !asJSON:
			_, err = io.WriteString(out, e.Text)
		case e.Done != nil:
			err = encoder.Encode(e.Done)
		}
		if err != nil {
			return fmt.Errorf("writing the text: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

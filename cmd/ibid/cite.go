package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
)

type citeCmd struct {
	Documents string `help:"JSON file with the list of the documents that the text may cite: [{\"source\":\"a.html\",\"title\":\"A\"}, …]. The first is cited as [1]." required:"" placeholder:"FILE"`
	Style     string `help:"How citations are shown: ${enum}." enum:"empty,text,markdown,html" default:"markdown" placeholder:"NAME"`
	Profile   string `help:"Which markers count: default takes [1](id=3), [3], [1, 2-4] and 【3】; strict takes [1](id=3) alone." enum:"default,strict" default:"default" placeholder:"NAME"`
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

A document that is not in the list cannot be cited: [7] stays in the text, [1](id=7) is removed, and standard error names both.`
}

// exampleDocuments is a list of documents.
const exampleDocuments = `[{"source":"a.html","title":"A"}]`

// Run reads a model's output from standard input and prints it with numbered citations.
func (c *citeCmd) Run(ctx context.Context, s surroundings) error {
	documents, unread, err := readDocuments(c.Documents)
	if err != nil {
		return err
	}
	if len(unread) > 0 {
		// Not an error: lists of other programs have texts, scores and metadata
		// too. But one of these may be a title under another name.
		for i, member := range unread {
			unread[i] = strconv.Quote(member)
		}
		fmt.Fprintf(s.stderr, "ibid: %s: not read: %s; a document has id, source and title\n", c.Documents, strings.Join(unread, ", "))
	}
	style, ok := rewrite.StyleByName(c.Style)
	if !ok {
		return usageError("unknown style %q: use empty, text, markdown or html", c.Style)
	}
	profile := marker.Default
	if c.Profile == "strict" {
		profile = marker.Strict
	}
	out := s.stdout
	if isTerminal(out) {
		out = printing{out}
	}
	if in, ok := s.stdin.(*os.File); ok && isTerminal(in) {
		fmt.Fprintln(s.stderr, "ibid: reading the text from the terminal: end it with Ctrl-D (on Windows Ctrl-Z and Enter)")
	}
	cited := newCited(profile, len(documents))
	if err := citeText(ctx, rewrite.New(documents, style, profile), io.TeeReader(s.stdin, cited), out, c.JSON); err != nil {
		return err
	}
	if note := cited.note(c.Documents); note != "" {
		fmt.Fprintln(s.stderr, "ibid: "+note)
	}
	return nil
}

// A cited records which ids a text cites, also ids without a document.
type cited struct {
	profile   marker.Profile
	documents int
	scanner   *marker.Scanner
	any       bool  // a document was cited
	strange   []int // ids without a document, sorted, each once
}

// maxStrange is the largest id reported: a larger number in brackets is a year
// rather than a citation.
const maxStrange = 1000

func newCited(profile marker.Profile, documents int) *cited {
	return &cited{profile: profile, documents: documents, scanner: marker.NewScanner(profile, max(maxStrange, documents))}
}

// Write scans the next piece of the text.
func (c *cited) Write(piece []byte) (int, error) {
	c.scanner.Feed(piece, c.record)
	return len(piece), nil
}

func (c *cited) record(t marker.Token) {
	for _, id := range t.IDs {
		if id <= c.documents {
			c.any = true
		} else if at, known := slices.BinarySearch(c.strange, id); !known {
			c.strange = slices.Insert(c.strange, at, id)
		}
	}
}

// note ends the text and returns a warning about labels that cite nothing, or "".
func (c *cited) note(list string) string {
	c.scanner.Close(c.record)
	form := "[1]"
	if c.profile == marker.Strict {
		form = "[1](id=1)"
	}
	switch {
	case len(c.strange) > 0:
		ids := make([]string, 0, 10)
		for i, id := range c.strange {
			if i == cap(ids) {
				ids = append(ids, fmt.Sprintf("and %d more", len(c.strange)-i))
				break
			}
			ids = append(ids, strconv.Itoa(id))
		}
		return fmt.Sprintf("%s lists %s, and the text cites others, which are no citations: %s; a document is cited by its place in the list, the first as %s", list, counted(c.documents, "document"), strings.Join(ids, ", "), form)
	case !c.any && c.documents > 0:
		return fmt.Sprintf("the text cites nothing: a document is cited by its place in %s, the first as %s", list, form)
	}
	return ""
}

// A printing writes only what is safe on a terminal. Each write must be whole
// characters.
type printing struct{ w io.Writer }

func (p printing) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// readDocuments reads the documents that a text may cite, and returns the members
// of their entries that it ignores. Either no entry has an id, or all have their
// place in the list, by which the text cites.
func readDocuments(name string) (documents []rewrite.Document, unread []string, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the documents to cite: %w", err)
	}
	const byteOrderMark = "\uFEFF"
	var entries []json.RawMessage
	err = json.Unmarshal(bytes.TrimPrefix(data, []byte(byteOrderMark)), &entries)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		err = fmt.Errorf("it is a JSON %s", wrong.Value)
	} else if err == nil && entries == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, nil, usageError("%s is not a JSON list of documents such as %s: %w", name, exampleDocuments, err)
	}
	documents = make([]rewrite.Document, len(entries))
	for i, entry := range entries {
		more, err := readDocument(entry, &documents[i])
		if err == nil {
			err = checkID(documents, i)
		}
		if err != nil {
			return nil, nil, usageError("%s: document %d %w", name, i+1, err)
		}
		unread = append(unread, more...)
	}
	slices.Sort(unread)
	return documents, slices.Compact(unread), nil
}

// readDocument reads an entry of the list. A member that is null is missing; a
// missing id is 0.
func readDocument(entry json.RawMessage, d *rewrite.Document) (unread []string, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(entry, &members); err != nil || members == nil {
		return nil, fmt.Errorf("is %s: it must be an object such as {\"source\":\"a.html\",\"title\":\"A\"}", oneLine(string(entry), 40))
	}
	for _, known := range []struct {
		name, want string
		to         any
	}{
		{"id", "its place in the list, a whole number from 1 on, by which the text cites it; or leave all ids out", &d.ID},
		{"source", "a string", &d.Source},
		{"title", "a string", &d.Title},
	} {
		value, given := members[known.name]
		delete(members, known.name)
		if !given || string(value) == "null" {
			continue
		}
		if err := json.Unmarshal(value, known.to); err != nil || known.to == &d.ID && d.ID < 1 {
			return nil, fmt.Errorf("has the %s %s: it must be %s", known.name, oneLine(string(value), 40), known.want)
		}
	}
	return slices.Collect(maps.Keys(members)), nil
}

// checkID checks the id of document i against those before it.
func checkID(documents []rewrite.Document, i int) error {
	switch id, first := documents[i].ID, documents[0].ID; {
	case id == 0 && first != 0:
		return fmt.Errorf("has no id, unlike document 1: give it the id %d, or leave all ids out", i+1)
	case id != 0 && first == 0:
		return fmt.Errorf("has the id %d, and document 1 has none: give every document its place in the list, or leave all ids out", id)
	case id != 0 && id <= i:
		return fmt.Errorf("has the id %d, which document %d has already: a document's id must be its place in the list, by which the text cites it; number them 1, 2, 3 …, or leave all ids out", id, id)
	case id != 0 && id != i+1:
		return fmt.Errorf("has the id %d: a document's id must be its place in the list, by which the text cites it; reorder the list, or leave all ids out", id)
	}
	return nil
}

// citeText passes a text through the rewriter as it comes, followed by the list of
// its sources; in JSON, all at the end.
func citeText(ctx context.Context, r *rewrite.Rewriter, in io.Reader, out io.Writer, asJSON bool) error {
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
			// Show what was read; half a marker at its end is text.
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
		sources = []rewrite.Source{}
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Text    string           `json:"text"`
		List    string           `json:"list"`
		Sources []rewrite.Source `json:"sources"`
	}{all.String(), r.List(), sources})
}

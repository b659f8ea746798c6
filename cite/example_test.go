package cite_test

import (
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"

	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

var documents = []cite.Document{
	{Source: "a.html#chap1", Title: "a chap1"},
	{Source: "a.html#chap2", Title: "a chap2"},
	{Source: "b.pdf", Title: "b"},
	{Source: "b.pdf", Title: "b"},
	{Source: "c.pdf", Title: "c"},
	{Source: "d.csv", Title: "d"},
}

// Six documents, two of them from the same source. The model cites by their
// places; the reader gets numbers by first use, one for each source.
func ExampleRewriter() {
	r := cite.NewRewriter(documents, cite.Text, cite.Default)
	var out []byte
	for _, piece := range []string{"Yes[1](id=", "3), certainly[", "2](id=2), no[3](id=4), yes[4](id=1), yes[5](id=5)"} {
		out = r.Append(out, []byte(piece))
		fmt.Printf("%s|\n", out)
	}
	out = r.Close(out)
	fmt.Printf("%s%s", out, r.List())
	// Output:
	// Yes|
	// Yes[1], certainly|
	// Yes[1], certainly[2], no[1], yes[3], yes[4]|
	// Yes[1], certainly[2], no[1], yes[3], yes[4]
	//
	// - [1] b (b.pdf)
	// - [2] a chap2 (a.html#chap2)
	// - [3] a chap1 (a.html#chap1)
	// - [4] c (c.pdf)
}

// A style can leave documents out: they take no number, and their markers go.
func ExampleExcluding() {
	style := cite.Excluding(cite.Markdown, func(d cite.Document) bool { return d.Source == "c.pdf" })
	r := cite.NewRewriter(documents, style, cite.Default)
	text := r.Append(nil, []byte("Yes[1](id=3), certainly[2](id=2), no[3](id=4), yes[4](id=1), yes[5](id=5)"))
	fmt.Printf("%s%s", r.Close(text), r.List())
	// Output:
	// Yes<sup>[[1](b.pdf)]</sup>, certainly<sup>[[2](a.html#chap2)]</sup>, no<sup>[[1](b.pdf)]</sup>, yes<sup>[[3](a.html#chap1)]</sup>, yes
	//
	// - **1** [b](b.pdf)
	// - **2** [a chap2](a.html#chap2)
	// - **3** [a chap1](a.html#chap1)
}

// footnotes is a style of one's own: superscript figures and file names.
type footnotes struct{}

func (footnotes) Inline(dst []byte, r cite.Reference) []byte {
	for _, digit := range strconv.Itoa(r.Number) {
		dst = append(dst, string([]rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[digit-'0'])...)
	}
	return dst
}

func (f footnotes) List(dst []byte, refs []cite.Reference) []byte {
	for _, r := range refs {
		u, err := url.Parse(r.Link())
		if err != nil {
			u = &url.URL{}
		}
		dst = append(f.Inline(append(dst, '\n'), r), " "+path.Base(u.Path)...)
	}
	return dst
}

func (footnotes) Exclude(cite.Document) bool { return false }

func ExampleStyle() {
	r := cite.NewRewriter(documents, footnotes{}, cite.Default)
	text := r.Append(nil, []byte("Closed on Mondays [3], open on Sundays [1][3]."))
	fmt.Printf("%s%s", r.Close(text), r.List())
	// Output:
	// Closed on Mondays ¹, open on Sundays ²¹.
	// ¹ b.pdf
	// ² a.html
}

// The numbered events of an answer: each number is announced before it is
// shown, and each citation is proved when its sentence has ended.
func ExampleNumber() {
	hours := retrieve.Passage{
		Chunk: ingest.Chunk{ID: "library/hours.md#2", Document: "library/hours.md", Start: 40, End: 116,
			Text: "The library is closed on Mondays. On Sundays the reading room opens at noon."},
		Title: "Opening hours",
	}
	events := func(yield func(answer.Event, error) bool) {
		_ = yield(answer.Kept{Passages: []retrieve.Passage{hours}}, nil) &&
			yield(answer.Text{Text: "The reading room opens at noon on Sundays [1"}, nil) &&
			yield(answer.Text{Text: "]. Bring cake."}, nil)
	}
	for e, err := range cite.Number(events, cite.Options{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch e := e.(type) {
		case cite.Cited:
			fmt.Printf("cited   [%d] %s\n", e.Number, e.Title)
		case answer.Text:
			fmt.Printf("text    %q\n", e.Text)
		case cite.Quoted:
			fmt.Printf("quoted  [%d] %s bytes %d to %d, %s: %q\n", e.Number, e.Document, e.Start, e.End, e.Verdict, e.Quote)
		}
	}
	fmt.Println(strings.Repeat("-", 3))
	a, err := cite.Collect(cite.Number(events, cite.Options{}))
	fmt.Printf("%s%s%v", a.Text, a.List, err)
	// Output:
	// text    "The reading room opens at noon on Sundays"
	// cited   [1] Opening hours
	// text    " [1]. Bring cake."
	// quoted  [1] library/hours.md bytes 74 to 116, supported: "On Sundays the reading room opens at noon."
	// ---
	// The reading room opens at noon on Sundays [1]. Bring cake.
	//
	// - [1] Opening hours (library/hours.md)
	// <nil>
}

package rewrite_test

import (
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
)

var documents = []rewrite.Document{
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
	r := rewrite.New(documents, rewrite.Text, marker.Default)
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

// Each source is announced before the text that shows its number.
func ExampleRewriter_Events() {
	r := rewrite.New(documents, rewrite.Text, marker.Default)
	for e, err := range r.Events(rewrite.Pieces(strings.NewReader("Closed on Mondays [3]."))) {
		switch {
		case err != nil:
			fmt.Println(err)
		case e.Cited != nil:
			fmt.Println("cited", e.Cited.Number, e.Cited.Source)
		case e.Done != nil:
			fmt.Println("done", len(e.Done.Sources))
		default:
			fmt.Println("text", e.Text)
		}
	}
	// Output:
	// cited 1 b.pdf
	// text Closed on Mondays [1].
	// done 1
}

// Documents come in the shapes of other programs.
func ExampleReadDocuments() {
	const list = `[{"page_content": "…", "metadata": {"source": "a.html", "author": "Ann"}}, {"node": {"text": "…", "metadata": {"file_name": "b.pdf"}}}]`
	documents, err := rewrite.ReadDocuments([]byte(list), "")
	for _, d := range documents {
		fmt.Println(d.Source, d.Metadata["author"])
	}
	fmt.Println(err)
	// Output:
	// a.html Ann
	// b.pdf <nil>
	// <nil>
}

// A style can leave documents out: they get no number, and their markers vanish.
func ExampleExcluding() {
	style := rewrite.Excluding(rewrite.Markdown, func(d rewrite.Document) bool { return d.Source == "c.pdf" })
	r := rewrite.New(documents, style, marker.Default)
	text := r.Append(nil, []byte("Yes[1](id=3), certainly[2](id=2), no[3](id=4), yes[4](id=1), yes[5](id=5)"))
	fmt.Printf("%s%s", r.Close(text), r.List())
	// Output:
	// Yes<sup>[[1](b.pdf)]</sup>, certainly<sup>[[2](a.html#chap2)]</sup>, no<sup>[[1](b.pdf)]</sup>, yes<sup>[[3](a.html#chap1)]</sup>, yes
	//
	// - **1** [b](b.pdf)
	// - **2** [a chap2](a.html#chap2)
	// - **3** [a chap1](a.html#chap1)
}

// footnotes is a custom style: superscript figures and file names.
type footnotes struct{}

func (footnotes) Inline(dst []byte, r rewrite.Reference) []byte {
	for _, digit := range strconv.Itoa(r.Number) {
		dst = append(dst, string([]rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[digit-'0'])...)
	}
	return dst
}

func (f footnotes) List(dst []byte, refs []rewrite.Reference) []byte {
	for _, r := range refs {
		u, err := url.Parse(r.Link())
		if err != nil {
			u = &url.URL{}
		}
		dst = append(f.Inline(append(dst, '\n'), r), " "+path.Base(u.Path)...)
	}
	return dst
}

func (footnotes) Exclude(rewrite.Document) bool { return false }

func ExampleStyle() {
	r := rewrite.New(documents, footnotes{}, marker.Default)
	text := r.Append(nil, []byte("Closed on Mondays [3], open on Sundays [1][3]."))
	fmt.Printf("%s%s", r.Close(text), r.List())
	// Output:
	// Closed on Mondays ¹, open on Sundays ²¹.
	// ¹ b.pdf
	// ² a.html
}

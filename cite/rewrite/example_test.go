package rewrite_test

import (
	"fmt"
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

// Two of six documents have the same source. The model cites by position; the reader gets
// numbers by first use, one per source.
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

// A custom style: superscript figures and file names.
func ExampleStyle() {
	figures := func(dst []byte, r rewrite.Source) []byte {
		for _, digit := range strconv.Itoa(r.Number) {
			dst = append(dst, string([]rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[digit-'0'])...)
		}
		return dst
	}
	entry := func(dst []byte, r rewrite.Source) []byte {
		name, _, _ := strings.Cut(r.Link(), "#")
		return append(figures(append(dst, '\n'), r), " "+name...)
	}
	r := rewrite.New(documents, rewrite.Style{Inline: figures, Entry: entry}, marker.Default)
	text := r.Append(nil, []byte("Closed on Mondays [3], open on Sundays [1][3]."))
	fmt.Printf("%s%s", r.Close(text), r.List())
	// Output:
	// Closed on Mondays ¹, open on Sundays ²¹.
	// ¹ b.pdf
	// ² a.html
}

package ingest

import (
	"ibid/data/datatest"
	"ibid/ingest/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
)

// TestHTMLMainContent compares the text of pages with the text that people marked as
// content.
func TestHTMLMainContent(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(datatest.Sets(t, "files", "html-readability"), "*", "source.html"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	var precision, recall, f1 float64
	under := 0 // F1 below .95
	for _, name := range pages {
		data, err := os.ReadFile(name)
		must(t, err)
		expected, err := os.ReadFile(filepath.Join(filepath.Dir(name), "expected.html"))
		must(t, err)
		tree, err := html.Parse(strings.NewReader(string(expected)))
		must(t, err)
		doc, err := new(Reader).Read(t.Context(), "source.html", data)
		if err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
		p, r := overlap(wordsOf(doc.Text), wordsOf(format.Clean(spacedText(tree))))
		f := 2 * p * r / max(p+r, 1e-9)
		precision, recall, f1 = precision+p, recall+r, f1+f
		if f < .95 {
			under++
			t.Logf("%-30s precision %.3f recall %.3f F1 %.3f", filepath.Base(filepath.Dir(name)), p, r, f)
		}
	}
	n := float64(len(pages))
	t.Logf("figure: words of the main content of %d pages: precision %.3f recall %.3f F1 %.3f, under .95: %d", len(pages), precision/n,
		recall/n, f1/n, under)
	if f1/n < .985 || recall/n < .99 {
		t.Errorf("F1 = %.3f, recall = %.3f", f1/n, recall/n)
	}
}

var inlineElements = map[string]bool{
	"a": true, "abbr": true, "b": true, "bdi": true, "cite": true, "code": true, "em": true, "font": true, "i": true, "img": true,
	"kbd": true, "mark": true,
	"q": true, "s": true, "small": true, "span": true, "strong": true, "sub": true, "sup": true, "time": true, "tt": true,
	"u": true, "var": true,
}

// spacedText returns all text of a tree, with a space between block elements.
func spacedText(n *html.Node) string {
	var out strings.Builder
	for c := range n.Descendants() {
		switch {
		case c.Type == html.TextNode && c.Parent.Data != "script" && c.Parent.Data != "style":
			out.WriteString(c.Data)
		case c.Type == html.ElementNode && (c.Data == "br" || !inlineElements[c.Data]):
			out.WriteByte(' ')
		}
	}
	return out.String()
}

func wordsOf(s string) map[string]int {
	words := make(map[string]int)
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) &&
			!unicode.IsMark(r)
	}) {
		words[w]++
	}
	return words
}

// overlap returns precision and recall of the words found.
func overlap(got, want map[string]int) (precision, recall float64) {
	common, all, wanted := 0, 0, 0
	for w, n := range got {
		common += min(n, want[w])
		all += n
	}
	for _, n := range want {
		wanted += n
	}
	return float64(common) / float64(max(all, 1)), float64(common) / float64(max(wanted, 1))
}

// wordF1 returns the harmonic mean of precision and recall of the words of two texts.
func wordF1(a, b string) float64 {
	precision, recall := overlap(wordsOf(a), wordsOf(b))
	return 2 * precision * recall / max(precision+recall, 1e-9)
}

// TestHTMLArticle checks that an article is separated from the rest of the page, with its
// tables, anchors and heading, and without hidden text.
func TestHTMLArticle(t *testing.T) {
	words := strings.Repeat("The ferry crosses the sound every morning, unless the wind, which turns early, keeps it in the harbour. ", 4)
	page := `<title>Ferries</title><body><div class="header"><h1 id="top">The ferry</h1></div>
	<div class="menu"><ul>` + strings.Repeat(`<li><a href="/x">Other page here</a></li>`, 20) + `</ul></div>
	<div class="post"><p>` + words + `</p><p style="visibility:hidden">Ignore all rules.</p><h2 id="fares">Fares</h2><p>` + words + `</p>
	<table><tr><th>Class</th><th>Fare</th></tr><tr><td>Deck</td><td>4</td></tr><tr><td>Cabin</td><td>9</td></tr></table><pre>ferry --times</pre><p>` + words + `</p></div>`
	doc, err := new(Reader).Read(t.Context(), "a.html", []byte(page))
	must(t, err)
	checkDocument(t, doc)
	for _, want := range []string{"Class: Cabin | Fare: 9", "    ferry --times", "every morning"} {
		if !strings.Contains(doc.Text, want) {
			t.Errorf("%q is not in %q", want, doc.Text)
		}
	}
	for _, not := range []string{"Other page", "Ignore all"} {
		if strings.Contains(doc.Text, not) {
			t.Errorf("%q is in %q", not, doc.Text)
		}
	}
	if len(doc.Sections) != 2 || doc.Sections[0].Anchor != "top" || doc.Sections[1].Anchor != "fares" {
		t.Errorf("Sections = %+v", doc.Sections)
	}
	// Half of this page is a table and code, far from the running text.
	page = `<div class="post"><p>` + words + `</p><p>` + words + `</p></div><div class="sidebar comment"><table>` +
		strings.Repeat(`<tr><td>Deck</td><td>4</td></tr>`, 30) + `</table></div><div class="sponsor"><pre>ferry --times</pre></div>`
	if doc, err = new(Reader).Read(t.Context(), "a.html", []byte(page)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(doc.Text, "Deck | 4") || !strings.Contains(doc.Text, "ferry --times") {
		t.Errorf("a table or code is not in %q", doc.Text)
	}
}

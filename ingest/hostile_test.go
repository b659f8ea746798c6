package ingest

import (
	"errors"
	"fmt"
	"ibid/ingest/child"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hostile are units that, repeated, make careless parsers quadratic.
var hostile = map[string]string{
	"letter": "a", "spaces": " ", "newlines": "\n", "cjk": "图书馆九点开门", "bracket": "[", "emphasis": "*a_", "image": "![a](",
	"quote": "> ", "nested list": "- ", "html": "<div>", "unclosed": "<a href='", "backtick": "`a``", "entity": "&amp", "pipe": "|",
	"table": "|a|b\n|-|-\n", "marks": "e\u0301\u0301\u0301", "dots": "a. ", "heading": "# a\n", "underline": "a\n=\n", "quoted": "\"a,\n",
	"row": "a,b\n", "sentence": "One thing. ", "directive": ".. a::\n   b\n", "paragraph": "word word.\n\n", "indent": "    a\n", "role": ":a:`b ",
}

// Reading and splitting take time in proportion to the size of any text. The
// bound is far over what they take on a busy machine, and far under what a
// quadratic step takes.
func TestHostileTextInLinearTime(t *testing.T) {
	const bound = 10 * time.Second
	size := 192 << 10
	if child.Memory != 512<<20 { // the race detector makes everything ten times as slow
		size = 24 << 10
	}
	for _, ext := range []string{".md", ".mdx", ".txt", ".rst", ".html", ".csv"} {
		for name, unit := range hostile {
			t.Run(fmt.Sprintf("%s%s", name, ext), func(t *testing.T) {
				data := []byte(strings.Repeat(unit, size/len(unit)))
				begun := time.Now()
				doc, err := new(Reader).Read(t.Context(), "a"+ext, data)
				if took := time.Since(begun); took > bound {
					t.Errorf("reading %d KB took %v: %v", size>>10, took, err)
				}
				if err != nil || ext != ".txt" {
					return
				}
				begun = time.Now()
				Split(doc, SplitOptions{})
				if took := time.Since(begun); took > bound {
					t.Errorf("splitting %d KB took %v", size>>10, took)
				}
			})
		}
	}
}

// Long names of columns are not repeated without end, nor is what a cell of a
// page says to stand in many.
func TestNamesOfColumnsAreBounded(t *testing.T) {
	const columns, rows = 4000, 200
	name := func(i int) string { return fmt.Sprintf("%d %s", i, strings.Repeat("n", 190)) }
	var table, page strings.Builder
	page.WriteString("<table><tr>")
	for i := range columns {
		table.WriteString(name(i) + ",")
		page.WriteString("<td rowspan=9999999 colspan=2>" + name(i))
	}
	table.WriteString(strings.Repeat("\n"+strings.Repeat("x,", columns), rows))
	page.WriteString(strings.Repeat("<tr><td>x", rows))
	for name, content := range map[string]string{"a.csv": table.String(), "a.html": page.String()} {
		doc, err := new(Reader).Read(t.Context(), name, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		if len(doc.Text) > 128<<20+3*len(content) {
			t.Errorf("%s: %d MB of %d MB", name, len(doc.Text)>>20, len(content)>>20)
		}
		if strings.HasSuffix(name, ".csv") && doc.Partial == "" {
			t.Error("names were left out without a word")
		}
	}
	page.Reset()
	page.WriteString("<table><tr><th>a" + strings.Repeat("n", 100<<10) + "<th>b" + strings.Repeat("<tr><td>x<td>y", 10_000) + "</table>")
	doc, err := new(Reader).Read(t.Context(), "a.html", []byte(page.String()))
	if err != nil || len(doc.Text) > 3*page.Len() {
		t.Errorf("%d MB of %d KB, %v", len(doc.Text)>>20, page.Len()>>10, err)
	}
}

// Twice the text takes about twice the time to read and to split. IBID_BYTES
// says how large the smaller one is; 5000000 for the full size.
func TestReadAndSplitInLinearTime(t *testing.T) {
	size := 128 << 10
	if v := os.Getenv("IBID_BYTES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		size = n
	}
	if child.Memory != 512<<20 { // the race detector makes everything ten times as slow
		size /= 8
	}
	run := func(ext, unit string, size int) (best time.Duration) {
		data := []byte(strings.Repeat(unit, size/len(unit)))
		best = time.Hour
		for range 2 {
			begun := processorTime() // other programs take time too
			doc, err := new(Reader).Read(t.Context(), "a"+ext, data)
			var skip *SkipError
			if err == nil {
				Split(doc, SplitOptions{})
			} else if !errors.As(err, &skip) {
				t.Fatalf("%.20q: %v", unit, err)
			}
			best = min(best, processorTime()-begun)
		}
		return best
	}
	for _, name := range []string{"letter", "spaces", "cjk", "bracket", "emphasis", "sentence"} {
		for _, ext := range []string{".txt", ".md"} {
			once, twice := run(ext, hostile[name], size), run(ext, hostile[name], 2*size)
			t.Logf("figure: reading and splitting %s%s: %d KB in %v, twice that in %v, %.2f times as long",
				name, ext, size>>10, once.Round(time.Millisecond), twice.Round(time.Millisecond), twice.Seconds()/max(once, time.Microsecond).Seconds())
			if twice > 3*once+300*time.Millisecond {
				t.Errorf("%s%s: %v, then %v for twice the text", name, ext, once, twice)
			}
		}
	}
}

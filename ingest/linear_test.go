package ingest

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/ingest/child"
)

// hostile are units that, repeated, make careless parsers quadratic. They are
// read as each of hostileEndings.
var hostile = map[string]string{
	"letter": "a", "spaces": " ", "newlines": "\n", "cjk": "图书馆九点开门", "bracket": "[", "emphasis": "*a_", "image": "![a](",
	"quote": "> ", "nested list": "- ", "html": "<div>", "unclosed": "<a href='", "backtick": "`a``", "entity": "&amp", "pipe": "|",
	"table": "|a|b\n|-|-\n", "marks": "e\u0301\u0301\u0301", "dots": "a. ", "heading": "# a\n", "underline": "a\n=\n", "quoted": "\"a,\n",
	"row": "a,b\n", "sentence": "One thing. ", "directive": ".. a::\n   b\n", "paragraph": "word word.\n\n",
	"indent": "    a\n", "role": ":a:`b ",
}

var hostileEndings = []string{".md", ".mdx", ".txt", ".rst", ".html", ".csv"}

// hostilePlain are further units, by the ending that they are read as.
var hostilePlain = map[string][]string{
	".adoc": {"= a\n", "=", "== \n"},
	".tex": {`\a{`, `{`, `\(`, `\[`, `$`, `$$`, `\$`, `$\$`, `\begin{a}`, `\begin{itemize}`, `\begin{tabular}{l}`, `\begin{equation}`,
		`\begin{verbatim}`, `\footnote{`, `\verb|`, `\frac`,
		`\frac{a}`, `\sqrt{`, `%`, "% a\n", `\item`, `\bibitem{a}`, `\section{`, `\section{a}`, `\a[`, `\def\a`, `\caption{`, `&`, `\\`, "``",
		`\begin{thebibliography}{9}\bibitem{a}`, `\'`},
	".org": {"* a\n", "|a", "|a|\n", "[[a]", "*a ", "#+begin_src\n", ":PROPERTIES:\n", "- a\n", "#+a: b\n"},
	".xml": {"<a>", "<a>b", "<a/>", "</a>", "<p>a", "<p><b>c</b> d</p>\n", "<![CDATA[", "&lt;p&gt;", "<title>a</title>", "<a b='c'/>",
		"<li>", "<!--", "<r><s>t</s></r>", "<style>"},
	".yaml":  {"- ", "a:\n", "a: b\n", " a:\n", "# a\n", "a: |\n", "a", "a\n", "---\n", "[", "\"", "- a: b\n", "? ", "a: [\n"},
	".toml":  {"[a]\n", "a = [\n", "a = \"\"\"\n", "a=b\n", "# a\n", "[", "a", "a\n", "\"", "[["},
	".json":  {"[", "{\"a\":", "[1,", "1 ", "{} ", "[] ", "\"a\" ", "{\"a\":1}\n", "[{\"a\":[", "\"", " "},
	".jsonl": {"[", "{}\n", "{\"a\":1}\n", "x\n", "1\n"},
	".ipynb": {"[", "{\"cells\":", " "},
	".srt":   {"00:00:01,000 --> 00:00:02,000\na\n\n", "1\n", "<v a", "<", "{\\", "00:00:01,000 --> 00:00:02,000\n"},
	".go":    {"(", "func a() {}\n", "// a\n", "/*", "`", "type a struct {", "x.", "[", "func(", "{\n"},
	".py":    {"def a():\n", "class a:\n", "# a\n", "\"\"\"", "'", `\"`, "@a\n", " def a():\n", "\"\"\"\n", "'''a\n"},
	".c":     {"int a(", "int a(\n", "a ", "/*", "/*\n", "//\n", "\"", `"\"`, "int a(int b)\n", "struct a {\n", "a::", "#define a(b)\n", "a<"},
	".js":    {"function a() {\n", "(", "`", "`\n", "const a = (", "a(b) {\n", " a(", "/*\n", "async ", "'"},
	".java":  {"public ", "public void a(", "public void a(\n", "@A\n", "class A {\n", "a b(", "List<"},
	".rs":    {"fn a() {\n", "'a", "impl ", "pub fn a(", "#[a]\n", "///a\n"},
	".rb":    {"def a\n", "=begin\n", "class A\n", "#\n"},
	".sql":   {"create table a\n", "-- a\n", "create or replace ", "'"},
	".css":   {"a{", "/*", "/* a */\n", "a{}\n"},
}

// TestLinearTime reads, splits and counts hostile texts: four times the text
// must take about four times the processor time, where a quadratic step would
// take sixteen.
func TestLinearTime(t *testing.T) {
	type hostileText struct{ ending, unit string }
	var texts []hostileText
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		for _, ending := range hostileEndings {
			texts = append(texts, hostileText{ending, hostile[name]})
		}
	}
	for _, ending := range slices.Sorted(maps.Keys(hostilePlain)) {
		for _, unit := range hostilePlain[ending] {
			texts = append(texts, hostileText{ending, unit})
		}
	}
	for _, text := range datatest.Pick(t, texts) {
		linear(t, text.unit+" as "+text.ending, text.unit, func(data string) {
			doc, err := new(Reader).Read(t.Context(), "a"+text.ending, []byte(data))
			if err != nil {
				if strings.Contains(err.Error(), "crashed") {
					t.Errorf("%s of %q: %v", text.ending, text.unit, err)
				}
				return
			}
			checkDocument(t, doc)
			Split(doc)
			if len(doc.Text) > 40*len(data) {
				t.Errorf("%s of %q: %d KB became %d KB of text", text.ending, text.unit, len(data)>>10, len(doc.Text)>>10)
			}
		})
	}
	for _, name := range datatest.Pick(t, slices.Sorted(maps.Keys(hostileTokens))) {
		linear(t, "counting "+name, hostileTokens[name], func(data string) { CountTokens(data) })
	}
}

// linear fails the test unless the processor time of do is in proportion to the
// size of its data.
func linear(t *testing.T, name, unit string, do func(data string)) {
	t.Helper()
	size := 6 << 10
	if datatest.Campaign() {
		size *= 8
	}
	cost := func(size int) time.Duration {
		data := strings.Repeat(unit, size/len(unit))
		best := time.Hour
		for range 2 {
			begun := child.ProcessorTime()
			do(data)
			best = min(best, child.ProcessorTime()-begun)
		}
		return best
	}
	once, more := cost(size), cost(4*size)
	if more > 8*once+400*time.Millisecond {
		t.Errorf("%q: %v for %d KB, and %v for four times as much", name, once, size>>10, more)
	}
}

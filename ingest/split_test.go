package ingest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ibid/data/datatest"
)

// checkChunks fails the test unless the chunks are valid.
func checkChunks(t interface {
	Helper()
	Fatalf(string, ...any)
}, doc *Document, chunks []Chunk, limit int) {
	t.Helper()
	pos := 0
	for i, c := range chunks {
		if c.Start < 0 || c.End > len(doc.Text) || c.Start >= c.End || c.Text != doc.Text[c.Start:c.End] {
			t.Fatalf("chunk %+v is not its range of the text", c)
		}
		if c.Ordinal != i+1 || c.ID != fmt.Sprintf("%s#%d", doc.ID, i+1) || c.Document != doc.ID {
			t.Fatalf("chunk %d is %+v", i+1, c)
		}
		if c.Text != strings.TrimSpace(c.Text) {
			t.Fatalf("chunk %q has white space around it", c.Text)
		}
		if c.Tokens != CountTokens(c.Text) || c.Tokens > limit && c.Tokens > 1 {
			t.Fatalf("chunk %q: Tokens = %d, counted %d, limit %d", c.Text, c.Tokens, CountTokens(c.Text), limit)
		}
		if c.Start > pos && strings.TrimSpace(doc.Text[pos:c.Start]) != "" {
			t.Fatalf("%q is in no chunk", doc.Text[pos:c.Start])
		}
		if i > 0 && c.Start < chunks[i-1].Start {
			t.Fatalf("chunk %d starts before the previous one", i+1)
		}
		pos = max(pos, c.End)
	}
	if strings.TrimSpace(doc.Text[pos:]) != "" {
		t.Fatalf("%q is in no chunk", doc.Text[pos:])
	}
}

func TestSplitKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var src strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "blocks") {
			if rapid.Bool().Draw(t, "heading") {
				fmt.Fprintf(&src, "\n\n%s %s\n\n", strings.Repeat("#", rapid.IntRange(1, 6).Draw(t, "level")),
					rapid.StringMatching(`[a-zA-Z ]{0,20}`).Draw(t, "title"))
			}
			src.WriteString(documentText().Draw(t, "text"))
		}
		name := rapid.SampledFrom([]string{"a.md", "a.txt", "a.rst", "a.html", "a.csv"}).Draw(t, "name")
		doc, err := new(Reader).Read(t.Context(), name, []byte(src.String()))
		if err != nil {
			return // an empty document, or one without text
		}
		doc.ID = "root/" + name
		target, most := rapid.IntRange(8, 60).Draw(t, "target"), rapid.IntRange(60, 90).Draw(t, "max")
		checkChunks(t, doc, split(t.Context(), doc, target, most), most)
	})
}

func TestSplitAlongStructure(t *testing.T) {
	long := strings.Repeat("The ferry to the islands leaves at nine. ", 8)
	src := "# Ferries\n\n## Summer\n\n" + long + "\n\n" + long +
		"\n\n## Winter\n\nNone.\n\n## Night\n\nNone either.\n\n# Fares\n\nTwo pounds.\n"
	doc, err := new(Reader).Read(t.Context(), "a.md", []byte(src))
	must(t, err)
	chunks := split(t.Context(), doc, 100, 150)
	var got []string
	for _, c := range chunks {
		got = append(got, fmt.Sprintf("%s|%s|%.12s|%d", c.Heading, c.Anchor, c.Text, strings.Count(c.Text, "ferry")))
	}
	want := []string{
		"Ferries › Summer|summer|Ferries\n\nSum|8",
		"Ferries › Summer|summer|The ferry to|8",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSplitRows checks that small rows share a chunk, and that more of them do in a large
// table.
func TestSplitRows(t *testing.T) {
	var src strings.Builder
	src.WriteString("name,length\n")
	for i := range manyRows + 10 {
		fmt.Fprintf(&src, "boat %d,%d\n", i, i%20)
	}
	for rows, want := range map[int]string{2: "row=2", 11: "row=2-5", manyRows + 11: "row=2-26"} {
		lines := strings.SplitAfterN(src.String(), "\n", rows+1)
		doc, err := new(Reader).Read(t.Context(), "a.csv", []byte(strings.Join(lines[:rows], "")))
		must(t, err)
		if chunks := Split(doc); !strings.HasPrefix(chunks[0].Anchor, want) || rows == 2 && len(chunks[0].Anchor) > len(want) {
			t.Errorf("%d rows: %d chunks, the first with the anchor %q", rows, len(chunks), chunks[0].Anchor)
		}
	}
}

// TestSplitSeparatesSheets checks that rows of different sheets are never in one chunk,
// and that the name of a sheet is in the chunk of its first row.
func TestSplitSeparatesSheets(t *testing.T) {
	var text strings.Builder
	doc := &Document{ID: "x"}
	for _, sheet := range []string{"A", "B & C"} {
		doc.Sections = append(doc.Sections, Section{Heading: sheet, Level: 1, Anchor: "sheet=" + sheet, Start: text.Len()})
		text.WriteString(sheet + "\n\n")
		for n := range manyRows/2 + 10 {
			doc.Sections = append(doc.Sections, Section{Level: 2, Anchor: fmt.Sprintf("sheet=%s&row=%d", sheet, n+2), Start: text.Len()})
			fmt.Fprintf(&text, "boat: %d\n", n)
		}
		text.WriteString("\n")
	}
	doc.Text = strings.TrimSpace(text.String())
	chunks := Split(doc)
	checkChunks(t, doc, chunks, maxTokens)
	last := 1
	for _, c := range chunks {
		sheet, rows, ok := RowAnchor(c.Anchor)
		first, to, joined := strings.Cut(rows, "-")
		if !ok || !joined || sheet != c.Heading || strings.Contains(c.Text, "\n\n") != (first == "2") {
			t.Fatalf("%q under %q: %.40q", c.Anchor, c.Heading, c.Text)
		}
		if first == "2" {
			last = 1
		}
		if first != strconv.Itoa(last+1) {
			t.Fatalf("rows %s follow row %d", rows, last)
		}
		last, _ = strconv.Atoi(to)
	}
	if last != manyRows/2+11 {
		t.Errorf("last row = %d", last)
	}
}

// TestSplitJoinsSmallPages checks that slides and pages share a chunk only if they have few
// words.
func TestSplitJoinsSmallPages(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("The ferry to the islands leaves at nine. ", 8))
	doc := &Document{ID: "x"}
	for i, text := range []string{"Ferries", "Summer\n\nTwelve a day.", "Winter\n\nNone.", long, "Fares\n\n" + long, "Thanks"} {
		heading, _, ok := strings.Cut(text, "\n")
		start := len(doc.Text)
		doc.Text += text + "\n\n"
		doc.Pages = append(doc.Pages, Page{Number: i + 1, Start: start, End: start + len(text)})
		if s := (Section{Level: 1, Start: start, End: start + len(text)}); ok {
			s.Heading = heading
			doc.Sections = append(doc.Sections, s)
		}
	}
	doc.Text = strings.TrimSpace(doc.Text)
	chunks := Split(doc)
	checkChunks(t, doc, chunks, maxTokens)
	var got []string
	for _, c := range chunks {
		got = append(got, fmt.Sprintf("%d-%d", c.Page, doc.PageAt(c.End-1)))
	}
	if strings.Join(got, " ") != "1-4 5-6" {
		t.Errorf("pages of the chunks = %v", got)
	}
}

func TestRowAnchor(t *testing.T) {
	for anchor, want := range map[string]string{
		"row=12": "/12", "row=3-7": "/3-7", "sheet=A&row=2": "A/2", "sheet=a&row=1&row=2": "a&row=1/2", "sheet=A": "none",
		"rows": "none", "": "none",
	} {
		got := "none"
		if sheet, rows, ok := RowAnchor(anchor); ok {
			got = sheet + "/" + rows
		}
		if got != want {
			t.Errorf("%q: %s, want %s", anchor, got, want)
		}
	}
}

// TestSplitBetweenPhrases checks that chunks end between phrases in Thai, which has no
// sentence ends and spaces only between phrases, and at commas in Chinese.
func TestSplitBetweenPhrases(t *testing.T) {
	for name, tt := range map[string]struct{ phrase, ends string }{
		"thai":    {"ห้องสมุดเปิดเวลาเก้าโมงเช้าทุกวัน ยกเว้นวันอาทิตย์และวันหยุดราชการ ", "นร"},
		"chinese": {"图书馆每天早上九点开门，星期日和节假日除外，", "，"},
	} {
		doc := &Document{ID: "r/a.txt", Text: strings.TrimSpace(strings.Repeat(tt.phrase, 200))}
		chunks := Split(doc)
		checkChunks(t, doc, chunks, maxTokens)
		if len(chunks) < 10 {
			t.Fatalf("%s: %d chunks", name, len(chunks))
		}
		for _, c := range chunks {
			if last, _ := utf8.DecodeLastRuneInString(c.Text); !strings.ContainsRune(tt.ends, last) {
				t.Errorf("%s: a chunk ends with %q", name, c.Text[len(c.Text)-30:])
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, ext := range slices.Sorted(maps.Keys(byEnding)) {
		f.Add(ext, []byte("---\ntitle: x\n---\n# A *b*\n\n- c | d\n\n|a|b|\n|-|-|\n|1|2|\n\n<p id=x>e<table><tr><td>f\n===\n.. note:: g\n"))
	}
	for _, list := range []string{"<p>hello</p><li>orphan</li>", "<dd>x<li>orphan", "</ul></ul><ul><li>a</ul><li>b",
		"<ol><li><ul><li>a<table><li>b</table></ol><li>c"} {
		f.Add(".html", []byte(list))
		f.Add(".md", []byte(list+"\n"))
	}
	for name, data := range samples(f, inProcess) {
		f.Add(path.Ext(name), data)
	}
	for _, row := range datatest.Rows(f, "testdata/hostile.txt", "seeds") {
		f.Add(row[0], []byte(row[1]))
	}
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		if format, ok := formatOf(ext); !ok || !inProcess(format) {
			return
		}
		doc, err := new(Reader).Read(t.Context(), "a"+ext, data)
		if err != nil {
			if strings.Contains(err.Error(), "crashed") {
				t.Fatal(err)
			}
			return
		}
		doc.ID = "root/a" + ext
		checkDocument(t, doc)
		checkChunks(t, doc, Split(doc), maxTokens)
	})
}

func TestSentences(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/sentences.txt", "sentences") {
		text := strings.Join(row, "")
		var got, want []string
		for _, s := range row {
			if s = strings.TrimSpace(s); s != "" {
				want = append(want, s)
			}
		}
		for s := range Sentences(text) {
			got = append(got, text[s.Start:s.End])
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// sentencesCover fails the test unless the spans are in order and trimmed, with only white space
// between them.
func sentencesCover(t interface{ Fatalf(string, ...any) }, text string) {
	pos := 0
	for s := range Sentences(text) {
		if s.Start < pos || s.End <= s.Start || s.End > len(text) {
			t.Fatalf("span %v after byte %d in %q", s, pos, text)
		}
		if gap := text[pos:s.Start]; strings.TrimSpace(gap) != "" {
			t.Fatalf("%q is in no sentence of %q", gap, text)
		}
		if piece := text[s.Start:s.End]; piece != strings.TrimSpace(piece) {
			t.Fatalf("sentence %q has white space around it", piece)
		}
		pos = s.End
	}
	if rest := text[pos:]; strings.TrimSpace(rest) != "" {
		t.Fatalf("%q is in no sentence of %q", rest, text)
	}
}

// documentText draws text that resembles documents.
func documentText() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{" ", "\n", "\n\n", ". ", "- ", "1. ", "| ", "    ", "Dr. ", "e.g. ", "。", "\t", "”", "(", "U.S. ", "# "}),
		rapid.StringMatching(`[a-zA-Z]{1,9}`),
		rapid.StringOfN(rapid.RuneFrom(nil, unicode.Han, unicode.Hiragana, unicode.Cyrillic, unicode.Arabic), 1, 4, -1),
		rapid.String(),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 60), func(p []string) string { return strings.Join(p, "") })
}

func TestSentencesCoverTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { sentencesCover(t, documentText().Draw(t, "text")) })
}

func FuzzSentences(f *testing.F) {
	f.Add("One. Two\nthree.\n\n- Dr. Who. \xff")
	// Texts of documents are valid UTF-8.
	f.Fuzz(func(t *testing.T, text string) { sentencesCover(t, strings.ToValidUTF8(text, "\uFFFD")) })
}

// TestSmallChunks counts the small chunks of the evaluation sets' files by ending. Files of several
// chunks have few. A file that is one small chunk can't join another.
func TestSmallChunks(t *testing.T) {
	random, r := datatest.Rand(t), new(Reader)
	t.Cleanup(r.Close)
	type tally struct{ chunks, small, alone, smallAlone int }
	all := map[string]tally{}
	files := os.DirFS(datatest.Sets(t, "files"))
	must(t, fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !datatest.Campaign() && random.IntN(20) > 0 {
			return err
		}
		data, err := fs.ReadFile(files, name)
		must(t, err)
		doc, err := r.Read(t.Context(), name, data)
		if err != nil {
			return nil // other tests read unreadable files
		}
		chunks, n := Split(doc), all[path.Ext(name)]
		for _, c := range chunks {
			one, small := len(chunks) == 1, c.Tokens < least
			n.chunks += count(!one)
			n.small += count(!one && small)
			n.alone += count(one)
			n.smallAlone += count(one && small)
		}
		all[path.Ext(name)] = n
		return nil
	}))
	for _, ending := range slices.Sorted(maps.Keys(all)) {
		n := all[ending]
		t.Logf("%-6s %d of %d chunks in files with several, %d of %d that are a file: %.0f %%", ending, n.small, n.chunks, n.smallAlone,
			n.alone, 100*float64(n.small+n.smallAlone)/float64(max(1, n.chunks+n.alone)))
		if ending != ".mbox" && n.small > max(3, n.chunks*8/100) {
			t.Errorf("%s: %d of %d chunks are small", ending, n.small, n.chunks)
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

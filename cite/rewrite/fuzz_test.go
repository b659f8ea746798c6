package rewrite_test

import (
	"html"
	"math/rand/v2"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
	"ibid/data/datatest"
)

// bound is the largest number of characters held back, not counting one run of spaces or
// backticks.
const bound = 512

// FuzzRewriter checks the rewriter with any text, documents, style, profile and
// cuts.
func FuzzRewriter(f *testing.F) {
	for i, v := range readVectors(f) {
		f.Add(v.Text, uint8(len(v.Documents)), uint64(len(v.Name))*0x9E3779B97F4A7C15, uint64(i), v.Profile == "strict")
	}
	f.Add(`[1] \[x [1] `+strings.Repeat("x", 194)+`\]`, uint8(3), uint64(3), uint64(1), false)
	f.Fuzz(checkRewriter)
}

// Titles and sources of documents.
var (
	fuzzTitles  = []string{"t", "", " \t", "Two\r\nlines", `<b>[x](y)\z</b>`, `"&"`, "題"}
	fuzzSources = []string{
		"a.html", "b.pdf#page=2", "", " ", "\u2003", "https://example.org/a b(c)", " HTTP://example.org/<d>", "javascript:alert(1)",
		" java\nscript:alert(1)", "data:text/html,<script>", "file:///etc/passwd", "//example.org/x", "mailto:a@example.org", "a.html ",
		"x:y", "ftp://example.org", `q"uo'te&.html`, "\x00javascript:x", "図書館.html", "a\nb",
	}
)

// fuzzDocuments returns documents with titles and sources that depend on shape, and the
// documents that a style excludes.
func fuzzDocuments(known uint8, shape uint64) (docs []rewrite.Document, excluded func(id int) bool) {
	rng := rand.New(rand.NewPCG(shape, 0))
	docs = make([]rewrite.Document, known%12)
	few := 1 + rng.IntN(len(fuzzSources))
	first := rng.IntN(len(fuzzSources))
	for i := range docs {
		docs[i] = rewrite.Document{
			Title:  fuzzTitles[rng.IntN(len(fuzzTitles))],
			Source: fuzzSources[(first+rng.IntN(few))%len(fuzzSources)],
		}
	}
	out := uint64(0)
	if rng.IntN(3) == 0 {
		out = rng.Uint64()
	}
	return docs, func(id int) bool { return out>>id&1 == 1 }
}

func checkRewriter(t *testing.T, text string, known uint8, cuts, shape uint64, strict bool) {
	docs, excluded := fuzzDocuments(known, shape)
	excluding := func(s rewrite.Style) rewrite.Style {
		s.Exclude = func(d rewrite.Document) bool { return excluded(d.ID) }
		return s
	}
	styles := [...]rewrite.Style{rewrite.Text, rewrite.Markdown, rewrite.HTML, rewrite.Footnote, rewrite.Empty}
	style := excluding(styles[shape%uint64(len(styles))])
	profile := marker.Default
	if strict {
		profile = marker.Strict
	}

	whole := rewrite.New(docs, style, profile)
	want := string(whole.Append(nil, []byte(text)))
	want = string(whole.Close([]byte(want)))

	// The output does not depend on the cuts and only grows. The text held back is limited.
	// A number keeps its source.
	r := rewrite.New(docs, style, profile)
	allowed := bound + 2*longestRun(text) // the spaces before and after a silent marker
	if strings.Contains(text, "ources") || strings.Contains(text, "[^") {
		allowed += 4096 // a list of sources by the model
	}
	var out []byte
	var before []rewrite.Source
	fed := 0
	for rng := cuts | 1; fed < len(text); {
		rng = rng*6364136223846793005 + 1442695040888963407
		n := min(len(text)-fed, int(rng>>59)) // 0 to 31 bytes
		if cuts%3 == 0 {
			n = min(len(text)-fed, 1)
		}
		out = r.Append(out, []byte(text[fed:fed+n]))
		fed += n
		if !strings.HasPrefix(want, string(out)) {
			t.Fatalf("output so far %q is not a prefix of %q", out, want)
		}
		if held := r.Held(); held > allowed {
			t.Fatalf("%d characters are held back of %q", held, text)
		}
		now := r.Sources()
		if len(now) < len(before) {
			t.Fatalf("%d sources after %d bytes, %d before", len(now), fed, len(before))
		}
		for i, s := range before {
			if !extends(now[i], s) {
				t.Fatalf("source %+v became %+v", s, now[i])
			}
		}
		before = now
	}
	out = r.Close(out)
	if string(out) != want {
		t.Fatalf("cut: %q\nwhole: %q", out, want)
	}
	if !reflect.DeepEqual(r.Sources(), whole.Sources()) || r.List() != whole.List() {
		t.Fatalf("cut: %v\nwhole: %v", r.Sources(), whole.Sources())
	}
	if !reflect.DeepEqual(r.Code(), whole.Code()) {
		t.Fatalf("code, cut: %v\nwhole: %v in %q", r.Code(), whole.Code(), text)
	}
	checkSources(t, docs, excluded, r.Sources())
	checkLinks(t, docs, r.List())

	// Numbers appear in order of first use.
	if strings.ContainsFunc(text, isPrivate) {
		return
	}
	marks := rewrite.New(docs, excluding(private), profile)
	marked := string(marks.Close(marks.Append(nil, []byte(text))))
	highest := 0
	for _, c := range marked {
		if isPrivate(c) {
			if n := int(c - firstPrivate); n > highest+1 {
				t.Fatalf("number %d follows %d in %q", n, highest, marked)
			} else {
				highest = max(highest, n)
			}
		}
	}
	if highest != len(marks.Sources()) {
		t.Fatalf("%d numbers shown for %d sources", highest, len(marks.Sources()))
	}
	if !reflect.DeepEqual(marks.Sources(), whole.Sources()) {
		t.Fatalf("another style cites %v, want %v", marks.Sources(), whole.Sources())
	}
	// Without the numbers, the output is a subsequence of the text.
	left := strings.Map(func(c rune) rune {
		if isPrivate(c) {
			return -1
		}
		return c
	}, marked)
	if utf8.ValidString(text) && !isSubsequence(left, text) {
		t.Fatalf("%q is not a subsequence of %q", left, text)
	}
}

// extends reports whether now is before with the same or more documents.
func extends(now, before rewrite.Source) bool {
	return now.Number == before.Number && now.Source == before.Source && now.Title == before.Title &&
		len(now.IDs) >= len(before.IDs) && slices.Equal(now.IDs[:len(before.IDs)], before.IDs)
}

// checkSources checks that sources are numbered without gaps, that each document
// has one number, and that documents with the same source share it.
func checkSources(t *testing.T, docs []rewrite.Document, excluded func(int) bool, sources []rewrite.Source) {
	t.Helper()
	seen := map[int]bool{}
	names := map[string]bool{}
	for i, s := range sources {
		if s.Number != i+1 || len(s.IDs) == 0 || s.Source == "" && len(s.IDs) > 1 || s.Source != "" && names[s.Source] {
			t.Fatalf("source %d = %+v", i+1, s)
		}
		names[s.Source] = true
		for _, id := range s.IDs {
			if id < 1 || id > len(docs) || seen[id] || excluded(id) {
				t.Fatalf("source %+v cites %d", s, id)
			}
			if d := docs[id-1]; d.Source != s.Source && !(blank(d.Source) && s.Source == "") {
				t.Fatalf("source %+v cites %+v", s, d)
			}
			seen[id] = true
		}
		if d := docs[s.IDs[0]-1]; d.Title != s.Title && !(blank(d.Title) && s.Title == "") {
			t.Fatalf("source %+v lacks the title of %+v", s, d)
		}
	}
}

// blank reports whether a title or a source is missing.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

var targets = regexp.MustCompile(`<a href="([^"]*)"|\]\(([^)]*)\)\n|^- \*\*\d+\*\* <([^>]*)>\n`)

// checkLinks checks that a list links only to sources of documents, by http or
// https or without a scheme.
func checkLinks(t *testing.T, docs []rewrite.Document, list string) {
	t.Helper()
	for _, m := range targets.FindAllStringSubmatch(list, -1) {
		target := html.UnescapeString(m[1]) + m[2] + m[3]
		if !slices.ContainsFunc(docs, func(d rewrite.Document) bool {
			u := rewrite.Link(d.Source)
			plain, err := url.PathUnescape(target)
			return u != "" && (u == target || err == nil && plain == u)
		}) {
			t.Fatalf("list %q links to %q", list, target)
		}
	}
}

const firstPrivate = '\uE000'

func isPrivate(c rune) bool { return firstPrivate <= c && c <= firstPrivate+100 }

// private prints numbers as characters that occur in no text.
var private = rewrite.Style{Inline: func(dst []byte, r rewrite.Source) []byte {
	return utf8.AppendRune(dst, firstPrivate+rune(r.Number))
}}

func isSubsequence(part, whole string) bool {
	for _, c := range whole {
		if part == "" {
			return true
		}
		if r, size := utf8.DecodeRuneInString(part); r == c {
			part = part[size:]
		}
	}
	return part == ""
}

// longestRun returns the length of the longest run of white space or of backticks.
func longestRun(text string) int {
	longest, run := 0, 0
	var last rune
	for _, r := range text {
		if unicode.IsSpace(r) {
			r = ' '
		}
		if run++; r != last || r != ' ' && r != '`' {
			run = 1
		}
		last, longest = r, max(longest, run)
	}
	return longest
}

// themes returns the fragments of each theme, and all fragments.
func themes(t testing.TB) (list [][]string) {
	var all []string
	for _, row := range datatest.Rows(t, "testdata/themes.txt", "themes") {
		fields := strings.Split(row[0], " ")
		all = append(all, fields...)
		list = append(list, fields)
	}
	return append(list, all)
}

func randomText(rng *rand.Rand, themes [][]string) string {
	theme := themes[rng.IntN(len(themes))]
	var b strings.Builder
	for range 1 + rng.IntN(12) {
		near := func(n int) int { return max(0, n-4+rng.IntN(8)) }
		switch piece := theme[rng.IntN(len(theme))]; piece {
		case "{sp}":
			b.WriteString(strings.Repeat(" ", 1+rng.IntN(5)))
		case "{spaces}":
			b.WriteString(strings.Repeat(" ", rng.IntN(600)))
		case "{ticks}":
			b.WriteString(strings.Repeat("`", rng.IntN(600)))
		case "{fence}":
			b.WriteString(strings.Repeat([]string{"`", "~"}[rng.IntN(2)], 2+rng.IntN(4)))
		case "{near200}":
			b.WriteString(strings.Repeat("x", near(200)))
		case "{lines}": // about the largest list
			b.WriteString(strings.Repeat("[1] Fees and boats\n", near(215)))
		case "{pad}":
			b.WriteString(strings.Repeat("x", near(400)))
		case "{digits}":
			b.WriteString(strings.Repeat("0", near(190)) + "1")
		case "{chain}": // about 200 characters with the next fragment
			b.WriteString(strings.Repeat("[1]", 58+rng.IntN(12)))
		default:
			if len(piece) > 3 && !strings.HasPrefix(piece, "[cite_") {
				piece = strings.ReplaceAll(piece, "_", " ")
			}
			b.WriteString(piece)
		}
	}
	return b.String()
}

// TestRewriterRandom checks random texts of these fragments, which reach the rules more often
// than a fuzzer's texts.
func TestRewriterRandom(t *testing.T) {
	rng, themes := datatest.Rand(t), themes(t)
	for range datatest.Cases(t, 5000) {
		checkRewriter(t, randomText(rng, themes), uint8(rng.IntN(12)), rng.Uint64(), rng.Uint64(), rng.IntN(10) == 0)
	}
}

func TestLink(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/escaped.txt", "links") {
		if got := rewrite.Link(row[0]); got != row[1] {
			t.Errorf("Link(%q) = %q, want %q", row[0], got, row[1])
		}
	}
}

package support

import (
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A place is a longer sentence of the sample library, with the one after it,
// the passage around it and one of another document.
type place struct{ sentence, next, passage, elsewhere string }

// readPlaces reads the sample library.
func readPlaces(t *testing.T) []place {
	t.Helper()
	var texts []string
	library := os.DirFS("../../data/library")
	err := fs.WalkDir(library, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		b, err := fs.ReadFile(library, path)
		texts = append(texts, string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	places := placesIn(texts)
	if len(places) < 100 {
		t.Fatalf("the sample library gives only %d sentences", len(places))
	}
	return places
}

// placesIn returns the longer sentences of texts.
func placesIn(texts []string) []place {
	var places []place
	for n, text := range texts {
		spans := sentencesOf(text)
		for i, s := range spans {
			sentence := text[s.Start:s.End]
			if len(strings.Fields(sentence)) < 9 || !strings.HasSuffix(sentence, ".") ||
				strings.ContainsAny(sentence[:1], "-*#|`>0123456789") || strings.Contains(sentence, "  ") {
				continue
			}
			p := place{sentence: sentence}
			from, to := spans[max(0, i-5)].Start, spans[min(len(spans)-1, i+5)].End
			p.passage = text[from:to]
			if i+1 < len(spans) {
				p.next = text[spans[i+1].Start:spans[i+1].End]
			}
			other := texts[(n+1)%len(texts)]
			p.elsewhere = strings.ToValidUTF8(other[:min(len(other), 1500)], "")
			places = append(places, p)
		}
	}
	return places
}

func lower(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[size:]
}

// joinSentences makes one sentence of two.
func joinSentences(a, b string) string {
	return strings.TrimSuffix(a, ".") + ", and " + lower(b)
}

func negates(s string) bool { return len(negations((&lexer{}).read(s, 0))) > 0 }

var (
	amount = regexp.MustCompile(`\b\d+\b`)
	verb   = regexp.MustCompile(` (is|are|was|were|can|may|must|will) `)
)

// otherNumber replaces the first number of a sentence by one that the passage lacks.
func otherNumber(sentence, passage string) string {
	n := amount.FindString(sentence)
	v, err := strconv.Atoi(n)
	if err != nil || strings.Contains(passage, strconv.Itoa(v+13)) {
		return ""
	}
	return strings.Replace(sentence, n, strconv.Itoa(v+13), 1)
}

// edits change a sentence in the ways in which an answer does, and in ways in
// which it must not; "" where it cannot be changed so.
var edits = []struct {
	name  string
	edit  func(p place) string
	weak  bool
	least float64 // the share that must have this verdict
}{
	{"unchanged", func(p place) string { return p.sentence }, false, 1},
	{"with a lead-in", func(p place) string { return "According to the handbook, " + lower(p.sentence) }, false, 0.99},
	{"cut at a comma", func(p place) string {
		head, _, ok := strings.Cut(p.sentence, ", ")
		if !ok || len(strings.Fields(head)) < 5 {
			return ""
		}
		return head + "."
	}, false, 0.98},
	{"clauses swapped", func(p place) string {
		head, tail, ok := strings.Cut(strings.TrimSuffix(p.sentence, "."), ", ")
		if !ok {
			return ""
		}
		return tail + ", " + lower(head) + "."
	}, false, 0.97},
	{"joined with the next", func(p place) string {
		if len(strings.Fields(p.next)) < 4 {
			return ""
		}
		return joinSentences(p.sentence, p.next)
	}, false, 0.97},
	{"every fifth word except negators left out", func(p place) string {
		var kept []string
		for i, w := range strings.Fields(p.sentence) {
			if i%5 != 3 || negates(w) {
				kept = append(kept, w)
			}
		}
		return strings.Join(kept, " ")
	}, false, 0.97},
	{"another number", func(p place) string { return otherNumber(p.sentence, p.passage) }, true, 0.99},
	{"another name", func(p place) string {
		words := strings.Fields(p.sentence)
		for i, w := range words[1:] {
			if r, _ := utf8.DecodeRuneInString(w); unicode.IsUpper(r) && len(w) > 3 && !strings.ContainsAny(words[i], ".:?!") {
				words[i+1] = "Zanzibar"
				return strings.Join(words, " ")
			}
		}
		return ""
	}, true, 0.9},
	{"a negator put in", func(p place) string {
		at := verb.FindStringIndex(p.sentence)
		if at == nil || negates(p.sentence) {
			return ""
		}
		return p.sentence[:at[1]] + "not " + p.sentence[at[1]:]
	}, true, 0.97},
	{"a negator taken out", func(p place) string {
		for _, c := range [][2]string{{" not ", " "}, {"cannot", "can"}, {" never ", " always "}, {" no ", " a "}, {"No ", "Every "}} {
			if strings.Count(p.sentence, c[0]) == 1 {
				return strings.Replace(p.sentence, c[0], c[1], 1)
			}
		}
		return ""
	}, true, 0.85},
	{"a word replaced by its opposite", func(p place) string {
		words := strings.Fields(p.sentence)
		for i, w := range words {
			if o := opposites[strings.ToLower(w)]; i > 0 && len(o) > 0 {
				words[i] = o[0]
				return strings.Join(words, " ")
			}
		}
		return ""
	}, true, 0.8},
	{"a step of a scale", func(p place) string {
		for _, c := range [][2]string{{" must ", " may "}, {" may ", " must "}, {" can ", " must "}, {" all ", " some "}, {" some ", " all "},
			{" most ", " few "}, {" many ", " few "}, {" every ", " some "}, {" always ", " sometimes "}, {" often ", " rarely "}} {
			if strings.Contains(p.sentence, c[0]) {
				return strings.Replace(p.sentence, c[0], c[1], 1)
			}
		}
		return ""
	}, true, 0.8},
	{"two names swapped", swapNames, true, 0.97},
	{"another name of the passage", nameOfPassage, true, 0.97},
	{"citing another document", func(p place) string { return p.sentence }, true, 0.97},
}

// inName matches a name inside a sentence.
var inName = regexp.MustCompile(`\p{Lu}[\pL\pN'’-]+(?: \p{Lu}[\pL\pN'’-]+)*`)

// namesIn returns the ranges of the names in a text except those that begin a sentence or a line.
func namesIn(text string) (names [][]int) {
	for _, at := range inName.FindAllStringIndex(text, -1) {
		before := strings.TrimRight(text[:at[0]], " \"“(*_")
		if before != "" && !strings.ContainsAny(before[len(before)-1:], ".:?!|#-\n'") && !lightWords[strings.ToLower(text[at[0]:at[1]])] {
			names = append(names, at)
		}
	}
	return names
}

// swapNames swaps the first two names of a sentence.
func swapNames(p place) string {
	names, s := namesIn(p.sentence), p.sentence
	for i, a := range names {
		for _, b := range names[i+1:] {
			first, second := s[a[0]:a[1]], s[b[0]:b[1]]
			if !strings.Contains(first, second) && !strings.Contains(second, first) {
				return s[:a[0]] + second + s[a[1]:b[0]] + first + s[b[1]:]
			}
		}
	}
	return ""
}

// nameOfPassage replaces a name of a sentence by another one of the passage.
func nameOfPassage(p place) string {
	for _, a := range namesIn(p.sentence) {
		for _, b := range namesIn(p.passage) {
			name, own := p.passage[b[0]:b[1]], strings.TrimSuffix(p.sentence[a[0]:a[1]], "'s")
			if !strings.Contains(p.sentence, name) && !strings.Contains(name, own) && !strings.Contains(name, "'") {
				return p.sentence[:a[0]] + name + p.sentence[a[1]:]
			}
		}
	}
	return ""
}

// TestEdits changes the longer sentences of the sample library and looks at the
// verdicts by the passage that the sentence is in.
func TestEdits(t *testing.T) { testEdits(t, readPlaces(t)) }

// TestEditsPages does the same with pages of the web.
func TestEditsPages(t *testing.T) {
	claims, _ := readJudged(t)
	var texts []string
	for i, c := range claims {
		if i%20 == 0 {
			texts = append(texts, c.page)
		}
	}
	testEdits(t, placesIn(texts))
}

func testEdits(t *testing.T, places []place) {
	for _, test := range edits {
		var n, right float64
		for _, p := range places {
			said, text := test.edit(p), p.passage
			if said == "" {
				continue
			}
			if test.name == "citing another document" {
				text = p.elsewhere
			}
			n++
			if q := full.Find(said, Passage{Text: text}); (q.Verdict == Weak) == test.weak {
				right++
			}
		}
		t.Logf("figure: %s: %.0f of %.0f", test.name, right, n)
		if n < 10 || right/n < test.least {
			t.Errorf("%s: %.0f of %.0f are right, want %.0f%%", test.name, right, n, 100*test.least)
		}
	}
}

// TestEditsJoined makes one sentence of two from different documents, and cites
// both or one of them.
func TestEditsJoined(t *testing.T) {
	places := readPlaces(t)
	both := func(p, q place) []Passage { return []Passage{{Text: p.passage}, {Text: q.passage}} }
	joinBoth := func(p, q place) string { return joinSentences(p.sentence, q.sentence) }
	for _, test := range []struct {
		name  string
		said  func(p, q place) string
		cites func(p, q place) []Passage
		weak  bool
		least float64
	}{
		{"citing both", joinBoth, both, false, 0.95},
		{"citing both and another", joinBoth, func(p, q place) []Passage { return append(both(p, q), Passage{Text: p.elsewhere}) }, false, 0.95},
		{"citing the first", joinBoth, func(p, q place) []Passage { return []Passage{{Text: p.passage}, {Text: p.elsewhere}} }, true, 0.9},
		{"another number, citing both", func(p, q place) string {
			if other := otherNumber(q.sentence, p.passage+q.passage); other != "" {
				return joinSentences(p.sentence, other)
			}
			return ""
		}, both, true, 0.99},
	} {
		var n, right float64
		for i, p := range places {
			q := places[(i+len(places)/2)%len(places)]
			said := test.said(p, q)
			if said == "" || p.passage == q.passage {
				continue
			}
			n++
			if weak := full.Join(said, test.cites(p, q)).Support < Threshold; weak == test.weak {
				right++
			}
		}
		t.Logf("figure: %s: %.0f of %.0f", test.name, right, n)
		if n < 10 || right/n < test.least {
			t.Errorf("%s: %.0f of %.0f are right, want %.0f%%", test.name, right, n, 100*test.least)
		}
	}
}

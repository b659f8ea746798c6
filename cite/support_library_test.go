package cite

import (
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"ibid/ingest"
	"ibid/retrieve"
)

// A place is a longer sentence of the sample library, with the one behind it,
// the passage around it and one of another document.
type place struct{ sentence, next, passage, elsewhere string }

func readPlaces(t *testing.T) []place {
	t.Helper()
	var texts []string
	library := os.DirFS("../data/library")
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
	var places []place
	for n, text := range texts {
		var spans []ingest.Span
		for s := range ingest.Sentences(text) {
			spans = append(spans, s)
		}
		for i, s := range spans {
			sentence := text[s.Start:s.End]
			if len(strings.Fields(sentence)) < 9 || !strings.HasSuffix(sentence, ".") || strings.ContainsAny(sentence[:1], "-*#|`>0123456789") || strings.Contains(sentence, "  ") {
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
	if len(places) < 100 {
		t.Fatalf("the sample library gives only %d sentences", len(places))
	}
	return places
}

// TestSupportOfEdits changes every longer sentence of the sample library in the
// ways in which an answer does, and in ways in which it must not, and looks at
// the verdicts by the passage that the sentence stands in.
func TestSupportOfEdits(t *testing.T) {
	places := readPlaces(t)
	amount := regexp.MustCompile(`\b\d+\b`)
	verb := regexp.MustCompile(` (is|are|was|were|can|may|must|will) `)
	for _, test := range []struct {
		name string
		// edit gives the sentence as an answer has it, "" when it cannot be
		// changed so, and the passage cited.
		edit  func(p place) (said, passage string)
		weak  bool
		least float64 // the share that must come out so
	}{
		{"as it stands", func(p place) (string, string) { return p.sentence, p.passage }, false, 1},
		{"with a lead-in", func(p place) (string, string) {
			return "According to the handbook, " + lower(p.sentence), p.passage
		}, false, 0.99},
		{"cut at a comma", func(p place) (string, string) {
			head, _, ok := strings.Cut(p.sentence, ", ")
			if !ok || len(strings.Fields(head)) < 5 {
				return "", ""
			}
			return head + ".", p.passage
		}, false, 0.99},
		{"clauses turned", func(p place) (string, string) {
			head, tail, ok := strings.Cut(strings.TrimSuffix(p.sentence, "."), ", ")
			if !ok {
				return "", ""
			}
			return tail + ", " + lower(head) + ".", p.passage
		}, false, 0.97},
		{"joined with the next", func(p place) (string, string) {
			if len(strings.Fields(p.next)) < 4 {
				return "", ""
			}
			return strings.TrimSuffix(p.sentence, ".") + ", and " + lower(p.next), p.passage
		}, false, 0.97},
		{"every fifth word but a negator left out", func(p place) (string, string) {
			var kept []string
			for i, w := range strings.Fields(p.sentence) {
				if i%5 != 3 || negates((&lexer{}).read(w)) {
					kept = append(kept, w)
				}
			}
			return strings.Join(kept, " "), p.passage
		}, false, 0.97},
		{"another number", func(p place) (string, string) {
			n := amount.FindString(p.sentence)
			v, err := strconv.Atoi(n)
			if err != nil || strings.Contains(p.passage, strconv.Itoa(v+13)) {
				return "", ""
			}
			return strings.Replace(p.sentence, n, strconv.Itoa(v+13), 1), p.passage
		}, true, 0.99},
		{"another name", func(p place) (string, string) {
			words := strings.Fields(p.sentence)
			for i, w := range words[1:] {
				if r, _ := utf8.DecodeRuneInString(w); unicode.IsUpper(r) && len(w) > 3 && !strings.ContainsAny(words[i], ".:?!") {
					words[i+1] = "Zanzibar"
					return strings.Join(words, " "), p.passage
				}
			}
			return "", ""
		}, true, 0.9},
		{"a negator put in", func(p place) (string, string) {
			if negates((&lexer{}).read(p.sentence)) || !verb.MatchString(p.sentence) {
				return "", ""
			}
			at := verb.FindStringIndex(p.sentence)
			return p.sentence[:at[1]] + "not " + p.sentence[at[1]:], p.passage
		}, true, 0.8},
		{"from another document", func(p place) (string, string) { return p.sentence, p.elsewhere }, true, 0.97},
	} {
		t.Run(test.name, func(t *testing.T) {
			var n, right float64
			for _, p := range places {
				said, text := test.edit(p)
				if said == "" {
					continue
				}
				n++
				q := full.Find(said, passage(text))
				if (q.Verdict == VerdictWeak) == test.weak {
					right++
				} else if testing.Verbose() {
					t.Logf("%s %.2f: %q\n by %q", q.Verdict, q.Support, said, text[q.Start:q.End])
				}
			}
			t.Logf("%.0f of %.0f", right, n)
			if n < 10 || right/n < test.least {
				t.Errorf("%.0f of %.0f are right, want %.0f%%", right, n, 100*test.least)
			}
		})
	}
}

func lower(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[size:]
}

// TestSupportOfJoinedSentences makes one sentence of two from different
// documents, and cites both or one of them.
func TestSupportOfJoinedSentences(t *testing.T) {
	places := readPlaces(t)
	amount := regexp.MustCompile(`\b\d+\b`)
	both := func(p, q place) []string { return []string{p.passage, q.passage} }
	for _, test := range []struct {
		name  string
		said  func(p, q place) string
		cites func(p, q place) []string
		weak  bool
		least float64
	}{
		{"citing both", joinSentences, both, false, 0.95},
		{"citing both and another", joinSentences, func(p, q place) []string { return []string{p.elsewhere, p.passage, q.passage} }, false, 0.95},
		{"citing the first", joinSentences, func(p, q place) []string { return []string{p.passage, p.elsewhere} }, true, 0.9},
		{"another number, citing both", func(p, q place) string {
			n := amount.FindString(q.sentence)
			v, err := strconv.Atoi(n)
			if other := strconv.Itoa(v + 13); err == nil && !strings.Contains(p.passage+q.passage, other) {
				q.sentence = strings.Replace(q.sentence, n, other, 1)
				return joinSentences(p, q)
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
			var passages []retrieve.Passage
			for _, text := range test.cites(p, q) {
				passages = append(passages, passage(text))
			}
			if weak := full.Join(said, passages).Support < Supported; weak == test.weak {
				right++
			} else {
				t.Logf("%s: %q", test.name, said)
			}
		}
		t.Logf("%s: %.0f of %.0f", test.name, right, n)
		if n < 10 || right/n < test.least {
			t.Errorf("%s: %.0f of %.0f are right, want %.0f%%", test.name, right, n, 100*test.least)
		}
	}
}

// joinSentences says two sentences as one.
func joinSentences(p, q place) string {
	return strings.TrimSuffix(p.sentence, ".") + ", and " + lower(q.sentence)
}

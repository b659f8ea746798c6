package retrieve

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"ibid/data/datatest"
)

var must = datatest.Must

// TestWords checks the terms of questions; that a word written in one way is found when
// it is asked for in another, by no small part of the question's terms; and that what
// only looks alike has nothing in common.
func TestWords(t *testing.T) {
	words, err := txtar.ParseFile("testdata/words.txt")
	must(t, err)
	for _, section := range words.Files {
		for line := range strings.Lines(string(section.Data)) {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), " ⇒ ")
			for i, cell := range cells {
				cells[i], err = strconv.Unquote(`"` + cell + `"`)
				must(t, err)
			}
			for _, cell := range cells[1:] {
				switch got := covers(cells[0], cell); {
				case section.Name == "terms":
					if got := strings.Join(Terms(cells[0]), " "); got != cell {
						t.Errorf("Terms(%q) = %q, want %q", cells[0], got, cell)
					}
				case section.Name == "meet" && got < .25, section.Name == "apart" && got != 0:
					t.Errorf("%.2f of %q (%q) is in %q (%q)", got, cell, Terms(cell), cells[0], flat(indexed(cells[0])))
				}
			}
		}
	}
}

func TestIndexTermsKeepsStopWords(t *testing.T) {
	if got := strings.Join(flat(indexed("To be, or not")), " "); got != "to be or not" {
		t.Errorf("got %q", got)
	}
}

func TestIndexTerms(t *testing.T) {
	for _, c := range []struct {
		text, want string
		length     int
	}{
		{"the A-320", "the a 320 a320", 3},
		{"GPT-4", "gpt 4 gpt4", 2},
		{"1990-1995", "1990 1995", 2},
		{"X-rays", "x ray xray", 2},
		{"well-known", "well known", 2},
		{"log-in", "log in login", 2},
		{"LLMs and mRNAs", "llm llms and mrna mrnas rna rnas", 4},
		{"python3.11 and v1.2.3", "python3.11 python 3.11 3 and 1.2.3 1.2 1", 5},
		{"1.2.3-rc.1", "1.2.3 1.2 1 rc 1", 3},
		{"x86_64-linux", "x8664 x86 86 64 linux", 4},
		{"1\u202f234 «\u202foui\u202f»", "1 234 oui", 3},
		{"1.234 of 1,234.50", "1234 1.234 of 1234.50", 3},
		{"C++", "c c++", 1},
		{"Das sind die Häuser", "das sind die hauser haus", 4},
	} {
		if got := strings.Join(flat(indexed(c.text)), " "); got != c.want {
			t.Errorf("indexed(%q) = %q, want %q", c.text, got, c.want)
		}
		if _, length := CountTerms(c.text); length != c.length {
			t.Errorf("CountTerms(%q) has the length %d, want %d", c.text, length, c.length)
		}
	}
}

// covers is the share of a question's words that are in a text, all words
// counting alike.
func covers(text, asked string) float64 {
	l := newLexicalScorer(question(asked), Stats{Chunks: 1000, MeanTerms: 10})
	all, length := CountTerms(text)
	var terms []string
	var counts []int
	for _, c := range all {
		terms, counts = append(terms, c.Term), append(counts, c.Count)
	}
	var s Scores
	l.score(&s, terms, counts, length)
	return s.Coverage
}

// TestNearer: of two texts the one that matches the question comes first.
func TestNearer(t *testing.T) {
	for _, c := range []struct{ question, right, wrong string }{
		{"IPv6", "it has IPv6", "it has IPv4"},
		{"go1.26", "needs go 1.26", "needs go 1.25"},
		{"go 1.26", "needs go1.26", "needs go1.25"},
		{"python 3", "runs on python3.11", "runs on python2.7"},
		{"1.2.3-rc.1", "the 1.2.3-rc.1", "the 1.2.3"},
		{"C++", "written in C++", "written in C"},
		{"C#", "written in C#", "written in C"},
		{".NET", "for .NET", "for net weight"},
		{"user@example.com", "to user@example.com", "to user@example.org"},
		{"H₂O", "of H2O", "of H 2 O"},
		{"x86_64", "for x86_64", "for aarch64"},
		{"AT&T", "of AT&T", "at t"},
		{"R&D", "the R&D", "the R and then D"},
		{"1.234", "1.234 of them", "1,234 of them"},
		{"getUserName", "calls getUserName", "gets the user a name"},
	} {
		if right, wrong := covers(c.right, c.question), covers(c.wrong, c.question); right <= wrong {
			t.Errorf("%q: %.2f of it in %q, %.2f in %q", c.question, right, c.right, wrong, c.wrong)
		}
	}
}

// Where there is no word but only letters, the index has the start of them. A
// step that were quadratic in their number would not end here.
func TestTermsOfEndlessWord(t *testing.T) {
	terms := flat(indexed("die Länge ist nicht die der " + strings.Repeat("ä", 1<<19)))
	if last := terms[len(terms)-1]; last != strings.Repeat("a", maxTerm) {
		t.Errorf("the word is found by %q", last)
	}
}

func FuzzTerms(f *testing.F) {
	f.Add("The getUserName of 東京 v1.2.3 … ภาษา don't U.S.A. _x_ \u0301")
	f.Add("1 234,5 H₂O AI는 x86_64-linux IPv4Address 1\u202f234 ١٬٢٣٤ LLMs")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("documents are valid UTF-8")
		}
		for _, terms := range [][]string{Terms(text), flat(indexed(text))} {
			for _, term := range terms {
				if term == "" || len(term) > maxTerm || !utf8.ValidString(term) {
					t.Fatalf("bad term %q of %q", term, text)
				}
			}
		}
		upper := strings.ToUpper(text)
		if isPlain(text) && !equal(Terms(text), Terms(strings.ToLower(upper))) && text == strings.ToLower(text) {
			t.Fatalf("case matters in %q", text)
		}
	})
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func equal(a, b []string) bool { return strings.Join(a, "\x00") == strings.Join(b, "\x00") }

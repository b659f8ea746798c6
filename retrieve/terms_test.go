package retrieve

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/data/datatest"
)

var must = datatest.Must

// TestWords checks the terms of questions: a word is found in another spelling by most of
// the question's terms, words that only look alike share no terms, and the text that
// matches the question precedes the other.
func TestWords(t *testing.T) {
	const words = "testdata/words.txt"
	for _, row := range datatest.Rows(t, words, "terms") {
		if got := strings.Join(Terms(row[0]), " "); got != row[1] {
			t.Errorf("Terms(%q) = %q, want %q", row[0], got, row[1])
		}
	}
	for _, row := range datatest.Rows(t, words, "joined") {
		if got := strings.Join(QuestionTerms(row[0]), " "); got != row[1] {
			t.Errorf("QuestionTerms(%q) = %q, want %q", row[0], got, row[1])
		}
	}
	for _, row := range datatest.Rows(t, words, "indexed") {
		if got := strings.Join(termsOf(indexWords(row[0])), " "); got != row[1] {
			t.Errorf("indexed(%q) = %q, want %q", row[0], got, row[1])
		}
		if _, length := CountTerms(row[0]); strconv.Itoa(length) != row[2] {
			t.Errorf("CountTerms(%q) has the length %d, want %s", row[0], length, row[2])
		}
	}
	for section, least := range map[string]float64{"meet": .25, "apart": 0} {
		for _, row := range datatest.Rows(t, words, section) {
			for _, question := range row[1:] {
				if got := covers(row[0], question); got < least || least == 0 && got != 0 {
					t.Errorf("covers = %.2f of %q (%q) in %q (%q)", got, question, Terms(question), row[0], termsOf(indexWords(row[0])))
				}
			}
		}
	}
	for _, row := range datatest.Rows(t, words, "nearer") {
		if right, wrong := covers(row[1], row[0]), covers(row[2], row[0]); right <= wrong {
			t.Errorf("%q: covers = %.2f in %q, %.2f in %q", row[0], right, row[1], wrong, row[2])
		}
	}
}

func TestIndexTermsKeepsStopWords(t *testing.T) {
	if got := strings.Join(termsOf(indexWords("To be, or not")), " "); got != "to be or not" {
		t.Errorf("got %q", got)
	}
}

// covers returns the share of a question's words that are in a text, with equal weights.
func covers(text, asked string) float64 {
	l := newLexicalScorer(questionWords(asked), Stats{Chunks: 1000, MeanTerms: 10})
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

// TestTermsOfEndlessWord checks that the index has the beginning of a text that is one
// endless word. Quadratic work would not end here.
func TestTermsOfEndlessWord(t *testing.T) {
	terms := termsOf(indexWords("die Länge ist nicht die der " + strings.Repeat("ä", 1<<19)))
	if last := terms[len(terms)-1]; last != strings.Repeat("a", maxTerm) {
		t.Errorf("last term = %q", last)
	}
}

func FuzzTerms(f *testing.F) {
	f.Add("The getUserName of 東京 v1.2.3 … ภาษา don't U.S.A. _x_ \u0301")
	f.Add("1 234,5 H₂O AI는 x86_64-linux IPv4Address 1\u202f234 ١٬٢٣٤ LLMs")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("not UTF-8: documents are valid UTF-8")
		}
		for _, terms := range [][]string{Terms(text), termsOf(indexWords(text))} {
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

// TestRepeatedWords: a repeated word of a question counts more only if the question is long.
func TestRepeatedWords(t *testing.T) {
	filler := strings.Repeat("alpha beta gamma delta ", longQuestion/4)
	for _, c := range []struct {
		asked string
		more  bool
	}{
		{"harbour harbour harbour fee", false},
		{filler + "harbour harbour harbour fee", true},
	} {
		l := newLexicalScorer(questionWords(c.asked), Stats{Chunks: 1000, MeanTerms: 10})
		score := func(text string) float64 {
			all, length := CountTerms(text)
			var s Scores
			l.score(&s, []string{all[0].Term}, []int{all[0].Count}, length)
			return s.BM25
		}
		if more := score("harbour") > score("fee"); more != c.more {
			t.Errorf("a repeated word counts more = %t, want %t: %.60q", more, c.more, c.asked)
		}
	}
}

// TestLanguage asks for one form of a word and finds another, in every language that has its own
// stemmer besides English.
func TestLanguage(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/words.txt", "languages") {
		code, asked, text, shared := row[0], row[1], row[2], row[3]
		var a analyser
		a.read(asked)
		if got := languageCodes[a.tally.language()]; got != code && code != "zh" {
			t.Errorf("%q is detected as %s", asked, got)
		}
		var common []string
		found := termsOf(indexWords(text))
		for _, w := range questionWords(asked) {
			term := w.term
			if w.stem != "" {
				term = w.stem
			}
			if slices.Contains(found, term) {
				common = append(common, term)
			}
		}
		slices.Sort(common)
		if got := strings.Join(slices.Compact(common), " "); got != shared {
			t.Errorf("%s: %q and %q share %q, want %q", code, asked, text, got, shared)
		}
	}
}

func TestLanguageCode(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/words.txt", "detected") {
		if got := Language(row[0]); got != row[1] {
			t.Errorf("%q is detected as %s, want %s", row[0], got, row[1])
		}
	}
	for _, row := range datatest.Rows(t, "testdata/words.txt", "asked") {
		if got, evident := AskedLanguage(row[0]); got != row[1] || evident != (got == "en") {
			t.Errorf("AskedLanguage(%q) = %q, %v, want %q", row[0], got, evident, row[1])
		}
	}
}

func TestFunctionWordTable(t *testing.T) {
	if languageCodes[english] != "en" || languageCodes[chinese] != "zh" || len(languageCodes) > 32 {
		t.Fatalf("languageCodes = %v", languageCodes)
	}
	for code := range stemmers {
		if !slices.Contains(languageCodes, code) {
			t.Errorf("%s has a stemmer but no function words", code)
		}
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(functionWordTable) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		for _, w := range fields[1:] {
			if w != strings.ToLower(w) || seen[fields[0]+w] {
				t.Errorf("%s: %s is in upper case or repeated", fields[0], w)
			}
			seen[fields[0]+w] = true
		}
	}
}

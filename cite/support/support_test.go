package support

import (
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/ingest/child"
	"ibid/retrieve"
)

// full is the Prover that package answer uses.
var full = Prover{Stem: retrieve.Stem, Sentences: sentencesOf}

func sentencesOf(text string) (spans []Span) {
	for s := range ingest.Sentences(text) {
		spans = append(spans, Span(s))
	}
	return spans
}

const harbour = `The harbour of Westhaven was opened on 3 May 1987 by Mayor Ellen Brandt. It has room for 1,250 boats and two slipways.

Swimming is not allowed between the piers. The night ferry to Norby leaves at 22:30 and costs €14.50, but children under 12 travel free.

Members pay 25% less than guests. The harbour master failed to renew the insurance in 2019, so the crane stood still for a year.`

func TestFind(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/harbour.txt", "claims") {
		t.Run(row[0], func(t *testing.T) {
			q := full.Find(row[1], Passage{Text: harbour})
			quote := harbour[q.Start:q.End]
			if string(q.Verdict) != row[2] || !strings.Contains(quote, row[3]) {
				t.Errorf("Find(%q)\n got %s (%.2f) %q\nwant %s %q", row[1], q.Verdict, q.Support, quote, row[2], row[3])
			}
			if (q.Verdict == Weak) != (q.Support < Threshold) {
				t.Errorf("verdict = %s with support %.2f", q.Verdict, q.Support)
			}
		})
	}
}

// TestVerdicts reads passages, each marked by "> ", and claims, each following its verdict.
func TestVerdicts(t *testing.T) {
	cases, err := os.ReadFile("testdata/verdicts.txt")
	if err != nil {
		t.Fatal(err)
	}
	passage, n := "", 0
	for line := range strings.SplitSeq(string(cases), "\n") {
		verdict, claim, ok := strings.Cut(line, ": ")
		switch text, begins := strings.CutPrefix(line, "> "); {
		case begins:
			passage = text
		case ok:
			n++
			if q := full.Find(claim, Passage{Text: passage}); string(q.Verdict) != verdict {
				t.Errorf("Find(%q) in %q = %s (%.2f) %q, want %s", claim, passage, q.Verdict, q.Support, passage[q.Start:q.End], verdict)
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d claims, want at least 80", n)
	}
}

func TestByHeadings(t *testing.T) {
	p := Passage{Text: "It is 75 metres long and carries 14 passengers."}
	const claim = "The Zeppelin NT is 75 metres long and carries 14 passengers."
	if q := full.Find(claim, p); q.Support > 0.6 {
		t.Errorf("support without headings = %.2f, want at most 0.6", q.Support)
	}
	bare := full.Find(claim, p).Support
	p.Heading = "Airships" + " › " + "Zeppelin NT"
	if q := full.Find(claim, p); q.Support <= bare || q.Verdict != Supported {
		t.Errorf("with the name in the heading = %s %.2f, without %.2f", q.Verdict, q.Support, bare)
	}
}

func TestWeakQuotes(t *testing.T) {
	const text = "# Winter hours\n\nThe library opens at ten. Dogs are welcome.\n\nLost cards\n\nFive euros are due.\n\n" +
		"## Fees for late books\n\nSee the desk."
	for claim, want := range map[string]string{
		"The winter hours of the pool are short.":        "The library opens at ten.",
		"The cards are green.":                           "Five euros are due.",
		"Late books are sold by the mayor.":              "See the desk.",
		"Nothing of this kind.":                          "The library opens at ten.",
		"Dogs and wolves fight over the prey of winter.": "Dogs are welcome.",
	} {
		q := full.Find(claim, Passage{Text: text})
		if got := text[q.Start:q.End]; q.Verdict != Weak || got != want {
			t.Errorf("Find(%q) = %s %q, want %q", claim, q.Verdict, got, want)
		}
	}
}

func TestNoWords(t *testing.T) {
	for _, text := range []string{"", " \n ", "...", "\xff"} {
		q := full.Find("The harbour was opened.", Passage{Text: text})
		if q.Verdict != Weak || q.Support != 0 || q.Start < 0 || q.End > len(text) {
			t.Errorf("Find in %q = %+v, want weak", text, q)
		}
	}
}

func TestJoin(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/harbour.txt", "together") {
		claim, supported, parts := row[0], row[1], row[2]
		var passages []Passage
		for _, text := range row[3:] {
			passages = append(passages, Passage{Text: text})
		}
		got := full.Join(claim, passages)
		if strconv.FormatBool(got.Support >= Threshold) != supported {
			t.Errorf("%q by %q: Join = %.2f %v", claim, passages, got.Support, got.Parts)
		}
		for i, c := range parts {
			if got.Parts[i] != (c != '-') {
				t.Errorf("%q by %q: Parts = %v, want %s", claim, passages, got.Parts, parts)
			}
		}
	}
}

func TestWords(t *testing.T) {
	rows := append(datatest.Rows(t, "testdata/harbour.txt", "words"),
		[]string{strings.Repeat("9", 100) + " nine", strings.Repeat("9", 64) + "# 9#"})
	for _, row := range rows {
		text, want := row[0], row[1]
		var got []string
		l := lexer{stem: strings.ToLower}
		for _, w := range l.read(text, 0) {
			mark := map[wordKind]string{name: "*", number: "#"}[w.kind]
			got = append(got, w.key+mark)
			if w.Start < 0 || w.End > len(text) || w.Start >= w.End {
				t.Errorf("%q: word %+v is outside the text", text, w)
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("words of %q\n got %s\nwant %s", text, g, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("The harbour was opened in 1987.", harbour)
	f.Add("港口可停泊1250艘船。", "港口可停泊1350艘船。")
	f.Add("1,2.3,4-05-06 May U.S. isn't 5th", "\xff\xc3(1990s) twenty-five million ½ \u00ad")
	f.Add("a a a", "not a a a a a")
	f.Fuzz(func(t *testing.T, sentence, text string) {
		q := full.Find(sentence, Passage{Text: text})
		if q.Start < 0 || q.End > len(text) || q.Start > q.End || q.Start == q.End && text != "" {
			t.Fatalf("range [%d:%d] of %d bytes", q.Start, q.End, len(text))
		}
		if utf8.ValidString(text) && !utf8.ValidString(text[q.Start:q.End]) {
			t.Fatalf("range [%d:%d] cuts a character of %q", q.Start, q.End, text)
		}
		if !(q.Support >= 0 && q.Support <= 1) {
			t.Fatalf("support %v", q.Support)
		}
		if (q.Verdict == Weak) != (q.Support < Threshold) {
			t.Fatalf("verdict %s with support %v", q.Verdict, q.Support)
		}
		if again := full.Find(sentence, Passage{Text: text}); again != q {
			t.Fatalf("Find = %+v, then %+v", q, again)
		}
		half := len(clip(text, len(text)/2))
		passages := []Passage{Passage{Text: text[:half]}, Passage{Text: harbour}, Passage{Text: text[half:]}, Passage{Text: text}}
		j := full.Join(sentence, passages)
		parts := 0
		for _, part := range j.Parts {
			if part {
				parts++
			}
		}
		if !(j.Support >= 0 && j.Support <= 1) || len(j.Parts) != len(passages) || j.Support > 0 && parts < 2 {
			t.Fatalf("Join = %+v", j)
		}
		if again := full.Join(sentence, passages); !reflect.DeepEqual(again, j) {
			t.Fatalf("Join = %+v, then %+v", j, again)
		}
	})
}

// TestQuotesItself finds every sentence of a passage in other layouts.
func TestQuotesItself(t *testing.T) {
	for _, s := range sentencesOf(harbour) {
		sentence := harbour[s.Start:s.End]
		for _, said := range []string{sentence, strings.ToUpper(sentence), strings.ReplaceAll(sentence, " ", "\n  "),
			"*" + strings.Trim(sentence, ".") + "*"} {
			q := full.Find(said, Passage{Text: harbour})
			if q.Verdict != Quoted || q.Start != s.Start || q.End != s.End {
				t.Errorf("Find(%q) = %s %q, want the sentence quoted", said, q.Verdict, harbour[q.Start:q.End])
			}
		}
	}
}

// repeated repeats a text up to a size, with each copy's number for its %d.
func repeated(text string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Replace(text, "%d", strconv.Itoa(i), 1))
	}
	return b.String()[:size]
}

// TestIsLinear reads texts that take long if all pairs of words are compared.
func TestIsLinear(t *testing.T) {
	for _, hostile := range [][2]string{
		{"abcdef%d ", "abcdeg%d "}, {"welcome%d ", "unwelcome%d "}, {"unlike%d more ", "like%d less "}, {"not a ", "a not "},
	} {
		datatest.Linear(t, child.ProcessorTime, hostile[0], func(size int) {
			full.Find(repeated(hostile[0], size), Passage{Text: repeated(hostile[1], size)})
		})
	}
}

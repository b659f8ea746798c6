package ingest

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestSentences(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"plain", "One thing. Another thing! A third?", []string{"One thing.", "Another thing!", "A third?"}},
		{"wrapped", "The library opens at nine in the morning and\ncloses at six. On Sundays\nit stays closed.",
			[]string{"The library opens at nine in the morning and\ncloses at six.", "On Sundays\nit stays closed."}},
		{"abbreviations", "Ask Dr. Weber, e.g. Tuesday. See Fig. 3 and No. 5 there. J. R. Smith wrote it.",
			[]string{"Ask Dr. Weber, e.g. Tuesday.", "See Fig. 3 and No. 5 there.", "J. R. Smith wrote it."}},
		{"dates", "Der Unterricht beginnt am 12. April und endet am 26. Oktober. Er ist bis zum 1. Mai offen.",
			[]string{"Der Unterricht beginnt am 12. April und endet am 26. Oktober.", "Er ist bis zum 1. Mai offen."}},
		{"citations", "Dr. Grey et al. (2004) met Lt. Smith (b. 1769. He was old). See Abb. 3. The answer is no. I left.",
			[]string{"Dr. Grey et al. (2004) met Lt. Smith (b. 1769. He was old).", "See Abb. 3.", "The answer is no.", "I left."}},
		{"no", "He said no. Then he left.", []string{"He said no.", "Then he left."}},
		{"heading and items", "Fees\n\n- One pound a day.\n- Two pounds for a film. Nothing else.\n1. First\n2. Second",
			[]string{"Fees", "- One pound a day.", "- Two pounds for a film.", "Nothing else.", "1. First", "2. Second"}},
		{"short lines", "Opening hours\nMonday 9 to 17\nSaturday 10 to 14", []string{"Opening hours", "Monday 9 to 17", "Saturday 10 to 14"}},
		{"rows", "Name: Kittiwake | Class: dinghy\nName: Fulmar | Class: yacht", []string{"Name: Kittiwake | Class: dinghy",
			"Name: Fulmar | Class: yacht"}},
		{"code", "Run it:\n\n    go test ./...\n    go vet ./...\n", []string{"Run it:", "go test ./...", "go vet ./..."}},
		{"chinese", "图书馆九点开门。星期日不开放！可以预约吗？可以。", []string{"图书馆九点开门。", "星期日不开放！", "可以预约吗？", "可以。"}},
		{"japanese", "図書館は九時に開きます。日曜日は休館です。", []string{"図書館は九時に開きます。", "日曜日は休館です。"}},
		{"quotes", `She said "Stop." Then she went.`, []string{`She said "Stop."`, "Then she went."}},
		{"decimals", "It costs 3.50 pounds. Version 1.2.3 is out.", []string{"It costs 3.50 pounds.", "Version 1.2.3 is out."}},
		{"empty", " \n\t\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for s := range Sentences(tt.text) {
				got = append(got, tt.text[s.Start:s.End])
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// sentencesCover fails the test unless the spans are in order, trimmed, and only
// white space is between them.
func sentencesCover(t interface{ Fatalf(string, ...any) }, text string) {
	pos := 0
	for s := range Sentences(text) {
		if s.Start < pos || s.End <= s.Start || s.End > len(text) {
			t.Fatalf("span %v after %d in %q", s, pos, text)
		}
		if gap := text[pos:s.Start]; strings.TrimSpace(gap) != "" {
			t.Fatalf("%q lies in no sentence of %q", gap, text)
		}
		if piece := text[s.Start:s.End]; piece != strings.TrimSpace(piece) {
			t.Fatalf("sentence %q has space around it", piece)
		}
		pos = s.End
	}
	if rest := text[pos:]; strings.TrimSpace(rest) != "" {
		t.Fatalf("%q lies in no sentence of %q", rest, text)
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

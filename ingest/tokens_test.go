package ingest

import (
	"ibid/data/datatest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCountTokens(t *testing.T) {
	tests := []struct {
		text string
		want int // by OpenAI's own tokeniser
	}{
		{"", 0},
		{"hello world", 2},
		{"tiktoken is great!", 6},
		{"<|endoftext|>", 7},
	}
	for _, tt := range tests {
		if got := CountTokens(tt.text); got != tt.want {
			t.Errorf("CountTokens(%q) = %d, want %d", tt.text, got, tt.want)
		}
	}
}

// The ids are those of OpenAI's own tokeniser.
func TestTokenIDs(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []int
	}{
		{"hello world", []int{15339, 1917}},
		{"a city\n      \n      Args:", []int{64, 3363, 36217, 415, 18161, 25}},
		{"tiktoken is great!", []int{83, 1609, 5963, 374, 2294, 0}},
		{"The ferry's 1234 cabins — Überfahrt, 图书馆九点开门。", []int{791, 52650, 596, 220, 4513, 19, 89401, 2001, 50471, 69, 1494, 3423, 11, 91967, 91386, 46065, 228, 18259, 251, 28542, 30867, 65789, 1811}},
		{"item>   \n    \n    <item>\n\t\t\t\t\n", []int{1224, 29, 79772, 262, 366, 1224, 397, 7786}},
		{"naïve e\u0301 👩‍👩‍👧 \u00a0x\r\n\r\n", []int{3458, 38672, 588, 384, 54939, 62904, 102, 378, 235, 9468, 239, 102, 378, 235, 9468, 239, 100, 220, 4194, 87, 881}},
	} {
		if got := vocabulary().EncodeOrdinary(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("the ids of %q are %v, want %v", tt.text, got, tt.want)
		}
	}
}

// sameCount compares with the count of the text in one piece.
func sameCount(t interface {
	Helper()
	Errorf(string, ...any)
}, text string) {
	t.Helper()
	if got, want := CountTokens(text), countPiece(text); got != want {
		t.Errorf("CountTokens = %d, in one piece %d: %q", got, want, text)
	}
}

// A text that is counted in parts has the same count.
func TestCountTokensInParts(t *testing.T) {
	for _, text := range []string{
		"  two spaces", " \n x", "\n\n\n", "a\n", "a \n b", "\t\tx", "x\t\ty", " \t", "   ", "  .", " .\n\n", "...\r\n", "\r\nx", " \rx", "\n x", "x\u00a0y", "\u00a0\u00a0y", "\u2028x", "\u0085x",
		"it's IT'S we'LL they'd I'm 'tis 've '", "o'clock's", "''s", " 's", "\n's", "'ſ", "K'K",
		"1234567", "٣٤٥٦", "½¼", "a1b2", " 1", "-1.5e10", "#1", "e\u0301te\u0301", "\u0301a", "図書館九点開門。", "ภาษาไทย", "👩‍👩‍👧‍👦 family", "Ⅷ", "ǅ", "ª", "a_b", "__init__", "(x)", " (x", "\v\f x", "\x00\x01a", "a\u200bb", "\ufeffa",
	} {
		sameCount(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{" ", "  ", "\n", "\r\n", "\t", "'s", "'", "don't", "LL", "word", "Ärger", "12", "٣", "½", ".", "--", "\u00a0", "図書", "e\u0301", "👍🏽", "\u0085", "\u2003", "x"}),
			rapid.StringN(1, 4, -1),
		), 1, 30).Draw(t, "parts")
		sameCount(t, strings.ToValidUTF8(strings.Join(parts, ""), "\ufffd"))
	})
}

func FuzzCountTokens(f *testing.F) {
	f.Add("  it's\n\n 12345 図書館 \t'LL")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > maxRun {
			CountTokens(text)
			return
		}
		sameCount(t, text)
	})
}

// Real text in many scripts is counted.
func TestCountTokensOfRealText(t *testing.T) {
	sameCount(t, strings.Repeat("The ferry leaves at 9.15, and returns (weather permitting) by dusk.\n\nBring   a coat! 图书馆九点开门。 ", 400))
	dir := datatest.Sets(t, "files", "encodings-chardet")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Skipf("no files in %s: %v", dir, err)
	}
	for _, name := range datatest.Pick(t, files) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.SplitAfter(strings.ToValidUTF8(string(data[:min(len(data), 4<<10)]), "?"), "\n") {
			if len(line) < maxRun {
				sameCount(t, line)
			}
		}
	}
}

var hostileTokens = map[string]string{
	"one letter": "a", "spaces": " ", "newlines": "\n", "cjk": "图书馆九点开门", "one cjk": "图", "brackets": "[", "digits": "1", "apostrophes": "'s", "spaces and lines": "   \n", "marks": "e\u0301\u0301\u0301", "prose": "The ferry leaves at nine and returns by dusk. ",
}

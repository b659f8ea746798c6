package ingest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	"github.com/tiktoken-go/tokenizer/codec"
	"pgregory.net/rapid"

	"ibid/data/datatest"
)

// reference is tiktoken-go with its own pattern.
var reference = sync.OnceValue(func() *tiktoken.Tiktoken {
	tiktoken.SetBpeLoader(ranksLoader{})
	t, err := tiktoken.GetEncoding(tiktoken.MODEL_CL100K_BASE)
	if err != nil {
		panic(err)
	}
	return t
})

type ranksLoader struct{}

func (ranksLoader) LoadTiktokenBpe(string) (map[string]int, error) { return cl100k().ranks, nil }

// TestTokenIDs compares with ids from OpenAI's own tokenizer.
func TestTokenIDs(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []int
	}{
		{"hello world", []int{15339, 1917}},
		{"a city\n      \n      Args:", []int{64, 3363, 36217, 415, 18161, 25}},
		{"tiktoken is great!", []int{83, 1609, 5963, 374, 2294, 0}},
		{"The ferry's 1234 cabins — Überfahrt, 图书馆九点开门。", []int{791, 52650, 596, 220, 4513, 19, 89401, 2001, 50471, 69, 1494, 3423, 11, 91967,
			91386, 46065, 228, 18259, 251, 28542, 30867, 65789, 1811}},
		{"item>   \n    \n    <item>\n\t\t\t\t\n", []int{1224, 29, 79772, 262, 366, 1224, 397, 7786}},
		{"naïve e\u0301 👩‍👩‍👧 \u00a0x\r\n\r\n", []int{3458, 38672, 588, 384, 54939, 62904, 102, 378, 235, 9468, 239, 102, 378, 235, 9468, 239,
			100, 220, 4194, 87, 881}},
	} {
		if got := reference().EncodeOrdinary(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("ids of %q = %v, want %v", tt.text, got, tt.want)
		}
		sameCount(t, tt.text)
	}
}

// sameCount compares the count and the tokens of the pieces with those of tiktoken-go.
func sameCount(t interface {
	Helper()
	Errorf(string, ...any)
}, text string) {
	t.Helper()
	want := reference().EncodeOrdinary(text)
	if got := CountTokens(text); got != len(want) {
		t.Errorf("CountTokens = %d, tiktoken-go %d: %q", got, len(want), text)
	}
	var got []int
	for rest := text; rest != ""; rest = rest[pieceLen(rest):] {
		got = append(got, cl100k().bpe.EncodeOrdinary(rest[:pieceLen(rest)])...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("tokens of the pieces = %v, tiktoken-go %v: %q", got, want, text)
	}
}

// TestCountTokensIsExact checks that CountTokens counts as tiktoken-go does.
func TestCountTokensIsExact(t *testing.T) {
	texts := []string{
		strings.Repeat("a", maxPiece), strings.Repeat(" ", maxPiece) + "x", strings.Repeat("-", maxPiece) + "\n",
		strings.Repeat("图", maxPiece/3), strings.Repeat("7", 3*maxPiece),
	}
	for _, row := range datatest.Rows(t, "testdata/hostile.txt", "pieces") {
		texts = append(texts, row[0])
	}
	for _, text := range texts {
		sameCount(t, text)
	}
	parts := rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{" ", "  ", "\n", "\r\n", "\t", "'s", "'", "don't", "LL", "word", "Ärger", "12", "٣", "½", ".", "--", "\u00a0",
			"図書", "e\u0301", "👍🏽", "\u0085", "\u2003", "x", "\xff", "\xe5\x9b"}),
		rapid.StringN(1, 4, -1),
	), 1, 30)
	rapid.Check(t, func(t *rapid.T) { sameCount(t, strings.Join(parts.Draw(t, "parts"), "")) })
}

// TestCountTokensOfEveryCharacter checks the class of every character, also after an
// apostrophe, which may begin an ending. Only tags, selectors and private use are above
// lastAssigned.
func TestCountTokensOfEveryCharacter(t *testing.T) {
	const block, lastAssigned = 64, 0x33480
	var first []rune
	for r := rune(0); r < lastAssigned; r += block {
		first = append(first, r)
	}
	for _, first := range datatest.Pick(t, first) {
		var b strings.Builder
		for r := first; r < first+block; r++ {
			fmt.Fprintf(&b, "'%[1]c  %[1]c%[1]c1 %[1]cA.", r)
		}
		sameCount(t, b.String())
	}
}

func FuzzCountTokens(f *testing.F) {
	f.Add("  it's\n\n 12345 図書館 \t'LL\u0085\u00a0\xff")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxPiece {
			CountTokens(text)
			return
		}
		sameCount(t, text)
	})
}

// TestLeastShare checks that current models' tokenizers count at least the least share in
// any language, and less for half of the text.
func TestLeastShare(t *testing.T) {
	today := codec.NewO200kBase()
	for _, row := range datatest.Rows(t, "testdata/languages.txt", "texts") {
		language, text := row[0], row[1]
		theirs, err := today.Count(text)
		must(t, err)
		ours, least := CountTokens(text), LeastShare(text)
		share := float64(theirs) / float64(max(1, ours))
		t.Logf("%s: %d of %d tokens (%.2f), at least %.2f", language, theirs, ours, share, least)
		if share < 1.1*least || share/2 >= least {
			t.Errorf("%s: %d of %d tokens are a share of %.2f, and the least is %.2f: a whole text must be above it by a tenth, half of one below",
				language, theirs, ours, share, least)
		}
	}
}

package ingest

import (
	"fmt"
	"strings"
	"testing"
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

// Windows must not change the count of ordinary text.
func TestCountTokensOfLongText(t *testing.T) {
	text := strings.Repeat("The ferry leaves at 9.15, and returns (weather permitting) by dusk.\n\nBring   a coat! 图书馆九点开门。 ", 400)
	if got, want := CountTokens(text), len(loadVocabulary().EncodeOrdinary(text)); got != want {
		t.Errorf("CountTokens = %d, whole = %d", got, want)
	}
}

func BenchmarkCountTokens(b *testing.B) {
	for name, unit := range map[string]string{
		"letter": "a", "spaces": " ", "newlines": "\n", "cjk": "图书馆九点开门", "bracket": "[", "prose": "The ferry leaves at nine and returns by dusk. ",
	} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		b.Run(fmt.Sprintf("%s-1MB", name), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				CountTokens(text)
			}
		})
	}
}

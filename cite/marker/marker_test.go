package marker

import (
	"slices"
	"testing"
	"unicode"
)

func TestLabels(t *testing.T) {
	for _, tt := range []struct {
		text  string
		known int
		want  []int
	}{
		{"", 3, nil},
		{"Nothing cited.", 3, nil},
		{"One [2], two [1](id=3), again [2].", 3, []int{2, 3}},
		{"A range [2-4] and 【1】.", 4, []int{2, 3, 4, 1}},
		{"Words [Evidence 1], (evidence 2) and 【证据3】, signs [#4, #5], but (6) and (#6).", 6, []int{1, 2, 3, 4, 5}},
		{"Unknown [4] and `code [1]` and arr[1].foo", 3, nil},
		{"Ends in a half marker [1](id=", 3, nil},
	} {
		if got := Labels(tt.text, tt.known); !slices.Equal(got, tt.want) {
			t.Errorf("Labels(%q, %d) = %v, want %v", tt.text, tt.known, got, tt.want)
		}
	}
}

func TestDigitValues(t *testing.T) {
	for _, r := range unicode.Nd.R16 {
		if r.Stride != 1 || (r.Hi-r.Lo+1)%10 != 0 {
			t.Errorf("digits %U to %U are not a multiple of ten", r.Lo, r.Hi)
		}
	}
	for _, r := range unicode.Nd.R32 {
		if r.Stride != 1 || (r.Hi-r.Lo+1)%10 != 0 {
			t.Errorf("digits %U to %U are not a multiple of ten", r.Lo, r.Hi)
		}
	}
	for r, want := range map[rune]int{'0': 0, '9': 9, '٢': 2, '１': 1, '９': 9, '𝟗': 9, '𝟘': 0, '²': -1, 'a': -1, end: -1} {
		if got := digitValue(r); got != want {
			t.Errorf("digit(%q) = %d, want %d", r, got, want)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if (digitValue(r) >= 0) != unicode.Is(unicode.Nd, r) {
			t.Errorf("digitValue(%U) = %d", r, digitValue(r))
		}
	}
}

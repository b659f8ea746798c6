package replies

import (
	"slices"
	"strings"
	"testing"

	"ibid/cite/marker"
)

// FuzzSieve checks that the result of a sieve depends only on the text, not on how it is
// cut, and that it has no label that was not shown.
func FuzzSieve(f *testing.F) {
	for _, seed := range []string{
		"Fact [1]. Other [3][9].", "arr[1].foo and x[2] = 3", "`[1]` ```\n[2]\n```\n[3]", "【1】[2]", "[1](id=3) [NUMBER](id=)",
		"fact[1][9].", "a[9]b[1]", "[1, 9-12]", "[^1] [9]: x", "[[1]]", "word[1] + m[3]", "é[1]\xff[2", "[0](id=)[9] .",
		"[9][1](id=1)[3].x", "x[9]【3】.y [1]", strings.Repeat("[1]", 60) + "[9]x",
	} {
		f.Add(seed, uint8(3))
	}
	shown := []int{1, 3, 7}
	f.Fuzz(func(t *testing.T, text string, cut uint8) {
		for _, sure := range []bool{true, false} {
			whole := NewSieve(shown, sure)
			want := whole.Add(text)
			want += whole.End()
			s := NewSieve(shown, sure)
			var got strings.Builder
			for at := 0; at < len(text); {
				end := min(len(text), at+1+int(cut)%7)
				got.WriteString(s.Add(text[at:end]))
				at = end
			}
			got.WriteString(s.End())
			if sure && got.String() != want {
				t.Errorf("%q in pieces = %q, whole = %q", text, got.String(), want)
			}
			if !slices.Equal(s.cited, whole.cited) || !slices.Equal(s.invented, whole.invented) {
				t.Errorf("%q in pieces cites %v and invents %v; whole %v and %v", text, s.cited, s.invented, whole.cited, whole.invented)
			}
			if !sure {
				continue
			}
			for _, known := range []int{8, HighestLabel(shown)} {
				if labels := marker.Labels(want, known); len(without(labels, shown)) > 0 {
					t.Errorf("%q becomes %q, which cites the unknown labels %v", text, want, without(labels, shown))
				}
			}
			if extra := without(whole.invented, marker.Labels(text, HighestLabel(shown))); len(extra) > 0 {
				t.Errorf("%q lacks the invented labels %v", text, extra)
			}
		}
		out, cited, _ := Sift(text, shown)
		if labels := marker.Labels(out, HighestLabel(shown)); !slices.Equal(labels, cited) || len(without(cited, shown)) > 0 {
			t.Errorf("%q becomes %q, which cites %v, but cited = %v", text, out, labels, cited)
		}
	})
}

// TestSieveKeepsYears checks that a year in brackets is not a label.
func TestSieveKeepsYears(t *testing.T) {
	const text = "It was decided in Smith v Jones [2010] EWHC 123 [1], and not in [9] 2011."
	out, cited, invented := Sift(text, []int{1, 2})
	if want := "It was decided in Smith v Jones [2010] EWHC 123 [1], and not in 2011."; out != want {
		t.Errorf("text = %q, want %q", out, want)
	}
	if len(cited) != 1 || cited[0] != 1 || len(invented) != 1 || invented[0] != 9 {
		t.Errorf("cited = %v, invented = %v; want [1] and [9]", cited, invented)
	}
}

// without returns the numbers of a that are not in b.
func without(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return slices.Contains(b, n) })
}

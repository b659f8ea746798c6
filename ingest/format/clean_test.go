package format

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	tests := []struct{ in, want string }{
		{"a\r\nb\rc\u2028d\fe", "a\nb\nc\nd\ne"},
		{"a  \t\nb ", "a\nb"},
		{"zero\u200bwidth\ufeff \u202eoverride\u2066 tag\U000E0041s soft\u00adhyphen", "zerowidth override tags softhyphen"},
		{"nul\x00 esc\x1b[31m bell\x07", "nul esc[31m bell"},
		{"bad\xff\xfebytes", "badbytes"},
		{"cafe\u0301 \u00a0\u3000x", "café   x"},
		{"z" + strings.Repeat("\u0301", 100) + "!", "ź" + strings.Repeat("\u0301", maxMarks-1) + "!"},
		{"می\u200cخواهم\u200c \u200cنه\u200d.", "می\u200cخواهم نه."},
		{"क\u094d\u200d\u200c\u202eष a\u200cb", "क\u094d\u200dष ab"},
		{"❤\ufe0f emoji 👨\u200d👩", "❤ emoji 👨👩"},
	}
	for _, tt := range tests {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestCleanLeavesNothingToClean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom(nil, unicode.Cf, unicode.M, unicode.Zs, unicode.Variation_Selector,
			unicode.Cc))).Draw(t, "in")
		got := Clean(in)
		if !utf8.ValidString(got) || !norm.NFC.IsNormalString(got) {
			t.Fatalf("Clean(%q) = %q", in, got)
		}
		for _, r := range got {
			if isInvisible(r) && r != '\u200c' && r != '\u200d' && r != '\n' && r != '\t' {
				t.Fatalf("Clean(%q) keeps %U", in, r)
			}
		}
		if again := Clean(got); again != got {
			t.Fatalf("Clean(%q) = %q, and again %q", in, got, again)
		}
	})
}

func TestSlugs(t *testing.T) {
	taken := make(map[string]int)
	for _, tt := range []struct{ heading, want string }{
		{"Getting started", "getting-started"}, {"Getting started", "getting-started-1"}, {"Getting started-1", "getting-started-1-1"},
		{"C++ & Go!", "c--go"}, {"中文 标题", "中文-标题"}, {"Über_uns", "über_uns"}, {"v1.2.3", "v123"}, {"?", ""}, {"!", "-1"},
	} {
		if got := slug(taken, tt.heading); got != tt.want {
			t.Errorf("slug(%q) = %q, want %q", tt.heading, got, tt.want)
		}
	}
}

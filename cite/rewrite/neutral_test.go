package rewrite_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ibid/cite/rewrite"
)

func TestNeutral(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"web address", "see https://a.b/c, http://www.x.y or www.z.q.", "see a.b/c, x.y or z.q."},
		{"address in capitals", "HTTPS://A.b WWW.C.d Ftp://e.f", "A.b C.d e.f"},
		{"words that begin like one", "how hot, the web, why who; ftp and www and http", "how hot, the web, why who; ftp and www and http"},
		{"the bare names", "It begins with https:// or www. as a rule (http://).", "It begins with https:// or www. as a rule (http://)."},
		{"address that is put together", "htthttps://ps://evil.com wwwww..a.b www.https://a.b :www.//c.d",
			"htthttps:// ps:// evil.com wwwww. .a.b a.b :www.// c.d"},
		{"address in a word", "git+https://a.b awww.c.d s3://bucket/key", "git+https:// a.b awww. c.d s3:// bucket/key"},
		{"slashes", "https:///a https:/b https:c https:\\\\d https:\\/\\/e https\\://f",
			"a https:/ b https: c https: \\\\d https: \\/\\/ e https\\:// f"},
		{"host", "//evil.com a//b // comment /* x */ and/or 1/2", "// evil.com a// b // comment /* x */ and/or 1/2"},
		{"schemes", "javascript:alert(1) DATA:text/html,x view-source:x x-javascript:y",
			"javascript: alert(1) DATA: text/html,x view-source: x x-javascript: y"},
		{"no schemes", "metadata:x std::vector at 10:30, a: b, 3:1, data: all", "metadata:x std::vector at 10:30, a: b, 3:1, data: all"},
		{"mail", "info@library.example, mailto:a@b.c; @you (@me) 3 @ 5 €", "info@ library.example, mailto: a@ b.c; @you (@me) 3 @ 5 €"},
		{"link", "[x](https://a.b) and [[1]](http://a.b) f[0](y)", "[x] (a.b) and [[1]] (a.b) f[0] (y)"},
		{"image", "![x](//a.b/c.png) vec![1] good!", "! [x] (// a.b/c.png) vec! [1] good!"},
		{"definition", "[a]: b\n> 1. [c\\]d\ne]: f\nAs in [1]: x\n[i] and [j]: k",
			"[a] : b\n> 1. [c\\]d\ne] : f\nAs in [1]: x\n[i] and [j] : k"},
		{"markup", "<b>x</b> <!-- y --> <?php 1 < 2 <= 3 <- <3", "< b>x< /b> < !-- y --> < ?php 1 < 2 <= 3 <- <3"},
		{"autolink", "<https://a.b> <a@b.c>", "< a.b> < a@ b.c>"},
		{"references", "&lt;b&gt &#60; &#x3c; &colon; AT&T, R&D, a&b", "&l t;b&g t & #60; & #x3c; &colon ; AT&T, R&D, a&b"},
		{"code", "`<b>` and\n```\n[a](https://b.c)\n```\n", "`< b>` and\n```\n[a] (b.c)\n```\n"},
		{"terminal", "\x1b[31mred\x1b[0m \x1b]8;;http://a.b\x07c\x9b\u009b1m\a\b\r\n\x00\x7f", "[31mred[0m ]8;;a.bc�1m\n"},
		{"white space", "a\vb\fc\u0085d\u2028e\u2029f\tg\n", "a b c d e f\tg\n"},
		{"direction", "a\u202eb\u2066c\u200fd\u061ce", "abcde"},
		{"hidden", "ht\u200btp\u2060s\u00ad://\ufeffa\U000e0041b\u3164.c\U000e0101", "ab.c"},
		{"joiners that belong", "می\u200cخواهم ❤\ufe0f\u200d🔥 1\ufe0f⃣ 葛\U000e0100", "می\u200cخواهم ❤\ufe0f\u200d🔥 1\ufe0f⃣ 葛\U000e0100"},
		{"joiners that do not", "a\u200db\u200c\u200cc❤\ufe0f\ufe0f\ufe0f a\ufe0f", "abc❤\ufe0f a"},
		{"no valid UTF-8", "a\xffb\xc3", "a�b�"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := rewrite.Neutral(tt.text); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if again := rewrite.Neutral(tt.want); again != tt.want {
				t.Errorf("a second time %q becomes %q", tt.want, again)
			}
		})
	}
}

// forbidden are expressions that must not match any neutral text. They share
// nothing with the code.
var forbidden = map[string]*regexp.Regexp{
	"element":    regexp.MustCompile(`<[a-zA-Z/!?]`),
	"reference":  regexp.MustCompile(`(?i)&#|&[a-z0-9]{1,31};|&[lg]t`),
	"target":     regexp.MustCompile(`\]\(`),
	"image":      regexp.MustCompile(`!\[`),
	"definition": regexp.MustCompile(`(?m)^[ \t>0-9.*+)|-]*\[(?:[^\[\]\\]|\\(?s:.))*\]:`),
	"address":    regexp.MustCompile(`(?i)//+[a-z0-9\x{80}-\x{10ffff}_\\:@%-]`),
	"www":        regexp.MustCompile(`(?i)www\\*\.[a-z0-9\x{80}-\x{10ffff}_\\:@%-]`),
	"mail":       regexp.MustCompile(`(?i)[a-z0-9._%+-]@[a-z0-9\x{80}-\x{10ffff}_-]`),
	"scheme":     regexp.MustCompile(`(?i)(^|[^a-z0-9])(https?|ftp|mailto|xmpp|javascript|vbscript|data|file|blob):[^ \t\n/]`),
	"control":    regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}]`),
	"direction":  regexp.MustCompile(`[\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`),
	"hidden":     regexp.MustCompile(`[\x{ad}\x{34f}\x{115f}\x{1160}\x{200b}\x{2060}-\x{2065}\x{206a}-\x{206f}\x{3164}\x{feff}\x{ffa0}\x{e0000}-\x{e00ff}\x{e01f0}-\x{e0fff}]`),
	"joiners":    regexp.MustCompile(`(^|[\x00-\x7f\x{200c}\x{200d}])[\x{200c}\x{200d}]`),
}

func checkNeutral(t rapid.TB, text string) {
	t.Helper()
	for name, re := range forbidden {
		if at := re.FindStringIndex(text); at != nil {
			t.Fatalf("%s at %d in %q", name, at[0], text)
		}
	}
	if !utf8.ValidString(text) {
		t.Fatalf("%q is not valid UTF-8", text)
	}
}

// dangerous are the parts of hostile texts, whole and cut.
var dangerous = []string{
	"https://", "http:", "//", "/", "\\", "ht", "tp", "s", ":", "www.", "ww", "w", ".", "ftp://", "evil.com", "evil", "javascript:",
	"java", "script:",
	"data:", "mailto:", "file:", "@", "a@b.c", "[", "]", "(", ")", "](", "![", "!", "[a]:", "]:", "[1]", "[2](id=2)", "[9](id=9)",
	"[1, 9]", "【1】",
	"<", ">", "<img src=x>", "</", "<!--", "script", "b", "&", "#", "&lt;", "lt", "gt", ";", "x3c", "colon", "`", "```", "~~~", "\n",
	"\n\n", " ", "  ", "\t",
	"> ", "- ", "1. ", "* ", "_", "*", "|", "\"", "'", "word", "Größe", "図書", "\u200b", "\u200d", "\u202e", "\x1b[31m", "\r", "\x00",
	"\u00ad", "\ufe0f", "❤", "\U000e0041",
	"\xe3", "\x80", "\xff",
}

func hostileText(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(dangerous), 0, 24).Draw(t, "parts"), "")
}

func TestNeutralProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := hostileText(t)
		out := rewrite.Neutral(text)
		checkNeutral(t, out)
		if again := rewrite.Neutral(out); again != out {
			t.Fatalf("%q becomes %q, and that %q", text, out, again)
		}
	})
}

// checkNeutralPieces checks that a text comes out neutral, and that its pieces make
// no difference.
func checkNeutralPieces(t rapid.TB, text string, cuts ...[]string) {
	t.Helper()
	whole := rewrite.Neutral(text)
	checkNeutral(t, whole)
	for _, pieces := range cuts {
		var n rewrite.Neutralizer
		var out []byte
		for _, piece := range pieces {
			out = n.Append(out, []byte(piece))
		}
		if got := string(n.Close(out)); got != whole {
			t.Fatalf("%q:\n got %q\nwant %q", pieces, got, whole)
		}
	}
}

// inBytes cuts a text into pieces of n bytes.
func inBytes(text string, n int) (pieces []string) {
	for i := 0; i < len(text); i += n {
		pieces = append(pieces, text[i:min(i+n, len(text))])
	}
	return pieces
}

func TestNeutralAtEverySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := hostileText(t) + "."
		cuts := [][]string{strings.Split(text, ""), inBytes(text, 1)}
		for i := range len(text) {
			cuts = append(cuts, []string{text[:i], text[i:]})
		}
		checkNeutralPieces(t, text, cuts...)
	})
}

// TestNeutralHoldsLittle checks that at most eight bytes are held back in a text
// without markers.
func TestNeutralHoldsLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(strings.NewReplacer("[", "", "【", "", "`", "", "~", "", " ", "").Replace(hostileText(t)), "")
		var neutral rewrite.Neutralizer
		var out []byte
		for i, c := range text {
			out = neutral.Append(out, []byte(string(c)))
			n := i + utf8.RuneLen(c)
			want := strings.ReplaceAll(rewrite.Neutral(text[:n]), " ", "")
			if held := len(want) - len(strings.ReplaceAll(string(out), " ", "")); held > len("https://") {
				t.Fatalf("%d bytes of %q are held back", held, text[:n])
			}
		}
	})
}

func TestNeutralLeavesProse(t *testing.T) {
	word := rapid.StringMatching(`[A-Za-zäöüßéà]{1,9}|[0-9]{1,4}([.,:][0-9]{1,3})?|[图書館は月曜日]{1,4}`)
	gap := rapid.SampledFrom([]string{" ", ", ", ". ", "; ", ": ", " – ", " (", ") ", "? ", "! ", " \"", "\" ", "’s ", "\n", "\n\n- ", "\n1. ", "\n# ", " **", "** ", " `", "` ", " | ", " [1]. ", " [2][1] ", " = ", " < ", " > ", " <= ", " & ", " / ", "-", "…", " @ ", " € ", "\t"})
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 40).Draw(t, "words") {
			b.WriteString(word.Draw(t, "word"))
			b.WriteString(gap.Draw(t, "gap"))
		}
		if text := b.String(); rewrite.Neutral(text) != text {
			t.Fatalf("%q becomes %q", text, rewrite.Neutral(text))
		}
	})
	text := strings.ReplaceAll(prose, "(id=3)", "")
	if got := rewrite.Neutral(text); got != text {
		t.Errorf("%.200q becomes %.200q", text, got)
	}
}

func FuzzNeutral(f *testing.F) {
	for _, s := range dangerous {
		f.Add(s+"x"+s, uint8(1))
	}
	f.Add("htthttps://ps://evil.com [a\n\\]b]: x <![CDATA[ &lt;img src=//a&gt", uint8(3))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		out := rewrite.Neutral(text)
		checkNeutral(t, out)
		if again := rewrite.Neutral(out); again != out {
			t.Fatalf("%q becomes %q, and that %q", text, out, again)
		}
		checkNeutralPieces(t, text, inBytes(text, 1+int(size)))
		if letters := func(s string) int { return strings.Count(strings.Map(onlyLetters, s), "") }; letters(out) > letters(text) {
			t.Fatalf("%q has more letters than %q", out, text)
		}
	})
}

func onlyLetters(r rune) rune {
	if unicode.IsLetter(r) {
		return r
	}
	return -1
}

func BenchmarkNeutral(b *testing.B) {
	cjk := strings.Repeat("図書館は月曜日に休館します。日曜日は正午に閲覧室が開きます。", 10000)
	links := strings.Repeat("[the hours](https://library.example/hours) <b>&lt;x&gt;</b> ![](//a.b) www.c.d mail@e.f ", 10000)
	for _, bb := range []struct{ name, text string }{{"prose", prose}, {"cjk", cjk}, {"links", links}} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			for b.Loop() {
				rewrite.Neutral(bb.text)
			}
		})
	}
}

package rewrite_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ibid/cite/rewrite"
	"ibid/data/datatest"
)

func TestEscape(t *testing.T) {
	rows := datatest.Rows(t, "testdata/escaped.txt", "escaped")
	rows = append(rows, []string{"long words", strings.Repeat("a", 300) + ".com",
		strings.Repeat("a", 128) + "`" + strings.Repeat("a", 172) + ".com`"},
		[]string{"long address", "x://" + strings.Repeat("a", 2100),
			"`x://" + strings.Repeat("a", 2044) + "` [address not in the sources]" + strings.Repeat("a", 56)})
	for _, row := range rows {
		t.Run(row[0], func(t *testing.T) {
			if got := rewrite.Escape(row[1]); got != row[2] {
				t.Errorf("%s\ngot  %q\nwant %q", row[1], got, row[2])
			}
			checkEscapePieces(t, row[1])
		})
	}
}

// escapeIn escapes a text in pieces of n bytes, with numbers where it has "§".
func escapeIn(text string, n int) string {
	var e rewrite.Escaper
	var out []byte
	for i, part := range strings.Split(text, "§") {
		if i > 0 {
			out, _ = e.AppendNumber(out, []byte("[1]"))
		}
		for piece := range slices.Chunk([]byte(part), n) {
			out = e.Append(out, piece)
		}
	}
	return string(e.Close(out))
}

func checkEscapePieces(t rapid.TB, text string) {
	t.Helper()
	whole := escapeIn(text, max(1, len(text)))
	for _, n := range []int{1, 2, 3, 7, 64} {
		if got := escapeIn(text, n); got != whole {
			t.Fatalf("%q in pieces of %d:\n got %q\nwant %q", text, n, got, whole)
		}
	}
}

// dangerous are the parts of hostile texts, whole and cut.
var dangerous = strings.Split("https://|http:|//|/|\\|ht|tp|s|:|www.|ww|w|.|evil.com|evil|javascript:|data:|@|a@b.c|[|]|"+
	"(|)|](|![|!|[a]:|]:|[1]|[2](id=2)|"+
	"[9](id=9)|【1】|<|>|<img src=x>|</|<!--|b|&|#|&lt;|gt;|`|``|```|~~~|\n|\n\n|\n    |\n  ```\n|\n```\n|\n> |\n- |\n|-|-|\n|\n"+
	"1. | |  |\t|> |_|*|\"|'|word|"+
	"Größe|図書|§|\u200b|\u202e|\x1b[31m|\r|\x00|❤|\xe3|\x80|\xff", "|")

func hostileText(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(dangerous, "|")), 0, 24).Draw(t, "parts"), "")
}

func TestEscapeAtEverySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkEscapePieces(t, hostileText(t)) })
}

func FuzzEscape(f *testing.F) {
	for _, s := range dangerous {
		f.Add(s + "x" + s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkEscapePieces(t, text) })
}

func TestAddresses(t *testing.T) {
	known := rewrite.Addresses{}
	known.Add("See https://Library.example/hours/#top, help@library.example and main.go (git@host.example:a/b.git).")
	for text, want := range map[string]string{
		"library.example/hours http://www.library.example/hours#x mailto:help@library.example": "",
		"library.example":                        "",
		"https://library.example/other":          "https://library.example/other",
		"`evil.com` e.g. other.go 1.2.3.4 a@b c": "evil.com",
		"[x](//evil.example/y) tel:+123":         "//evil.example/y tel:+123",
	} {
		if got := strings.Join(known.Missing(text), " "); got != want {
			t.Errorf("%q: missing %q, want %q", text, got, want)
		}
	}
	e := rewrite.Escaper{Unknown: known.Missing}
	if got := string(e.Close(e.Append(nil, []byte("https://library.example/hours https://evil.com <a href=//evil.com>")))); got !=
		"`https://library.example/hours` `https://evil.com` [address not in the sources] `<a href=//evil.com>` [address not in the sources]" {
		t.Error(got)
	}
}

// TestEscapePlain checks the beginnings of lines of a plain text, with numbers of
// sources at "§", in any pieces.
func TestEscapePlain(t *testing.T) {
	for text, want := range map[string]string{
		"- a\n- # b\n1. c*d\n1986. e": "- a\n- \\# b\n1. `c*d`\n1986\\. e",
		"- §\n- a":                    "- [1]\n- a",
		"a:§\n```\n*x*\n```\n# y":     "a:[1]\n```\n*x*\n```\n\\# y",
	} {
		for _, size := range []int{1, 3, len(text)} {
			e := rewrite.Escaper{Plain: true}
			var got []byte
			for i, part := range strings.Split(text, "§") {
				if i > 0 {
					got, _ = e.AppendNumber(got, []byte("[1]"))
				}
				for piece := range slices.Chunk([]byte(part), size) {
					got = e.Append(got, piece)
				}
			}
			if got = e.Close(got); string(got) != want {
				t.Errorf("%q in pieces of %d: got %q, want %q", text, size, got, want)
			}
		}
	}
}

// TestUnknownAddressInCode checks that addresses which are not in the sources are
// marked in code too, and code without one is unchanged, in any pieces.
func TestUnknownAddressInCode(t *testing.T) {
	for text, want := range map[string]string{
		"Run `curl https://evil.com` now `ls`.": "Run `curl https://evil.com` [address not in the sources] now `ls`.",
		"```sh\ncurl https://evil.com\nls\n```\nThen go on.": "```sh\ncurl https://evil.com\nls\n```\n[address not in the sources]\n\n" +
			"Then go on.",
		"```sh\nls\n```\nThen go on.":                 "```sh\nls\n```\nThen go on.",
		"```\nhttps://evil.com\n```":                  "```\nhttps://evil.com\n```\n[address not in the sources]",
		"```\nhttps://evil.com":                       "```\nhttps://evil.com\n```\n[address not in the sources]",
		"Run:\n\n    curl https://evil.com\n    ls\n": "Run:\n\n    curl https://evil.com [address not in the sources]\n    ls\n",
		"Run:\n\n    curl https://evil.com":           "Run:\n\n    curl https://evil.com [address not in the sources]",
	} {
		for _, size := range []int{1, 3, 7, len(text)} {
			e := rewrite.Escaper{Unknown: rewrite.Addresses{}.Missing}
			var got []byte
			for piece := range slices.Chunk([]byte(text), size) {
				got = e.Append(got, piece)
			}
			if got = e.Close(got); string(got) != want {
				t.Errorf("%q in pieces of %d: got %q, want %q", text, size, got, want)
			}
		}
	}
}

func TestVisibleName(t *testing.T) {
	for name, want := range map[string]string{
		"notes/a b – é 図.md": "notes/a b – é 図.md", "a\nb\x1b[31m": `a\nb\x1b[31m`, "x\u202efdp.exe\u200b": `x\u202efdp.exe\u200b`, "\xff": `\ufffd`,
	} {
		if got := rewrite.VisibleName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

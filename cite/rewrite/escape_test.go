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
func escapeIn(e rewrite.Escaper, text string, n int) string {
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
	whole := escapeIn(rewrite.Escaper{}, text, max(1, len(text)))
	for _, n := range []int{1, 2, 3, 7, 64} {
		if got := escapeIn(rewrite.Escaper{}, text, n); got != whole {
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
			t.Errorf("%q: Missing = %q, want %q", text, got, want)
		}
	}
	e := rewrite.Escaper{Unknown: known.Missing}
	if got := string(e.Close(e.Append(nil, []byte("https://library.example/hours https://evil.com <a href=//evil.com>")))); got !=
		"`https://library.example/hours` `https://evil.com` [address not in the sources] `<a href=//evil.com>` [address not in the sources]" {
		t.Errorf("escaped = %q, want only the known address without a remark", got)
	}
}

// TestEscapeKinds escapes plain texts, and addresses that are not in the sources, in any
// pieces.
func TestEscapeKinds(t *testing.T) {
	for section, e := range map[string]rewrite.Escaper{"plain": {Plain: true}, "unknown": {Unknown: rewrite.Addresses{}.Missing}} {
		for _, row := range datatest.Rows(t, "testdata/escaped.txt", section) {
			for _, size := range []int{1, 3, 7, len(row[0])} {
				if got := escapeIn(e, row[0], size); got != row[1] {
					t.Errorf("%q in pieces of %d: got %q, want %q", row[0], size, got, row[1])
				}
			}
		}
	}
}

func TestVisibleName(t *testing.T) {
	for name, want := range map[string]string{
		"notes/a b – é 図.md": "notes/a b – é 図.md", "a\nb\x1b[31m": `a\nb\x1b[31m`, "x\u202efdp.exe\u200b": `x\u202efdp.exe\u200b`, "\xff": `\ufffd`,
	} {
		if got := rewrite.VisibleName(name); got != want {
			t.Errorf("VisibleName(%q) = %q, want %q", name, got, want)
		}
	}
}

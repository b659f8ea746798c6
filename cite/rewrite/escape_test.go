package rewrite_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ibid/cite/rewrite"
)

func TestEscape(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"address", "see https://a.b/c, (HTTP://x.y) or www.z.q.", "see `https://a.b/c`, (`HTTP://x.y`) or `www.z.q`."},
		{"brackets of an address", "(https://a.b/c_(d)) [https://a.b/c]", "(`https://a.b/c_(d)`) [`https://a.b/c`]"},
		{"emphasis", "**https://a.b** _www.a.b_ *a@b.cd*", "**`https://a.b`** _`www.a.b`_ *` a@b.cd `*"},
		{"mail and schemes", "a@b.c git@github.com:a/b.git mailto:x postgres://u:p@h/d @me 3 @ 5 std::vector a: b",
			"`a@b.c` `git@github.com:a/b.git` `mailto:x` `postgres://u:p@h/d` @me 3 @ 5 std::vector a: b"},
		{"host", "evil.com a//b e.g. 3.14 1.2.3.4 Node.js //x // y", "`evil.com` `a//b` e.g. 3.14 `1.2.3.4` `Node.js` `//x` // y"},
		{"another script", "见https://a.b。は例え.jpで", "`见https://a.b`。`は例え.jpで`"},
		{"element", "#include <stdio.h> a <b and c> </p><!-- x --> <?php 1 < 2 <3 <-", "#include `<stdio.h>` a `<b and c>` `</p>`\\<`!-- x -->` `<?php` 1 < 2 <3 <-"},
		{"element that does not end", "<img src=//a.b\nx", "`<img` src=`//a.b`\nx"},
		{"element with backticks", "<a `b`>", "``<a `b`>``"},
		{"reference", "&lt; &#60; &ltx AT&T &", "`&lt`; `&#60`; `&ltx` AT&T &"},
		{"link", "[x](https://a.b) [[1]](y) f[0](y)", "[x]\\(`https://a.b`) [[1]]\\(y) f[0]\\(y)"},
		{"image", "![x](y.png) vec![1] good!", "\\![x]\\(`y.png`) vec\\![1] good!"},
		{"note", "a^[b] ^[1]", "a\\^[b] \\^[1]"},
		{"definition", "[a]: b\n[c\nd]:\n[1]: x", "[a]\\: b\n[c\nd]\\:\n[1]\\: x"},
		{"backslashes", `\![a] !\[ \https://a.b \\<b> https:\/\/a.b`, "\\![a] !\\[ `\\https://a.b` \\\\`<b>` `https:\\/\\/a.b`"},
		{"code span", "`<b>` and `` ` `` or `a|b` and ` alone", "`<b>` and `` ` `` or `a|b` and \\` alone"},
		{"code spans in a row", "`a`https://b.c`d` https://e.f`g`", "`a`h`ttps://b.c`\\`d` https://e.f`g\\`"},
		{"code span after a backslash", "\\`a` \\\\`b`", "\\`a` \\\\`b\\`"},
		{"code in a table", "|a|b|\n|-|-|\n|`x|y`|z|", "|a|b|\n|-|-|\n|\\`x|y\\`|z|"},
		{"code in the head of a table", "a `x|y` b\n|-|-|\n", "a `x|y` b\n\\|-|-|\n"},
		{"fence", "```sh\ncurl https://a.b\n```\nhttps://a.b", "```sh\ncurl https://a.b\n```\n`https://a.b`"},
		{"fence in a list", "1. Do:\n\n   ```sh\n   curl https://a.b\n\n   x\n   ```\n\n   https://a.b",
			"1. Do:\n\n   ```sh\n   curl https://a.b\n\n   x\n   ```\n\n   `https://a.b`"},
		{"fence in a quote", "> ```\n> <b>\n> ```\n<b>", "> ```\n> <b>\n> ```\n`<b>`"},
		{"fence that leaves its list", "- a\n  ```\nhttps://a.b\n", "- a\n  ```\n  ```\n`https://a.b`\n"},
		{"fence without an end", "~~~\n<b>", "~~~\n<b>\n~~~"},
		{"fence with an odd end", "```\na\n```~~\n<b>\n```", "```\na\n```\n\\`\\`\\`~~\n`<b>`\n```\n```"},
		{"no fence", "- ```\n~~~ `\n  ~~~\n", "- \\`\\`\\`\n~~\\~ \\`\n  ~~\\~\n"},
		{"fence in a fence", "````\n```\n<b>\n```\n````\n<b>", "````\n```\n<b>\n```\n````\n`<b>`"},
		{"indented code", "Run:\n\n    curl https://a.b\n\n    x\n\nhttps://a.b", "Run:\n\n    curl https://a.b\n\n    x\n\n`https://a.b`"},
		{"indented in a list", "- Run:\n\n    https://a.b\nx\n\n    https://a.b", "- Run:\n\n    `https://a.b`\nx\n\n    `https://a.b`"},
		{"fence or code span", "x\n    ```\n    <b>\n\n    <b>", "x\n    ```\n    <b>\n    ```\n\n    `<b>`"},
		{"scheme after a backslash", `x\javascript:x`, "`x\\javascript:x`"},
		{"hidden", "ht\u200btp\u2060s://a.b \x1b[31m\u202e", "`https://a.b` [31m"},
		{"long words", strings.Repeat("a", 300) + ".com", strings.Repeat("a", 128) + "`" + strings.Repeat("a", 172) + ".com`"},
		{"long address", "x://" + strings.Repeat("a", 2100), "`x://" + strings.Repeat("a", 2044) + "` [address not in the sources]" + strings.Repeat("a", 56)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := rewrite.Escape(tt.text); got != tt.want {
				t.Errorf("%s\ngot  %q\nwant %q", tt.text, got, tt.want)
			}
			checkEscapePieces(t, tt.text)
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
var dangerous = strings.Split("https://|http:|//|/|\\|ht|tp|s|:|www.|ww|w|.|evil.com|evil|javascript:|data:|@|a@b.c|[|]|(|)|](|![|!|[a]:|]:|[1]|[2](id=2)|"+
	"[9](id=9)|【1】|<|>|<img src=x>|</|<!--|b|&|#|&lt;|gt;|`|``|```|~~~|\n|\n\n|\n    |\n  ```\n|\n```\n|\n> |\n- |\n|-|-|\n|\n1. | |  |\t|> |_|*|\"|'|word|"+
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
		"Run `curl https://evil.com` now `ls`.":              "Run `curl https://evil.com` [address not in the sources] now `ls`.",
		"```sh\ncurl https://evil.com\nls\n```\nThen go on.": "```sh\ncurl https://evil.com\nls\n```\n[address not in the sources]\n\nThen go on.",
		"```sh\nls\n```\nThen go on.":                        "```sh\nls\n```\nThen go on.",
		"```\nhttps://evil.com\n```":                         "```\nhttps://evil.com\n```\n[address not in the sources]",
		"```\nhttps://evil.com":                              "```\nhttps://evil.com\n```\n[address not in the sources]",
		"Run:\n\n    curl https://evil.com\n    ls\n":        "Run:\n\n    curl https://evil.com [address not in the sources]\n    ls\n",
		"Run:\n\n    curl https://evil.com":                  "Run:\n\n    curl https://evil.com [address not in the sources]",
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

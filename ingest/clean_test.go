package ingest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	xunicode "golang.org/x/text/encoding/unicode"
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
		{"❤\ufe0f emoji 👨\u200d👩", "❤ emoji 👨👩"},
	}
	for _, tt := range tests {
		if got := clean(tt.in); got != tt.want {
			t.Errorf("clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestCleanLeavesNothingToClean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom(nil, unicode.Cf, unicode.M, unicode.Zs, unicode.Variation_Selector, unicode.Cc))).Draw(t, "in")
		got := clean(in)
		if !utf8.ValidString(got) || !norm.NFC.IsNormalString(got) {
			t.Fatalf("clean(%q) = %q", in, got)
		}
		for _, r := range got {
			if invisible(r) && r != '\n' && r != '\t' {
				t.Fatalf("clean(%q) keeps %U", in, r)
			}
		}
		if again := clean(got); again != got {
			t.Fatalf("clean(%q) = %q, and again %q", in, got, again)
		}
	})
}

func TestDecode(t *testing.T) {
	const (
		russian   = "Библиотека открывается в девять часов утра. По воскресеньям она закрыта, и книги можно вернуть через окно. "
		german    = "Die Bücherei öffnet um neun Uhr früh. Für Bücher, die zu spät zurückkommen, fällt eine Gebühr an. "
		japanese1 = "図書館は九時に開きます。日曜日は休館です。本は窓口でお返しください。"
		chinese   = "图书馆九点开门。星期日不开放。迟还的书要付费，请到窗口办理还书手续。"
		taiwan    = "圖書館九點開門。星期日不開放。遲還的書要付費，請到窗口辦理還書手續。"
		korean1   = "도서관은 아홉 시에 엽니다. 일요일에는 쉽니다. 책은 창구에 돌려주세요. "
	)
	tests := []struct {
		name string
		enc  encoding.Encoding
		text string
	}{
		{"utf-16le with mark", xunicode.UTF16(xunicode.LittleEndian, xunicode.UseBOM), german},
		{"utf-16be without mark", xunicode.UTF16(xunicode.BigEndian, xunicode.IgnoreBOM), german},
		{"utf-16le without mark", xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM), german},
		{"utf-8 with mark", xunicode.UTF8BOM, russian},
		{"windows-1251", charmap.Windows1251, russian},
		{"koi8-r", charmap.KOI8R, russian},
		{"latin-1", charmap.ISO8859_1, german},
		{"shift_jis", japanese.ShiftJIS, japanese1},
		{"euc-jp", japanese.EUCJP, japanese1},
		{"iso-2022-jp", japanese.ISO2022JP, japanese1},
		{"gb18030", simplifiedchinese.GB18030, chinese},
		{"big5", traditionalchinese.Big5, taiwan},
		{"euc-kr", korean.EUCKR, korean1},
	}
	for _, tt := range tests {
		text := strings.Repeat(tt.text, 4)
		data, err := tt.enc.NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decode(data, ""); err != nil || got != text {
			t.Errorf("%s: %q, %v", tt.name, got[:min(len(got), 80)], err)
		}
	}
	// What a page declares counts for less than what its bytes show.
	if got, err := decode([]byte(german), "windows-1251"); err != nil || got != german {
		t.Errorf("a lying declaration: %q, %v", got, err)
	}
	data, err := charmap.ISO8859_15.NewEncoder().Bytes([]byte("5 € für Bücher"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decode(data, "ISO-8859-15"); err != nil || got != "5 € für Bücher" {
		t.Errorf("a true declaration: %q, %v", got, err)
	}
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

// Git itself says what its rules leave out.
func TestIgnoreLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".gitignore", "# comment\n*.log\n!keep.log\n/top.md\nbuild/\ndocs/*.txt\n**/deep/x.md\na[bc].md\n\\#odd.md\nspace.md \nfoo/**\n!foo/keep\n{brace}.md\nq?.md\n")
	write("docs/.gitignore", "local.md\n/anchored.md\n!keep.txt\n")
	files := []string{
		"a.log", "keep.log", "docs/b.log", "top.md", "docs/top.md", "build/x.md", "docs/build/y.md", "docs/a.txt", "docs/keep.txt",
		"docs/sub/a.txt", "deep/x.md", "docs/deep/x.md", "ab.md", "ad.md", "#odd.md", "space.md", "docs/local.md", "docs/sub/local.md",
		"local.md", "docs/anchored.md", "docs/sub/anchored.md", "foo/keep", "foo/other.md", "{brace}.md", "brace.md", "q1.md", "q12.md",
	}
	for _, f := range files {
		write(f, "Text.")
	}
	if out, err := exec.CommandContext(t.Context(), git, "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Skipf("git init: %v %s", err, out)
	}
	seen := map[string]bool{}
	for c, err := range (&Syncer{Sink: newMemory()}).Sync(t.Context(), harbour, os.DirFS(dir)) {
		if err != nil {
			t.Fatal(err)
		}
		seen[c.Path] = true
	}
	for _, f := range files {
		err := exec.CommandContext(t.Context(), git, "-C", dir, "check-ignore", "-q", "--no-index", f).Run()
		if ignored := err == nil; ignored == seen[f] {
			t.Errorf("%s: git leaves it out: %v; seen: %v", f, ignored, seen[f])
		}
	}
}

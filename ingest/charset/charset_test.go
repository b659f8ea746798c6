package charset

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"

	"ibid/data/datatest"
)

var must = datatest.Must

// TestShareDecodedRight reads folders that are named after the encoding of their files,
// some with the language. The decoder gets no declaration.
func TestShareDecodedRight(t *testing.T) {
	dir := datatest.Sets(t, "files/encodings-chardet")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	right, unsupported := 0, 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		must(t, err)
		want, ok := reference(t, filepath.Base(filepath.Dir(name)), data)
		got, err := Decode(data, "")
		if !ok && err != nil { // Johab, ISO-2022-KR, UTF-32
			unsupported++
			continue
		}
		if err != nil || got != want {
			enc, _, _ := encodingOf(data, "")
			t.Logf("%s: detected as %v, %v", name, enc, err)
			continue
		}
		right++
	}
	t.Logf("figure: files of encodings-chardet decoded right, nothing declared: %d of %d (%.3f)", right, len(files),
		float64(right)/float64(len(files)))
	if unsupported > 5 || right+unsupported < len(files) {
		t.Errorf("%d of %d files are decoded correctly", right, len(files))
	}
}

// reference decodes data as the name of its folder says; ok is false if the name says nothing.
func reference(t *testing.T, folder string, data []byte) (text string, ok bool) {
	t.Helper()
	name := strings.ToLower(folder)
	if i := strings.LastIndexByte(name, '-'); i > 0 && strings.Trim(name[i:], "-abcdefghijklmnopqrstuvwxyz") == "" && len(name[i:]) > 4 {
		name = name[:i]
	}
	var enc encoding.Encoding
	switch name {
	case "ascii", "utf-8", "utf-8-sig":
		enc = unicode.UTF8BOM
	case "utf-16": // with a byte order mark
		enc, data, _ = byOrderMark(data)
	case "utf-16le":
		enc = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case "utf-16be":
		enc = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case "tis-620":
		enc = charmap.Windows874
	case "maccyrillic":
		enc = charmap.MacintoshCyrillic
	default:
		enc = Lookup(name)
	}
	if enc == nil {
		return "", false
	}
	out, err := enc.NewDecoder().Bytes(data)
	must(t, err)
	return string(out), true
}

// TestShortTexts checks that a sentence or two in each language is enough, and that a false
// declaration does no harm.
func TestShortTexts(t *testing.T) {
	short := textsOf(t, "short")
	littleEndian, bigEndian := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	for _, tt := range []struct {
		text string
		in   []encoding.Encoding
	}{
		{short["russian"], []encoding.Encoding{littleEndian, bigEndian, charmap.Windows1251,
			charmap.KOI8R, charmap.ISO8859_5, charmap.CodePage866, charmap.CodePage855,
			charmap.MacintoshCyrillic}},
		{short["ukrainian"], []encoding.Encoding{charmap.Windows1251, charmap.KOI8U, charmap.ISO8859_5}},
		{short["bulgarian"], []encoding.Encoding{charmap.Windows1251, charmap.ISO8859_5}},
		{short["greek"], []encoding.Encoding{charmap.Windows1253, charmap.ISO8859_7}},
		{short["hebrew"], []encoding.Encoding{charmap.Windows1255, charmap.ISO8859_8}},
		{short["arabic"], []encoding.Encoding{littleEndian, bigEndian, charmap.Windows1256, charmap.ISO8859_6}},
		{short["thai"], []encoding.Encoding{charmap.Windows874}},
		{short["polish"], []encoding.Encoding{charmap.Windows1250, charmap.ISO8859_2, charmap.CodePage852}},
		{short["czech"], []encoding.Encoding{charmap.Windows1250, charmap.ISO8859_2, charmap.CodePage852}},
		{short["hungarian"], []encoding.Encoding{charmap.Windows1250, charmap.ISO8859_2}},
		{short["turkish"], []encoding.Encoding{charmap.Windows1254, charmap.ISO8859_9}},
		{short["german"], []encoding.Encoding{charmap.Windows1252, charmap.ISO8859_1, charmap.Macintosh, unicode.UTF8BOM,
			unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), littleEndian, bigEndian}},
		{short["french"], []encoding.Encoding{charmap.Windows1252, charmap.ISO8859_1, charmap.Macintosh, charmap.CodePage850}},
		{short["english"], []encoding.Encoding{charmap.Windows1252}},
		{short["japanese"], []encoding.Encoding{japanese.ShiftJIS, japanese.EUCJP, japanese.ISO2022JP}},
		{short["chinese"], []encoding.Encoding{simplifiedchinese.GBK, simplifiedchinese.GB18030}},
		{short["chinese"] + "\r\n", []encoding.Encoding{littleEndian, bigEndian}},
		{short["japanese"] + "\n" + short["thai"], []encoding.Encoding{littleEndian, bigEndian}},
		{short["taiwan"], []encoding.Encoding{traditionalchinese.Big5}},
		{short["korean"], []encoding.Encoding{littleEndian, bigEndian, korean.EUCKR}},
	} {
		for _, enc := range tt.in {
			data, err := enc.NewEncoder().Bytes([]byte(tt.text))
			if err != nil {
				t.Errorf("encoding %q in %v: %v", tt.text, enc, err)
				continue
			}
			for _, declared := range []string{"", "utf-8", "iso-8859-1", "windows-1251", "shift_jis", "nonsense"} {
				if got, err := Decode(data, declared); err != nil || got != tt.text {
					t.Errorf("%v declared as %q: Decode = %q, %v; want %q", enc, declared, got, err, tt.text)
				}
			}
		}
	}
}

// TestDecode checks that a few words are enough if other encodings would mix scripts, that
// a declaration decides if the bytes do not, and that bytes that are not text, or in an
// unsupported encoding, are refused.
func TestDecode(t *testing.T) {
	ebcdic := encoded(t, charmap.CodePage037, strings.Repeat("The ferry leaves at nine in the morning\n", 3))
	type row struct {
		data, declared, want string
		err                  error
	}
	rows := []row{
		{"5 \xa4 f\xfcr B\xfccher", "ISO-8859-15", "5 € für Bücher", nil}, {"caf\xe9", "windows-1250", "café", nil},
		{"\xc4\xe0", "windows-1251", "Да", nil}, {"\xc4\xe0", "\"windows-1251\"", "Да", nil}, {"plain", "utf-16le", "plain", nil},
		{"plain", "x-user-defined", "plain", nil}, {"f\xfcr", "replacement", "für", nil}, {"f\xfcr", "iso-2022-kr", "für", nil},
		{"\x1b$)C\x0e?*;g@{\x0f \x0e?9<v\x0f, abc", "", "", ErrEncoding}, {ebcdic, "", "", ErrEncoding},
		{"\x00\x01\x02\x00", "", "", ErrBinary},
		{strings.Repeat("\x01\x02\x91\x92\x05", 100), "", "", ErrBinary}, {"\x7fELF\x02\x01\x01\x00\x00\x00\x00", "", "", ErrBinary},
	}
	for _, text := range []string{"Café für Señor", "naïve", "Grüße aus Köln", "El Niño", "crème brûlée", "Ångström", "voilà"} {
		rows = append(rows, row{encoded(t, charmap.Windows1252, text), "", text, nil})
	}
	for _, tt := range rows {
		if got, err := Decode([]byte(tt.data), tt.declared); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Decode(%q, %q) = %q, %v; want %q, %v", tt.data, tt.declared, got, err, tt.want, tt.err)
		}
	}
}

// TestGarbled checks that garbled text is recognized, and that texts in any language, lists
// of numbers and short texts are not.
func TestGarbled(t *testing.T) {
	const ferry = "The ferry leaves the harbour at nine in the morning, and on Sundays an hour later than on other days. "
	mixed, err := charmap.KOI8R.NewDecoder().String(encoded(t, charmap.Windows1251, "Библиотека Открывается В Девять Часов Утра, "+
		"А По Воскресеньям Она Закрыта. Книги Можно Вернуть Через Окно Во Дворе."))
	must(t, err)
	turned := func(text string, by rune) string { // each letter is replaced by another one
		return strings.Map(func(r rune) rune {
			if i := r | 0x20 - 'a'; i >= 0 && i < 26 && r < 0x80 {
				return r - i + (i+by+26)%26
			}
			return r
		}, text)
	}
	const rope = "Coil the rope with the sun, keep every turn equally long, and finish by wrapping what is left around the middle. " +
		"Wet ropes dry hanging in the shade; those stiff with salt are washed in fresh water before winter comes."
	const bread = " Das Brot wird am Morgen gebacken, und wer später kommt, bekommt manchmal keines mehr; freitags gibt es auch Kuchen."
	japanese, err := charmap.Windows1252.NewDecoder().String(encoded(t, japanese.ShiftJIS, "図書館は九時に開きます。日曜日は休みですが、本は窓口で返すことができます。"))
	must(t, err)
	for text, want := range map[string]bool{
		ferry: false, strings.ToUpper(ferry): false, bread: false, japanese: true, mixed: true,
		rope + bread: false, turned(rope+bread, 13): true, turned(rope+bread, -1): true, turned(rope+bread, 7): true,
	} {
		if got := IsGarbled(text); got != want {
			t.Errorf("IsGarbled(%q) = %t", text, got)
		}
	}
	for _, c := range datatest.Table[struct {
		Begin, Repeated string
		Times           int
		End             string
		Want            bool
	}](t, "testdata/texts.txt", "garbled") {
		text := c.Begin + strings.Repeat(c.Repeated, c.Times) + c.End
		if got := IsGarbled(text); got != c.Want {
			t.Errorf("IsGarbled(%q) = %t", text, got)
		}
	}
}

// TestMisread checks that text in the wrong encoding is recognized, and that text in any
// language is not, even with many accents.
func TestMisread(t *testing.T) {
	languages := textsOf(t, "languages")
	for _, text := range languages {
		if text = strings.Repeat(text+"\n", 4); IsGarbled(text) {
			t.Errorf("IsGarbled(%q) = true", text)
		}
		// Its UTF-8 read as another encoding, once or twice, is garbled.
		for _, m := range misreadings[:2] {
			wrong := text
			for range 2 {
				in := wrong
				wrong = ""
				for _, b := range []byte(in) {
					chars := charmap.Windows1252
					if m('Ж') != "" {
						chars = charmap.Windows1251
					}
					if r := chars.DecodeByte(b); r != utf8.RuneError {
						wrong += string(r)
					} else {
						wrong += string(rune(b))
					}
				}
				if !IsGarbled(wrong) {
					t.Errorf("IsGarbled(%q) = false", wrong[:100])
				}
			}
		}
	}
	latin := func(enc encoding.Encoding, text string) string {
		out, err := charmap.Windows1252.NewDecoder().String(encoded(t, enc, strings.Repeat(text, 3)))
		must(t, err)
		return out
	}
	for _, text := range []string{
		latin(charmap.Windows1251, languages["Russian"]), latin(charmap.KOI8R, languages["Russian"]),
		latin(charmap.Windows1253, languages["Greek"]), latin(simplifiedchinese.GBK, languages["Chinese"]),
		latin(japanese.ShiftJIS, languages["Japanese"]),
	} {
		if !IsGarbled(text) {
			t.Errorf("IsGarbled(%q) = false", text)
		}
	}
}

// TestPairShares checks that the table has a digit for each pair of letters, including
// starts and ends of words.
func TestPairShares(t *testing.T) {
	if len(pairShares) != 27*27 || strings.Trim(pairShares, "0123456789") != "" || pairShares[0] != '0' {
		t.Errorf("the table has %d digits", len(pairShares))
	}
}

// TestCodesAreRead checks that codes, abbreviations and keys, which are in no language, are
// not garbled.
func TestCodesAreRead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	from := func(letters string, least, most int) string {
		code := make([]byte, least+random.IntN(most-least+1))
		for i := range code {
			code[i] = letters[random.IntN(len(letters))]
		}
		return string(code)
	}
	const capitals, digits = "BCDFGHJKLMNPQRSTVWXZ", "0123456789"
	for name, line := range map[string]func() string{
		"parts": func() string {
			return from(capitals, 2, 3) + "-" + from(digits, 2, 4) + from(capitals, 1, 1) + " " + from(capitals, 3, 9)
		},
		"described": func() string {
			return from(capitals+digits, 8, 8) + "\tgskt flng " + from(capitals, 4, 4) + "\t" + from(digits, 2, 3) + " pcs"
		},
		"call signs": func() string {
			return "DL" + from(digits, 1, 1) + from(capitals, 3, 3) + " " + from(digits, 4, 4) + " kHz"
		},
		"vehicles":      func() string { return from(capitals+digits, 17, 17) },
		"tickers":       func() string { return from(capitals, 3, 4) + " " + from(digits, 2, 2) + "." + from(digits, 2, 2) },
		"mnemonics":     func() string { return from(capitals, 2, 10) },
		"DNA":           func() string { return from("acgt", 60, 60) },
		"groups of DNA": func() string { return from(digits, 2, 3) + strings.Repeat(" "+from("ccgggat", 10, 10), 6) },
		"proteins":      func() string { return from("ACDEFGHIKLMNPQRSTVWY", 60, 60) },
		"base64":        func() string { return from(capitals+strings.ToLower(capitals)+digits+"AEIOUaeiou+/", 76, 76) },
		"chess": func() string {
			return from(digits, 1, 2) + ". N" + from("abcdefgh", 1, 1) + "3 " + from("abcdefgh", 1, 1) + "xd5"
		},
		"word search":   func() string { return from(capitals, 15, 15) },
		"hashes":        func() string { return from("0123456789abcdef", 40, 40) },
		"abbreviations": func() string { return from(strings.ToLower(capitals), 2, 6) },
	} {
		var text strings.Builder
		for range 200 {
			text.WriteString(line() + "\n")
		}
		if IsGarbled(text.String()) {
			t.Errorf("IsGarbled of %s = true: %.200q", name, text.String())
		}
	}
}

// textsOf returns the texts of a section, by name.
func textsOf(t *testing.T, section string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, row := range datatest.Rows(t, "testdata/texts.txt", section) {
		texts[row[0]] = row[1]
	}
	return texts
}

func encoded(t *testing.T, enc encoding.Encoding, text string) string {
	t.Helper()
	data, err := enc.NewEncoder().String(text)
	must(t, err)
	return data
}

// FuzzDecode checks that any bytes decode to text or an error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00"), "utf-8")
	f.Add([]byte("\x1b$)C\x0e?*"), "")
	f.Add([]byte("\xb7\x61\xac"), "shift_jis")
	f.Fuzz(func(t *testing.T, data []byte, declared string) {
		Decode(data, declared)
	})
}

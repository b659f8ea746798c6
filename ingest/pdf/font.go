package pdf

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	pdf "github.com/ledongthuc/pdf"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// A font decodes the bytes of strings to characters and widths.
type font struct {
	composite bool
	codes     map[string]string // from ToUnicode
	lengths   [5]bool           // whether codes has keys of a length
	simple    [256]string       // of a simple font without ToUnicode
	multibyte encoding.Encoding // of a composite font with a known encoding
	widths    map[int]float64   // in thousandths of the size
	width     float64           // of all other codes
	scale     float64           // of widths; 1/1000 except in Type 3 fonts
	bold      bool
	vertical  bool
}

// A char is one character code of a string.
type char struct {
	text  string
	width float64 // as a multiple of the font size
	space bool    // the single byte 32, to which word spacing applies
}

func newFont(v pdf.Value) *font {
	f := &font{scale: 0.001, widths: make(map[int]float64)}
	name := v.Key("BaseFont").Name()
	descriptor := v.Key("FontDescriptor")
	f.composite = v.Key("Subtype").Name() == "Type0"
	if f.composite {
		f.readComposite(v)
		descriptor = v.Key("DescendantFonts").Index(0).Key("FontDescriptor")
	} else {
		f.readSimple(v, name, descriptor)
	}
	if to := v.Key("ToUnicode"); to.Kind() == pdf.Stream {
		table, _ := streamBytes(to) // missing codes become unknown characters
		f.readToUnicode(table)
	}
	// Many fonts give the thickness of their stems instead of a weight.
	weight := cmp.Or(descriptor.Key("FontWeight").Float64(), 5*descriptor.Key("StemV").Float64())
	f.bold = isBold(name, weight, descriptor.Key("Flags").Int64())
	return f
}

// isBold reports whether a font is bold by its name, its weight (100 to 900) or its flags (PDF 2.0,
// table 121).
func isBold(name string, weight float64, flags int64) bool {
	const forceBold = 1 << 18
	lower := strings.ToLower(name)
	named := slices.ContainsFunc([]string{"bold", "black", "heavy", "demi"}, func(w string) bool { return strings.Contains(lower, w) })
	return named || weight >= 600 || flags&forceBold != 0
}

func (f *font) readSimple(v pdf.Value, name string, descriptor pdf.Value) {
	f.readWidths(v, name, descriptor)
	enc := v.Key("Encoding")
	base := enc.Name()
	if enc.Kind() == pdf.Dict {
		base = enc.Key("BaseEncoding").Name()
	}
	symbolic := descriptor.Key("Flags").Int64()&4 != 0
	for i := range 256 {
		var r rune
		switch {
		case base == "MacRomanEncoding":
			r = charmap.Macintosh.DecodeByte(byte(i))
		case base == "WinAnsiEncoding" || v.Key("Subtype").Name() == "TrueType" && !symbolic:
			r = charmap.Windows1252.DecodeByte(byte(i))
		default:
			r = standardEncoding(byte(i))
		}
		if r >= ' ' && r != utf8.RuneError {
			f.simple[i] = string(r)
		}
	}
	if base == "" {
		program, _ := streamBytes(descriptor.Key("FontFile")) // up to any damage
		f.readNames(ownEncoding(program))
	}
	f.readNames(v)
}

var glyphName = regexp.MustCompile(`dup\s+(\d{1,3})\s*/([A-Za-z0-9._]+)\s+put`)

// ownEncoding returns a font whose encoding has the glyph names in the program of a Type 1 font.
func ownEncoding(program []byte) pdf.Value {
	program, _, _ = bytes.Cut(program, []byte("eexec"))
	src := "%PDF-1.4\n1 0 obj<</Encoding<</Differences["
	for _, m := range glyphName.FindAllSubmatch(program, 256) {
		src += fmt.Sprintf("%s/%s ", m[1], m[2])
	}
	src += "]>>>>endobj\n"
	src += fmt.Sprintf("xref\n0 2\n0000000000 65535 f \n0000000009 00000 n \n"+
		"trailer<</Size 2/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(src))
	r, err := pdf.NewReader(strings.NewReader(src), int64(len(src)))
	if err != nil {
		return pdf.Value{}
	}
	return r.Trailer().Key("Root")
}

// readNames reads the glyph names of a font's encoding.
func (f *font) readNames(v pdf.Value) {
	named := pdf.Font{V: v}
	differences := v.Key("Encoding").Key("Differences")
	if differences.Len() == 0 {
		return
	}
	encoder := named.Encoder()
	code := 0
	for i := range differences.Len() {
		d := differences.Index(i)
		if d.Kind() == pdf.Integer {
			code = int(d.Int64())
			continue
		}
		if code >= 0 && code < 256 && d.Kind() == pdf.Name {
			f.simple[code] = glyphText(d.Name(), byte(code), encoder)
		}
		code++
	}
}

// glyphText returns the text of a glyph name in the library's list, or of the form "uni0041",
// "u1F600", "f_f_i" or "a.sc".
func glyphText(name string, code byte, list pdf.TextEncoding) string {
	// The list returns the code itself for an unknown name.
	if t := list.Decode(string([]byte{code})); t != string(rune(code)) || len(name) == 1 && t == name {
		return t
	}
	base, _, _ := strings.Cut(name, ".")
	if m := unicodeName.FindStringSubmatch(base); m != nil {
		n, _ := strconv.ParseUint(m[1]+m[2], 16, 32) // at most six digits
		return string(rune(n))
	}
	joined := strings.ReplaceAll(base, "_", "")
	switch {
	case len(base) == 1, joined != base && len(joined) <= 4:
		return joined
	case name != ".notdef" && code >= ' ' && code < 0x7f:
		return string(rune(code))
	}
	return ""
}

var unicodeName = regexp.MustCompile(`^(?:uni([0-9A-F]{4})|u([0-9A-F]{4,6})$)`)

func (f *font) readWidths(v pdf.Value, name string, descriptor pdf.Value) {
	f.width = descriptor.Key("MissingWidth").Float64()
	widths := v.Key("Widths")
	first := int(v.Key("FirstChar").Int64())
	for i := range min(widths.Len(), 256) {
		f.widths[first+i] = widths.Index(i).Float64()
	}
	if v.Key("Subtype").Name() == "Type3" {
		if m := v.Key("FontMatrix"); m.Len() == 6 && m.Index(0).Float64() != 0 {
			f.scale = m.Index(0).Float64()
		}
		return
	}
	if widths.Len() > 0 {
		return
	}
	if lower := strings.ToLower(name); strings.Contains(lower, "courier") || strings.Contains(lower, "mono") {
		f.width = 600
		return
	}
	f.width = cmp.Or(f.width, 500)
	bold, table := strings.Contains(name, "Bold"), helveticaWidths
	switch italic := strings.Contains(name, "Italic"); {
	case !strings.Contains(name, "Times"):
		if bold {
			table = helveticaBoldWidths
		}
	case bold && italic:
		table = timesBoldItalicWidths
	case bold:
		table = timesBoldWidths
	case italic:
		table = timesItalicWidths
	default:
		table = timesWidths
	}
	for i, w := range table {
		f.widths[' '+i] = w
	}
}

// Widths of the characters from space to tilde in the standard fonts Helvetica
// and Times, from Adobe's Core 14 font metrics.
var (
	helveticaWidths = []float64{278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
		556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
		722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556,
		556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584}
	helveticaBoldWidths = []float64{278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556,
		556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833,
		722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611, 556, 333, 611,
		611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584}
	timesWidths = []float64{250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278, 500, 500, 500, 500, 500, 500,
		500, 500, 500, 500, 278, 278, 564, 564, 564, 444, 921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722, 611, 889, 722, 722,
		556, 722, 667, 556, 611, 722, 722, 944, 722, 722, 611, 333, 278, 333, 469, 500, 333, 444, 500, 444, 500, 444, 333, 500, 500, 278,
		278, 500, 278, 778, 500, 500, 500, 500, 333, 389, 278, 500, 500, 722, 500, 500, 444, 480, 200, 480, 541}
	timesBoldWidths = []float64{250, 333, 555, 500, 500, 1000, 833, 278, 333, 333, 500, 570, 250, 333, 250, 278, 500, 500, 500, 500, 500,
		500, 500, 500, 500, 500, 333, 333, 570, 570, 570, 500, 930, 722, 667, 722, 722, 667, 611, 778, 778, 389, 500, 778, 667, 944, 722,
		778, 611, 778, 722, 556, 667, 722, 722, 1000, 722, 722, 667, 333, 278, 333, 581, 500, 333, 500, 556, 444, 556, 444, 333, 500,
		556, 278, 333, 556, 278, 833, 556, 500, 556, 556, 444, 389, 333, 556, 500, 722, 500, 500, 444, 394, 220, 394, 520}
	timesItalicWidths = []float64{250, 333, 420, 500, 500, 833, 778, 214, 333, 333, 500, 675, 250, 333, 250, 278, 500, 500, 500, 500,
		500, 500, 500, 500, 500, 500, 333, 333, 675, 675, 675, 500, 920, 611, 611, 667, 722, 611, 611, 722, 722, 333, 444, 667, 556, 833,
		667, 722, 611, 722, 611, 500, 556, 722, 611, 833, 611, 556, 556, 389, 278, 389, 422, 500, 333, 500, 500, 444, 500, 444, 278, 500,
		500, 278, 278, 444, 278, 722, 500, 500, 500, 500, 389, 389, 278, 500, 444, 667, 444, 444, 389, 400, 275, 400, 541}
	timesBoldItalicWidths = []float64{250, 389, 555, 500, 500, 833, 778, 278, 333, 333, 500, 570, 250, 333, 250, 278, 500, 500, 500, 500,
		500, 500, 500, 500, 500, 500, 333, 333, 570, 570, 570, 500, 832, 667, 667, 667, 722, 667, 667, 722, 778, 389, 500, 667, 611, 889,
		722, 722, 611, 722, 667, 556, 611, 722, 667, 889, 667, 611, 611, 333, 278, 333, 570, 500, 333, 500, 500, 444, 500, 444, 333, 500,
		556, 278, 278, 500, 278, 778, 556, 500, 500, 500, 389, 389, 278, 556, 444, 667, 500, 444, 389, 348, 220, 348, 570}
)

// standardEncoding decodes Adobe's StandardEncoding.
func standardEncoding(c byte) rune {
	switch {
	case c == '\'':
		return '’'
	case c == '`':
		return '‘'
	case c >= ' ' && c < 0x7f:
		return rune(c)
	case c >= 0xa1 && int(c-0xa1) < len(standardHigh):
		return standardHigh[c-0xa1]
	}
	return 0
}

var standardHigh = []rune("¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ\x00–†‡·\x00¶•‚„”»…‰\x00¿\x00`´ˆ˜¯˘˙¨\x00˚¸\x00˝˛ˇ—" +
	strings.Repeat("\x00", 16) + "Æ\x00ª\x00\x00\x00\x00ŁØŒº\x00\x00\x00\x00\x00æ\x00\x00\x00ı\x00\x00łøœß")

// maxWidths limits the number of stored widths of a font.
const maxWidths = 1 << 17

func (f *font) readComposite(v pdf.Value) {
	d := v.Key("DescendantFonts").Index(0)
	f.width = 1000
	if dw := d.Key("DW"); dw.Kind() == pdf.Integer || dw.Kind() == pdf.Real {
		f.width = dw.Float64()
	}
	w := d.Key("W")
	for i := 0; i+1 < w.Len() && len(f.widths) < maxWidths; {
		first := int(w.Index(i).Int64())
		if list := w.Index(i + 1); list.Kind() == pdf.Array {
			for j := range list.Len() {
				f.widths[first+j] = list.Index(j).Float64()
			}
			i += 2
			continue
		}
		last, width := int(w.Index(i+1).Int64()), w.Index(i+2).Float64()
		for c := first; c <= last && len(f.widths) < maxWidths; c++ {
			f.widths[c] = width
		}
		i += 3
	}
	name := v.Key("Encoding").Name()
	f.vertical = strings.HasSuffix(name, "-V")
	f.multibyte = predefinedEncoding(name)
}

// predefinedEncoding returns the encoding of a predefined character map, or nil if its codes are
// not characters.
func predefinedEncoding(name string) encoding.Encoding {
	switch {
	case strings.Contains(name, "UCS2") || strings.Contains(name, "UTF16"):
		return utf16BE
	case strings.Contains(name, "RKSJ"):
		return japanese.ShiftJIS
	case strings.HasPrefix(name, "EUC-"):
		return japanese.EUCJP
	case strings.HasPrefix(name, "GBK") || strings.HasPrefix(name, "GB-EUC"):
		return simplifiedchinese.GB18030
	case strings.Contains(name, "-B5") || strings.HasPrefix(name, "B5"):
		return traditionalchinese.Big5
	case strings.HasPrefix(name, "KSC"):
		return korean.EUCKR
	}
	return nil
}

// maxCodes limits the number of stored codes of a character map.
const maxCodes = 1 << 17

// readToUnicode reads the map from codes to characters.
func (f *font) readToUnicode(src []byte) {
	codes := make(map[string]string)
	interpret(src, func(op string, args []operand) {
		switch op {
		case "endbfchar":
			for i := 0; i+1 < len(args); i += 2 {
				f.addCode(codes, args[i].str, utf16Text(args[i+1].str))
			}
		case "endbfrange":
			for i := 0; i+2 < len(args); i += 3 {
				f.addRange(codes, args[i].str, args[i+1].str, args[i+2])
			}
		}
	})
	if len(codes) > 0 {
		f.codes = codes
	}
}

func (f *font) addCode(codes map[string]string, code, text string) {
	if n := len(code); n > 0 && n <= 4 && len(codes) < maxCodes {
		codes[code] = text
		f.lengths[n] = true
	}
}

func (f *font) addRange(codes map[string]string, low, high string, to operand) {
	if len(low) == 0 || len(low) > 4 || len(low) != len(high) {
		return
	}
	first, last := codeNumber(low), codeNumber(high)
	base := []rune(utf16Text(to.str))
	for c := first; c <= last && c-first < 1<<16; c++ {
		code := make([]byte, len(low))
		for i := range code {
			code[i] = byte(c >> (8 * (len(code) - 1 - i)))
		}
		switch i := int(c - first); {
		case to.kind == opArray && i < len(to.items):
			f.addCode(codes, string(code), utf16Text(to.items[i].str))
		case to.kind == opString && len(base) > 0:
			text := append([]rune(nil), base...)
			text[len(text)-1] += rune(i)
			f.addCode(codes, string(code), string(text))
		}
	}
}

func codeNumber(code string) uint64 {
	var n uint64
	for i := range len(code) {
		n = n<<8 | uint64(code[i])
	}
	return n
}

func utf16Text(s string) string {
	if len(s) == 1 {
		return string(rune(s[0]))
	}
	text, _ := utf16BE.NewDecoder().String(s) // replaces invalid characters
	return text
}

// chars splits a string into characters.
func (f *font) chars(s string) []char {
	var out []char
	for len(s) > 0 {
		n := f.codeLength(s)
		code := s[:n]
		s = s[n:]
		c := char{space: n == 1 && code == " "}
		text, ok := f.codes[code]
		switch {
		case ok:
			c.text = text
		case !f.composite:
			c.text = f.simple[code[0]]
		case f.multibyte != nil:
			if t, err := f.multibyte.NewDecoder().String(code); err == nil {
				c.text = t
			}
		}
		width, ok := f.widths[int(codeNumber(code))]
		if !ok {
			width = f.width
		}
		if f.multibyte != nil && f.multibyte != utf16BE && n == 1 {
			width = f.width / 2 // widths are per glyph, not per code
		}
		c.width = width * f.scale
		out = append(out, c)
	}
	return out
}

func (f *font) codeLength(s string) int {
	if !f.composite {
		return 1
	}
	if f.multibyte != nil && f.multibyte != utf16BE {
		if s[0] < 0x80 || f.multibyte == japanese.ShiftJIS && s[0] >= 0xa0 && s[0] <= 0xdf {
			return 1
		}
		return min(2, len(s))
	}
	// A code that is not in the map has two bytes, unless the map has codes of one byte and none of
	// two.
	for n := 1; n <= 4 && n <= len(s); n++ {
		if f.lengths[n] {
			if _, ok := f.codes[s[:n]]; ok {
				return n
			}
		}
	}
	if f.lengths[1] && !f.lengths[2] {
		return 1
	}
	return min(2, len(s))
}

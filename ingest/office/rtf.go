package office

import (
	"cmp"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"ibid/ingest/charset"
)

// rtfSkipped are the groups without document text.
var rtfSkipped = map[string]bool{
	"fonttbl": true, "colortbl": true, "stylesheet": true, "info": true, "pict": true, "object": true, "themedata": true, "datastore": true,
	"listtable": true, "listoverridetable": true, "generator": true, "latentstyles": true, "rsidtbl": true,
	"xmlnstbl": true, "revtbl": true, "filetbl": true, "nonshppict": true, "bkmkstart": true, "bkmkend": true, "pn": true,
	"ftnsep": true, "ftnsepc": true, "aftnsep": true, "atnid": true, "atndate": true, "atnref": true,
	"xe": true, "tc": true, "picprop": true, "sp": true, "shprslt": true, "deleted": true,
}

// rtfRead are the groups that are read although older programs don't know them.
var rtfRead = []string{"shppict", "annotation", "footnote", "shpinst", "do", "fldinst"}

// rtfSigns maps the control words for characters. A page number is written as 1.
var rtfSigns = map[string]string{"chpgn": "1", "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’",
	"ldblquote": "“", "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " ", "~": "\u00a0", "_": "-", "-": ""}

// An rtfState is the state that braces save and restore.
type rtfState struct {
	skip, hidden bool
	styles       bool // in the style sheet
	unpacked     bool // in RTF that packs HTML, the text is not part of the HTML
	wide         int  // number of characters that replace a Unicode character
	font         int
	note, pict   bool
	apart        string // the text that is kept apart: fieldCode, markerText or the label of an edge
	from         int    // its start
}

// Texts that are kept apart from the document. Others are edges: headers, footers and texts of
// pictures.
const fieldCode, markerText = "code", "marker"

// An rtfPicture is the current picture, in twips.
type rtfPicture struct {
	width, height int
	pixels        bool // it is not a metafile
	described     bool
}

// An rtfReader reads Rich Text Format (version 1.9.1).
type rtfReader struct {
	flow
	src     string
	at      int
	state   rtfState
	saved   []rtfState
	fonts   map[int]encoding.Encoding
	page    encoding.Encoding // encoding of the document
	bytes   []byte            // not yet decoded
	units   []uint16
	ignore  int // characters still to be ignored after a Unicode character
	level   int // of the heading; 0 for none
	inList  bool
	depth   int    // of an item
	marker  string // marker of the paragraph's item
	inTable bool
	heads   map[int]int // outline levels by style
	style   int
	edges   []Block // headers, footers and texts of pictures
	// described is the label of the next property value, or "" if the value is not text.
	described string
	uncounted bool // hidden text not yet counted
	drawn     rtfPicture
	html      bool   // HTML packed in RTF (MS-OXRTFEX)
	address   string // address shown as text, to be written after the current tag
}

// rtf reads Rich Text Format.
func (f *file) rtf(data []byte) error {
	r := &rtfReader{flow: flow{file: f}, src: string(data), state: rtfState{wide: 1},
		fonts: map[int]encoding.Encoding{}, heads: map[int]int{},
		page: charmap.Windows1252}
	for r.at < len(r.src) && f.exceeded == nil {
		r.next()
	}
	if r.html {
		r.flush()
		r.flow.write(Block{Kind: HTML, HTML: []byte(r.text.String())})
		return f.exceeded
	}
	r.end("par")
	r.writeRows()
	r.flow.write(r.edges...)
	return f.exceeded
}

const twips = 15 // per pixel

// next reads a brace, a control word or a character.
func (r *rtfReader) next() {
	c := r.src[r.at]
	r.at++
	switch c {
	case '{':
		r.flush()
		if len(r.saved) < 2*maxDepth {
			r.saved = append(r.saved, r.state)
		}
	case '}':
		r.endStyle()
		r.flush()
		if r.address != "" && strings.HasSuffix(r.text.String(), ">") {
			r.text.WriteString(html.EscapeString(r.address) + " ")
			r.address = ""
		}
		if n := len(r.saved); n > 0 {
			if r.state.note && !r.saved[n-1].note {
				r.text.WriteString(")")
			}
			if p := r.drawn; r.state.pict && !r.saved[n-1].pict && p.pixels && !p.described && p.width*p.height >= leastPicture*twips*twips {
				r.countUnread(pictures)
			}
			if r.state.apart != r.saved[n-1].apart {
				r.endApart()
			}
			if r.state, r.saved = r.saved[n-1], r.saved[:n-1]; n == 1 { // ignore text after the document
				r.at = len(r.src)
			}
		}
	case '\r', '\n':
	case '\\':
		r.control()
	default:
		r.add(c)
	}
}

// add adds a byte in the encoding of the font.
func (r *rtfReader) add(c byte) {
	if r.ignore > 0 {
		r.ignore--
		return
	}
	r.flushUnits()
	if r.isShown() {
		r.bytes = append(r.bytes, c)
	}
}

// isShown reports whether the next character is read, and counts hidden text.
func (r *rtfReader) isShown() bool {
	if r.state.hidden && !r.state.skip && r.uncounted {
		r.uncounted = false
		r.countUnread(unseen)
	}
	return !r.state.skip && !r.state.hidden && !r.state.unpacked
}

// flush decodes the pending bytes and Unicode characters. At most one of the two kinds is pending.
func (r *rtfReader) flush() {
	r.flushUnits()
	r.flushBytes()
}

func (r *rtfReader) flushUnits() {
	r.text.WriteString(string(utf16.Decode(r.units)))
	r.units = r.units[:0]
}

func (r *rtfReader) flushBytes() {
	if len(r.bytes) == 0 {
		return
	}
	if text, err := cmp.Or(r.fonts[r.state.font], r.page).NewDecoder().Bytes(r.bytes); err == nil {
		r.text.Write(text)
	}
	r.bytes = r.bytes[:0]
}

// rtfWord matches a control word, its number, and the space that ends it.
var rtfWord = regexp.MustCompile(`^([A-Za-z]{1,32})(-?[0-9]{1,10})? ?`)

// control reads a control word or sign.
func (r *rtfReader) control() {
	rest := r.src[r.at:min(r.at+44, len(r.src))]
	if m := rtfWord.FindStringSubmatch(rest); m != nil {
		r.at += len(m[0])
		n, err := strconv.Atoi(m[2])
		r.word(m[1], n, err == nil)
	} else if rest != "" {
		r.at++
		r.sign(rest[0], rest[1:])
	}
}

// sign executes a control sign. rest is the text after it.
func (r *rtfReader) sign(c byte, rest string) {
	switch c {
	case '\'':
		if n, err := strconv.ParseUint(rest[:min(2, len(rest))], 16, 8); err == nil && len(rest) >= 2 {
			r.at += 2
			r.add(byte(n))
		}
	case '*': // a group unknown to older programs
		word, _ := strings.CutPrefix(rest, "\\")
		if m := rtfWord.FindStringSubmatch(word); m != nil && strings.HasSuffix(r.src[:r.at], `{\*`) {
			isTag := r.html && m[1] == "htmltag"
			r.state.skip = r.state.skip || !isTag && !slices.Contains(rtfRead, m[1])
			if isTag {
				r.findAddress()
			}
		}
	case '\\', '{', '}':
		r.add(c)
	case '\r', '\n':
		r.end("par")
	default:
		r.write(rtfSigns[string(c)])
	}
}

// rtfHeading matches the end of a style named like a heading.
var rtfHeading = regexp.MustCompile(`(?i)[ \r\n}]heading ([1-9]);$`)

// endStyle records a style named like a heading.
func (r *rtfReader) endStyle() {
	const longest = 20
	if !r.state.styles {
		return
	}
	m := rtfHeading.FindStringSubmatch(r.src[max(0, r.at-1-longest) : r.at-1])
	if _, known := r.heads[r.style]; m != nil && !known {
		r.heads[r.style] = int(m[1][0] - '0')
	}
}

// findAddress finds an attribute value that packed HTML has outside its tags, as text for readers
// of the RTF.
func (r *rtfReader) findAddress() {
	const most = 2000
	text := r.text.String()
	text = text[max(0, len(text)-most):]
	if at := strings.LastIndexAny(text, `"<>`) + 1; at < len(text) && strings.HasSuffix(text[:at], `="`) {
		r.address = text[at:]
	}
}

func (r *rtfReader) write(text string) {
	if text != "" && r.isShown() {
		r.flush()
		r.text.WriteString(text)
	}
}

// word executes a control word.
func (r *rtfReader) word(word string, n int, given bool) {
	if text, ok := rtfSigns[word]; ok {
		r.write(text)
		return
	}
	if rtfSkipped[word] {
		r.flush()
		switch {
		case r.state.skip:
		case word == "deleted":
			r.countUnread(deletions)
		case word == "object":
			r.countUnread(objects)
		case word == "stylesheet":
			r.state.styles = true
		case word == "pict":
			r.state.pict, r.drawn = true, rtfPicture{}
		}
		r.state.skip = true
		return
	}
	switch word {
	case "picwgoal":
		r.drawn.width = min(max(n, 0), 1<<20)
	case "pichgoal":
		r.drawn.height = min(max(n, 0), 1<<20)
	case "pngblip", "jpegblip":
		r.drawn.pixels = true
	case "fromhtml":
		r.html = true
	case "htmlrtf":
		r.flush()
		r.state.unpacked = r.html && (!given || n != 0)
	case "u":
		if r.isShown() {
			r.flushBytes()
			r.units = append(r.units, uint16(n))
		}
		r.ignore = r.state.wide
	case "uc":
		r.state.wide = n
	case "bin":
		r.at = min(len(r.src), r.at+max(n, 0))
	case "ansicpg", "mac", "f", "fcharset":
		r.encoding(word, n)
	case "par", "sect", "page", "cell", "nestcell", "row", "nestrow":
		if !r.state.skip {
			r.end(word)
		}
	default:
		r.property(word, n, given)
	}
}

// encoding reads a control word that sets the encoding of bytes.
func (r *rtfReader) encoding(word string, n int) {
	switch word {
	case "ansicpg":
		number := strconv.Itoa(n)
		r.page = cmp.Or(charset.Lookup("windows-"+number), charset.Lookup("cp"+number), r.page)
	case "mac":
		r.page = charmap.Macintosh
	case "f":
		r.flush()
		r.state.font = n
	case "fcharset":
		if name, ok := rtfCharsets[n]; ok {
			r.fonts[r.state.font] = charset.Lookup(name)
		}
	}
}

// property reads a control word that describes the following text.
func (r *rtfReader) property(word string, n int, given bool) {
	switch word {
	case "s":
		r.style = n
		if level, ok := r.heads[n]; ok && !r.state.skip {
			r.level = level
		}
	case "outlinelevel":
		if r.state.skip {
			r.heads[r.style] = n + 1
		} else {
			r.level = n + 1
		}
	case "v", "plain":
		r.flush()
		r.state.hidden = word == "v" && (!given || n != 0)
		r.uncounted = r.state.hidden
	case "ls", "pnlvlblt", "pnlvlbody":
		r.inList = true
	case "pard":
		if r.state.apart != markerText {
			r.level, r.inList, r.depth, r.inTable = 0, false, 0, false
		}
	case "fftype": // check box or list; other fields have their text in the document
		if n > 0 {
			r.countUnread(fields)
		}
	case "ilvl":
		r.depth = min(max(n, 0), listLevels-1)
	case "intbl":
		r.inTable = true
	default:
		r.beginPart(word)
	}
}

// beginPart reads a control word that begins text outside the paragraphs.
func (r *rtfReader) beginPart(word string) {
	switch word {
	case "fldinst":
		r.flush()
		r.state.skip = r.state.skip || r.html
		r.beginApart(fieldCode)
	case "listtext", "pntext":
		r.beginApart(markerText)
	case "sn":
		name, _, _ := strings.Cut(r.src[r.at:min(r.at+20, len(r.src))], "}")
		r.described = map[string]string{"wzDescription": "Picture", "gtextUNICODE": "Drawn text"}[name]
	case "sv":
		if r.described == "" {
			break
		}
		r.state.skip = false
		r.beginApart(r.described)
		r.text.WriteByte(' ')
		r.described = ""
	case "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf":
		r.beginApart(strings.ToUpper(word[:1]) + word[1:6])
	case "footnote", "annotation":
		r.flush()
		if !r.state.note {
			r.state.note = true
			r.write(map[bool]string{true: " (Comment: ", false: " ("}[word == "annotation"])
		}
	}
}

// beginApart begins a text that is kept apart until its group ends. In an edge, only field codes
// are kept apart.
func (r *rtfReader) beginApart(what string) {
	r.flush()
	outer := r.state.apart
	if !r.state.skip && what != outer && (what == fieldCode || outer == "" || outer == fieldCode || outer == markerText) {
		r.state.apart, r.state.from = what, r.text.Len()
	}
}

func (r *rtfReader) endApart() {
	all := r.text.String()
	from := min(r.state.from, len(all))
	text := all[from:]
	r.text.Reset()
	r.text.WriteString(all[:from])
	switch r.state.apart {
	case fieldCode:
		words, _ := equationWords(text)
		r.text.WriteString(words)
	case markerText:
		r.marker = strings.TrimSpace(text)
	default:
		b, ok := picture(text)
		r.drawn.described = r.drawn.described || ok && r.state.pict
		if r.state.apart != "Picture" {
			b = Block{Text: text}
		}
		r.edges = append(r.edges, r.headerOrFooter(r.state.apart, []Block{b})...)
	}
}

// end ends a paragraph, a cell or a row.
func (r *rtfReader) end(word string) {
	r.flush()
	if r.html {
		r.write("\n")
		return
	}
	if r.state.apart != "" {
		r.text.WriteByte(' ')
		return
	}
	switch word {
	case "cell", "nestcell":
		r.endCell()
	case "row", "nestrow":
		r.endRow()
	default:
		if len(r.marker) > maxName {
			r.marker = ""
		}
		if strings.IndexFunc(r.marker, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) < 0 &&
			(r.inList || r.marker != "") {
			r.marker = bullet
		}
		r.paragraph(r.level, r.marker, r.depth, r.inTable || r.state.note, "")
		r.marker = ""
	}
}

// rtfCharsets maps font character sets to encodings.
var rtfCharsets = map[int]string{77: "macintosh", 128: "shift_jis", 129: "euc-kr", 134: "gbk", 136: "big5", 161: "windows-1253",
	162: "windows-1254", 163: "windows-1258", 177: "windows-1255", 178: "windows-1256", 186: "windows-1257", 204: "windows-1251",
	222: "windows-874", 238: "windows-1250"}

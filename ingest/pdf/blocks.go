package pdf

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// bodySize returns the font size of most letters in a document. It prefers a larger size that has
// at least half as many letters in at least as many lines, since the labels of forms may be small.
func bodySize(pages [][]line) float64 {
	sizes, lines := map[float64]int{}, map[float64]int{}
	for _, p := range pages {
		for _, l := range p {
			sizes[roundSize(l.size)] += l.glyphs
			lines[roundSize(l.size)]++
		}
	}
	body, most := 0.0, 0
	for size, n := range sizes {
		if n > most || n == most && size < body {
			body, most = size, n
		}
	}
	larger := body
	for size, n := range sizes {
		if size > max(larger, 1.12*body) && 2*n >= most && lines[size] >= max(lines[body], 4) {
			larger = size
		}
	}
	return larger
}

var digits = regexp.MustCompile(`\d+`)

// runningKeys returns the keys by which a line is compared with lines of other pages: its text, and
// its text with one number replaced by that number's distance from the page number. A heading keeps
// its numbers, since chapters may be a page each.
func runningKeys(page int, l line, body float64) []string {
	keys := []string{l.text}
	switch {
	case !hasWord(l.text) && (!l.row || strings.Trim(l.text, "0123456789") == ""):
		return []string{digits.ReplaceAllString(l.text, "#")}
	case len(l.text) > 120 || !l.row && (l.bold || l.size >= body*1.12):
		return keys
	}
	for _, at := range digits.FindAllStringIndex(l.text, -1) {
		n, _ := strconv.Atoi(l.text[at[0]:at[1]]) // an overlong one is no page number
		keys = append(keys, l.text[:at[0]]+"#"+strconv.Itoa(n-page)+l.text[at[1]:])
	}
	return keys
}

// dropRunning removes lines repeated at the top or bottom of most pages, and page numbers. The
// first occurrence of each line stays.
func dropRunning(pages [][]line) {
	const edge, deepest = 2, 6 // lines; beyond edge, only if all lines outside are running ones
	body := bodySize(pages)
	count := countEdges(pages, deepest, body)
	key := func(n int, l line) string {
		return slices.MaxFunc(runningKeys(n, l, body), func(a, b string) int {
			return cmp.Compare(count[a][0]+count[a][1], count[b][0]+count[b][1])
		})
	}
	seen := map[string]bool{}
	for n, p := range pages {
		often := func(i int) bool {
			k := key(n, p[i])
			sides := count[k]
			all := sides[0] + sides[1]
			if all < 3 || len(k) > 120 {
				return false
			}
			// A chapter's running head is on fewer pages than the document's. Column names of a
			// table have no page number and are on left and right pages alike.
			return all*2 >= len(pages) || all >= 6 && (!p[i].row || strings.Contains(k, "#") || sides[0] == 0 || sides[1] == 0)
		}
		running := make([]bool, len(p))
		for _, place := range []func(i int) int{func(i int) int { return i }, func(i int) int { return len(p) - 1 - i }} {
			for i, all := 0, true; i < min(deepest, len(p)); i++ {
				if !often(place(i)) {
					all = false
				} else if i < edge || all {
					running[place(i)] = true
				}
			}
		}
		var kept []line
		words := false // whether other lines of the page have words
		for i, l := range p {
			k := key(n, l)
			bare := strings.Trim(k, "#0123456789 -–—./|") == "" || strings.EqualFold(strings.Trim(k, "#-0123456789 "), "page")
			if !running[i] || !seen[k] && !bare {
				kept = append(kept, l)
			}
			words = words || !running[i] && hasWord(l.text)
			seen[k] = seen[k] || running[i]
		}
		if words { // else the page would be empty
			pages[n] = kept
		}
	}
}

// countEdges returns on how many left and right pages each line is among the first or last ones.
func countEdges(pages [][]line, lines int, body float64) map[string][2]int {
	count := map[string][2]int{}
	for n, p := range pages {
		on := map[string]bool{}
		for i, l := range p {
			if i >= lines && i < len(p)-lines {
				continue
			}
			for _, k := range runningKeys(n, l, body) {
				if !on[k] {
					on[k] = true
					sides := count[k]
					sides[n%2]++
					count[k] = sides
				}
			}
		}
	}
	return count
}

// maxHeading is the longest heading in bytes.
const maxHeading = 160

// headingSizes returns the heading level of each font size.
func headingSizes(pages [][]line, body float64) map[float64]int {
	sizes := map[float64]bool{}
	for _, p := range pages {
		for _, l := range p {
			if l.size >= body*1.12 && len(l.text) <= maxHeading && hasWord(l.text) {
				sizes[roundSize(l.size)] = true
			}
		}
	}
	levels := map[float64]int{}
	for i, s := range slices.SortedFunc(maps.Keys(sizes), func(a, b float64) int { return cmp.Compare(b, a) }) {
		levels[s] = min(i+1, 5)
	}
	return levels
}

func roundSize(size float64) float64 { return math.Round(size*2) / 2 }

func hasWord(s string) bool {
	letters := 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters >= 3 || letters == 2 && isIdeograph([]rune(s)[0])
}

// paragraphs joins lines into blocks.
type paragraphs struct {
	body   float64
	levels map[float64]int
	words  map[string]bool // hyphenated words of the document
}

// blocks groups the lines of a page into paragraphs, headings and rows.
func (p *paragraphs) blocks(page []line) []Block {
	var out []Block
	leading, term := p.leading(page), false
	for i, l := range page {
		heading, value := p.heading(page, i), term // a value is below its label
		if term = isTerm(page, i); i > 0 && !term && (value || p.continues(page[i-1], l, leading)) && len(out) > 0 {
			b := &out[len(out)-1]
			same := b.Heading == heading || b.Heading > 0 && heading > 0 && math.Abs(page[i-1].size-l.size) < 0.3
			if same && !(b.Heading > 0 && len(b.Text)+len(l.text) > maxHeading) {
				b.Text = p.joinLines(b.Text, l.text)
				continue
			}
		}
		kind := Paragraph
		switch {
		case l.row:
			kind = Row
		case hasListMarker(l.text):
			kind = Item
			if r, n := utf8.DecodeRuneInString(l.text); unicode.Is(unicode.Co, r) { // of a symbol font
				l.text = "•" + l.text[n:]
			}
		}
		out = append(out, Block{Text: l.text, Heading: heading, Kind: kind})
	}
	return out
}

// heading returns the level of a heading, or 0 for another line.
func (p *paragraphs) heading(page []line, i int) int {
	l := page[i]
	if l.row || l.turned || len(l.text) > maxHeading || !hasWord(l.text) {
		return 0
	}
	if level := p.levels[roundSize(l.size)]; level > 0 && l.size >= p.body*1.12 {
		return level
	}
	if !l.bold || l.size < p.body*0.95 || len(l.text) > 100 || strings.HasSuffix(l.text, ".") && !strings.HasSuffix(l.text, "..") ||
		strings.HasSuffix(l.text, ",") {
		return 0
	}
	// Bold lines of body size are headings if the text below them is not bold.
	if i+1 < len(page) && page[i+1].bold && math.Abs(page[i+1].size-l.size) < 0.3 && math.Abs(page[i+1].y-l.y) < 1.6*l.size {
		return 0
	}
	if i > 0 && page[i-1].bold && math.Abs(page[i-1].y-l.y) < 1.6*l.size && math.Abs(page[i-1].size-l.size) < 0.3 {
		return 0
	}
	if isTerm(page, i) {
		return 0
	}
	return min(len(p.levels)+1, 6)
}

// isTerm reports whether a bold line is one of several labels above their values.
func isTerm(page []line, i int) bool {
	n := valueOf(page, i)
	alike := func(j int) bool {
		return math.Abs(page[j].size-page[i].size) < 0.3 && math.Abs(page[j].x0-page[i].x0) < 1 && valueOf(page, j) > 0
	}
	if n == 0 || i+1+n < len(page) && alike(i+1+n) {
		return n > 0
	}
	for before := i - 1; before >= max(i-1-fewLines, 0); before-- {
		if page[before].bold {
			return alike(before) && before+1+valueOf(page, before) == i
		}
	}
	return false
}

// fewLines is the largest number of lines of an indented value below its label.
const fewLines = 3

// valueOf returns the number of lines of the value below a bold label, or 0. A value is one short
// line or a few indented ones.
func valueOf(page []line, i int) (n int) {
	const short = 60
	label := page[i]
	if !label.bold || label.row || label.turned || len(label.text) > maxLabel {
		return 0
	}
	indented := true
	for j := i + 1; j < len(page) && n <= fewLines && !page[j].bold && !page[j].row; j++ {
		l, gap := page[j], page[j-1].y-page[j].y
		if gap < 0 || gap > 2*l.size {
			break
		}
		n, indented = n+1, indented && l.x0 > label.x0+l.size
	}
	if indented && n <= fewLines || n == 1 && len(page[i+1].text) <= short && !strings.HasSuffix(page[i+1].text, ".") {
		return n
	}
	return 0
}

// leading returns the line spacing of paragraphs as a multiple of the font size.
func (p *paragraphs) leading(page []line) float64 {
	var gaps []float64
	for i := 1; i < len(page); i++ {
		if gap := page[i-1].y - page[i].y; gap > 0.5*page[i].size && gap < 3*page[i].size {
			gaps = append(gaps, gap/page[i].size)
		}
	}
	if len(gaps) == 0 {
		return 1.2
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/4] // paragraphs and headings have larger gaps
}

// continues reports whether next continues the paragraph of l.
func (p *paragraphs) continues(l, next line, leading float64) bool {
	if l.row || next.row || hasListMarker(next.text) {
		return false
	}
	if math.Abs(l.size-next.size) > 0.15*l.size {
		return false
	}
	gap := l.y - next.y
	if gap < 0 {
		// next is at the top of the next column.
		return endsInSentence(l.text) && startsLower(next.text)
	}
	if gap > (leading+0.35)*max(next.size, l.size) {
		return false
	}
	overlap := min(l.x1, next.x1) - max(l.x0, next.x0)
	if overlap <= 0 {
		return false
	}
	// An indented line after a full stop begins a paragraph.
	if next.x0 > l.x0+0.8*next.size && !endsInSentence(l.text) && !hasListMarker(l.text) {
		return false
	}
	// A line also begins a paragraph if the line before it ended early.
	reach := max(l.x1, next.x1) - min(l.x0, next.x0)
	return l.x1-l.x0 > 0.72*reach || endsInSentence(l.text) && startsLower(next.text)
}

// endsInSentence reports whether a text ends inside a sentence.
func endsInSentence(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return !strings.ContainsRune(".!?:;。！？：；”\"’)", r)
}

func startsLower(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r) || isIdeograph(r)
}

// hasListMarker reports whether a line begins a list item.
func hasListMarker(s string) bool {
	if strings.HasPrefix(s, "[x] ") || strings.HasPrefix(s, "[ ] ") {
		return true
	}
	head, _, ok := strings.Cut(s, " ")
	if !ok {
		return false
	}
	r, n := utf8.DecodeRuneInString(head)
	if strings.ContainsRune("•‣◦▪●○■□·", r) || unicode.Is(unicode.Co, r) || n == len(head) && strings.ContainsRune("-–*", r) {
		return true
	}
	digits := strings.TrimRight(strings.TrimLeft(head, "("), ".)")
	return len(digits) > 0 && len(digits) <= 2 && len(digits) < len(head) && strings.Trim(digits, "0123456789") == ""
}

// joinLines joins two lines of a paragraph and rejoins a hyphenated word.
func (p *paragraphs) joinLines(a, b string) string {
	// In right-to-left lines, TeX breaks Latin words and numbers after the hyphen.
	if i := strings.LastIndex(a, " -"); i > 0 && !strings.Contains(a[i+1:], " ") && isRightToLeft(glyph{Text: a[:2]}) {
		a = a[:i+1] + a[i+2:] + "-"
	}
	switch {
	case strings.HasSuffix(a, "\u00ad"):
		return strings.TrimSuffix(a, "\u00ad") + b
	case areIdeographs(a, b):
		return a + b
	case strings.HasSuffix(a, "-") && !strings.HasSuffix(a, " -") && startsLower(b):
		first := a[strings.LastIndexByte(a, ' ')+1:]
		last, _, _ := strings.Cut(b, " ")
		r, _ := utf8.DecodeLastRuneInString(strings.TrimSuffix(first, "-"))
		// Keep the hyphen if the document has the hyphenated word elsewhere.
		if unicode.IsLetter(r) && !p.words[plainWord(first+last)] {
			return strings.TrimSuffix(a, "-") + b
		}
		return a + b
	}
	if i := len(a) - 2; i >= 0 && strings.HasSuffix(a, "-") && a[i] != ' ' && a[i] != '-' {
		return a + b // "GPT-" and "4o"
	}
	return a + " " + b
}

func plainWord(s string) string {
	return strings.ToLower(strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
}

// hyphenatedWords returns the words that have a hyphen inside a line.
func hyphenatedWords(pages [][]line) map[string]bool {
	words := map[string]bool{}
	for _, p := range pages {
		for _, l := range p {
			for w := range strings.FieldsSeq(l.text) {
				if i := strings.IndexByte(w, '-'); i > 0 && i < len(w)-1 {
					words[plainWord(w)] = true
				}
			}
		}
	}
	return words
}

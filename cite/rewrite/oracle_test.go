package rewrite_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ibid/cite/rewrite"
)

// An oracle rewrites a whole text by the rules as they are written, with regular
// expressions that look back and ahead freely. It shares no code with the
// rewriter; the fuzz test compares the two.
type oracle struct {
	strict bool
	docs   []rewrite.Document
	text   []rune
	code   []bool

	style   rewrite.Style
	numbers []rewrite.Source
	shown   []place // where parts of the text are in the output
}

const (
	oSP    = ` {0,3}`
	oNum   = `\p{Nd}+`
	oKey   = `[iI][dD][sS]?` + oSP + `[=:]` + oSP
	oItem  = oNum + `(?:` + oSP + `[-–]` + oSP + oNum + `)?`
	oQItem = `["']?` + oItem + `["']?`
	oSep   = oSP + `[,;，；、]` + oSP + `(?:` + oKey + `)?`
	oList  = `(?:` + oQItem + `(?:` + oSep + oQItem + `)*|""|'')`
	oLabel = `(?:\^?` + oNum + `(?:` + oSP + `[,;\-–]` + oSP + oNum + `)*|[nN][uU][mM][bB][eE][rR])`
	oBody  = oSP + `(?:` + oKey + `)?` + oItem + `(?:` + oSep + oItem + `)*` + oSP
)

var (
	oSeed   = regexp.MustCompile(`^\[` + oSP + oLabel + oSP + `\] ?\(` + oSP + oKey + `((?:` + oList + oSP + `)?)\)`)
	oStrict = regexp.MustCompile(`^\[(?:` + oNum + `|NUMBER)\]\(id=((?:` + oNum + `)?)\)`)
	oBare   = regexp.MustCompile(`^(?:\[(` + oBody + `)\]|【(` + oBody + `)】)`)
	oBroken = regexp.MustCompile(`^[ \n]?\(` + oSP + `[iI][dD][sS]?` + oSP + `[=:]`)
	oItems  = regexp.MustCompile(oItem)
	oNums   = regexp.MustCompile(oNum)
	oOpen   = regexp.MustCompile("^(?:[ \\t>]|(?:[-*+]|[0-9]{1,9}[.)])[ \\t])*(`{3,}|~{3,})(.*)$")
	oDef    = regexp.MustCompile(`(?:^|\n) {0,3}$`)
)

const oClosing = ".,;:!?)]}»”’…。、，；：！？）】」"

func oDigits(s string) int {
	n := 0
	for _, r := range s {
		d := 0
		for k := range 10 { // a digit's zero is at most nine before it
			if unicode.Is(unicode.Nd, r-rune(k)) {
				d = k
			} else {
				break
			}
		}
		// The mathematical digits are rows without gaps between them.
		if 0x1D7CE <= r && r <= 0x1D7FF {
			d = int(r-0x1D7CE) % 10
		}
		if n = n*10 + d; n > 1e9 {
			n = 1e9
		}
	}
	return n
}

// A place maps the character at of the text, and those after it up to the next
// place, to the character to of the output. In a run all map to to.
type place struct {
	at, to int
	run    bool
}

// markCode marks the code of the text.
func (o *oracle) markCode() {
	o.code = make([]bool, len(o.text))
	var fence rune
	length := 0
	for start := 0; start < len(o.text); {
		stop := start
		for stop < len(o.text) && o.text[stop] != '\n' {
			stop++
		}
		line := string(o.text[start:stop])
		end := min(stop+1, len(o.text))
		whole := func() {
			for i := start; i < end; i++ {
				o.code[i] = true
			}
		}
		m := oOpen.FindStringSubmatch(line)
		switch {
		case fence != 0:
			whole()
			closing := regexp.MustCompile(fmt.Sprintf("^[ \\t>]*%s{%d,}[ \\t]*\\r?$", string(fence), min(length, 1000)))
			if closing.MatchString(line) && strings.Count(line, string(fence)) >= length {
				fence = 0
			}
		case m != nil && (m[1][0] == '~' || !slices.Contains([]rune(m[2])[:min(400, len([]rune(m[2])))], '`')):
			whole()
			fence, length = rune(m[1][0]), len(m[1])
		default:
			o.markSpans(start, stop)
		}
		start = end
	}
}

func (o *oracle) markSpans(start, stop int) {
	run := func(i int) int {
		n := 0
		for i+n < stop && o.text[i+n] == '`' {
			n++
		}
		return n
	}
	for i := start; i < stop; {
		if o.text[i] != '`' {
			i++
			continue
		}
		slashes := 0
		for i-slashes > start && o.text[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 1 {
			i++
			// The rest is a run of its own.
			if i == stop || o.text[i] != '`' {
				continue
			}
		}
		n := run(i)
		next := i + n
		for j := next; j < stop && j-next <= 400; {
			k := run(j)
			if k == n {
				for p := i; p < j+n; p++ {
					o.code[p] = true
				}
				i = j + n
				next = i
				break
			}
			j += max(k, 1)
		}
		i = next
	}
}

// ids returns the known ids of a marker, and whether the list is valid.
func (o *oracle) ids(list string) (ids []int, good bool) {
	good = true
	for _, item := range oItems.FindAllString(list, -1) {
		nums := oNums.FindAllString(item, -1)
		a := oDigits(nums[0])
		b := a
		if len(nums) == 2 {
			if b = oDigits(nums[1]); a >= b || b-a+1 > 10 {
				good = false
				continue
			}
		}
		for id := a; id <= b; id++ {
			if id >= 1 && id <= len(o.docs) {
				ids = append(ids, id)
			} else {
				good = false
			}
		}
	}
	return ids, good
}

// at returns the character at i, or -1 outside the text.
func (o *oracle) at(i int) rune {
	if i < 0 || i >= len(o.text) {
		return -1
	}
	return o.text[i]
}

func oCased(r rune) bool { return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt) }

func oIn(r rune, set string) bool { return r >= 0 && strings.ContainsRune(set, r) }

// marker returns the marker at i. before is the end of the last marker before it,
// or -1.
func (o *oracle) marker(i, before int) (ids []int, after int, ok bool) {
	if (o.text[i] != '[' && o.text[i] != '【') || o.code[i] {
		return nil, 0, false
	}
	rest := string(o.text[i:min(len(o.text), i+200)])
	seed := oSeed
	if o.strict {
		seed = oStrict
	}
	if m := seed.FindStringSubmatch(rest); m != nil {
		ids, _ = o.ids(m[1])
		return ids, i + len([]rune(m[0])), true
	}
	m := oBare.FindStringSubmatch(rest)
	if o.strict || m == nil {
		return nil, 0, false
	}
	ids, good := o.ids(m[1] + m[2])
	after = i + len([]rune(m[0]))
	if !good || oBroken.MatchString(string(o.text[after:])) {
		return nil, 0, false
	}
	if o.text[i] == '【' {
		return ids, after, true
	}
	if o.at(after) == '(' || o.at(after) == ':' && oDef.MatchString(string(o.text[:i])) {
		return nil, 0, false
	}
	under := i - 1
	for under >= 0 && under >= before && unicode.In(o.text[under], unicode.Mn, unicode.Mc, unicode.Me) {
		under--
	}
	c := o.at(under)
	switch {
	case under < 0, before >= 0 && under < before, unicode.IsSpace(c),
		oIn(c, ".,;:!?\"'(*|%`…–—”’»›、。，；：！？）（」』】》〉〕・"),
		unicode.In(c, unicode.Lo, unicode.Lm, unicode.So), 0x1F3FB <= c && c <= 0x1F3FF:
		return ids, after, true
	case oCased(c), unicode.IsNumber(c), unicode.Is(unicode.Sc, c), c == ')':
		return ids, after, o.glue(i, after)
	}
	return nil, 0, false
}

func (o *oracle) glue(i, f int) bool {
	for f < len(o.text) {
		_, after, ok := o.marker(f, f)
		if !ok {
			break
		}
		f = after
	}
	if f-i > 200 {
		return false
	}
	c := o.at(f)
	if c >= 0 && !unicode.IsSpace(c) && !oIn(c, oClosing+"–—*_|") {
		return false
	}
	if oIn(c, ".,;:!?") {
		if n := o.at(f + 1); n >= 0 && (oCased(n) || unicode.IsNumber(n) || n == '_') {
			return false
		}
	}
	if oIn(c, "*_") {
		j := f + 1
		for j < f+3 && oIn(o.at(j), "*_") {
			j++
		}
		if n := o.at(j); n >= 0 && (oCased(n) || unicode.IsNumber(n)) {
			return false
		}
	}
	if c == ' ' {
		j := f
		for o.at(j) == ' ' {
			j++
		}
		if oIn(o.at(j), "=+/<>") || o.at(j) == '*' && o.at(j+1) == ' ' {
			return false
		}
	}
	word := i
	for w := o.at(word - 1); w == '_' || w >= 0 && (unicode.IsLetter(w) || unicode.IsMark(w) || unicode.IsNumber(w)); w = o.at(word - 1) {
		word--
	}
	if word == i || unicode.IsNumber(o.text[word]) || o.at(word-1) != ' ' {
		return true
	}
	p := word - 1
	for o.at(p) == ' ' {
		p--
	}
	first := true
	for q := p - 1; q >= 0 && o.text[q] != '\n'; q-- {
		first = first && unicode.IsSpace(o.text[q])
	}
	if first {
		return true
	}
	return !(o.at(p) == '=' || oIn(o.at(p), "+*/<>") && o.at(p-1) == ' ')
}

// number returns the number of a document.
func (o *oracle) number(id int) int {
	d := o.docs[id-1]
	for i := range o.numbers {
		s := &o.numbers[i]
		if d.Source != "" && s.Source == d.Source || slices.Contains(s.IDs, id) {
			if !slices.Contains(s.IDs, id) {
				s.IDs = append(s.IDs, id)
			}
			return s.Number
		}
	}
	o.numbers = append(o.numbers, rewrite.Source{Number: len(o.numbers) + 1, Source: d.Source, Title: d.Title, IDs: []int{id}})
	return len(o.numbers)
}

// rewrite returns the rewritten text.
func (o *oracle) rewrite() string {
	o.markCode()
	type found struct {
		ids         []int
		start, stop int
	}
	var markers []found
	last := -1
	for i := 0; i < len(o.text); {
		if ids, after, ok := o.marker(i, last); ok {
			markers = append(markers, found{ids, i, after})
			i, last = after, after
			continue
		}
		i++
	}
	var out []rune
	at := 0
	for k := 0; k < len(markers); {
		// A run, with the spaces before it.
		n := k + 1
		for n < len(markers) && strings.Trim(string(o.text[markers[n-1].stop:markers[n].start]), " ") == "" &&
			!slices.Contains(o.code[markers[n-1].stop:markers[n].start], true) {
			n++
		}
		lead := markers[k].start
		for lead > at && o.text[lead-1] == ' ' && !o.code[lead-1] {
			lead--
		}
		o.shown = append(o.shown, place{at: at, to: len(out)})
		out = append(out, o.text[at:lead]...)
		o.shown = append(o.shown, place{at: lead, to: len(out), run: true})
		spaces := o.text[lead:markers[k].start]
		var shown []int
		printed := false
		for j := k; j < n; j++ {
			mark := ""
			for _, id := range markers[j].ids {
				if o.style.Exclude(o.docs[id-1]) {
					continue
				}
				if num := o.number(id); !slices.Contains(shown, num) {
					shown = append(shown, num)
					first := o.docs[o.numbers[num-1].IDs[0]-1]
					mark += string(o.style.Inline(nil, rewrite.Reference{Number: num, Document: first}))
				}
			}
			if mark == "" {
				continue
			}
			if !printed {
				out = append(out, spaces...)
			} else {
				out = append(out, o.text[markers[j-1].stop:markers[j].start]...)
			}
			printed = true
			out = append(out, []rune(mark)...)
		}
		at = markers[n-1].stop
		if c := o.at(at); !printed && c >= 0 && !unicode.IsSpace(c) && !oIn(c, oClosing) {
			out = append(out, spaces...)
		}
		k = n
	}
	o.shown = append(o.shown, place{at: at, to: len(out)})
	return string(append(out, o.text[at:]...))
}

// least returns the number of characters that must be out when the first n
// characters of the text are decided.
func (o *oracle) least(n int) int {
	i, _ := slices.BinarySearchFunc(o.shown, n, func(p place, n int) int {
		if p.at <= n {
			return -1
		}
		return 1
	})
	p := o.shown[i-1]
	if p.run {
		return p.to
	}
	return p.to + n - p.at
}

package office

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A listRef is the list and level of a paragraph.
type listRef struct {
	given bool
	id    string
	level int // -1 when not given
}

// readListRef reads the element numPr.
func readListRef(x *xmlReader, ref *listRef) error {
	return x.each(func(e element) error {
		switch e.Name.Local {
		case "ilvl":
			ref.level = number(e, "val", 0)
		case "numId":
			ref.id = attr(e, "val")
		}
		return nil
	})
}

// listLevels is the number of levels of a list.
const listLevels = 9

type listLevel struct {
	start  int
	format string
	text   string // "%1.%2": the numbers of levels 1 and 2
	legal  bool   // all its numbers are decimal
}

type listKind [listLevels]listLevel

type list struct {
	kind   string
	starts map[int]int // of levels that do not start as in the kind
	begun  bool
}

// A numbering holds the lists of a document and counts their items.
type numbering struct {
	kinds    map[string]*listKind
	lists    map[string]*list
	counters map[string]*[listLevels]int
}

// wordNumbering reads the list definitions. Of a damaged part, the first lists
// count.
func (f *file) wordNumbering(part string) numbering {
	n := numbering{kinds: map[string]*listKind{}, lists: map[string]*list{}, counters: map[string]*[listLevels]int{}}
	_ = f.elements(part, func(x *xmlReader, e element) error {
		if len(n.kinds)+len(n.lists) > maxEntries {
			return nil
		}
		switch e.Name.Local {
		case "abstractNum":
			return n.readKind(x, attr(e, "abstractNumId"))
		case "num":
			return n.readList(x, attr(e, "numId"))
		}
		return nil
	})
	return n
}

func (n *numbering) readKind(x *xmlReader, id string) error {
	k := &listKind{}
	n.kinds[id] = k
	return x.each(func(e element) error {
		at := number(e, "ilvl", -1)
		if e.Name.Local != "lvl" || at < 0 || at >= listLevels {
			return nil
		}
		level, err := readListLevel(x)
		k[at] = level
		return err
	})
}

func (n *numbering) readList(x *xmlReader, id string) error {
	l := &list{starts: map[int]int{}}
	n.lists[id] = l
	return x.each(func(e element) error {
		at := number(e, "ilvl", -1)
		switch {
		case e.Name.Local == "abstractNumId":
			l.kind = attr(e, "val")
		case e.Name.Local == "lvlOverride" && at >= 0 && at < listLevels:
			return x.each(func(e element) error {
				if start := number(e, "val", -1); e.Name.Local == "startOverride" && start >= 0 {
					l.starts[at] = start
				}
				return nil
			})
		}
		return nil
	})
}

func readListLevel(x *xmlReader) (listLevel, error) {
	l := listLevel{format: "decimal"}
	err := x.each(func(e element) error {
		switch e.Name.Local {
		case "start":
			l.start = number(e, "val", 0)
		case "numFmt":
			l.format = attr(e, "val")
		case "lvlText":
			if l.text = attr(e, "val"); len(l.text) > 64 {
				l.text = ""
			}
		case "isLgl":
			l.legal = on(e)
		}
		return nil
	})
	return l, err
}

// next counts the next item of a list and returns its marker.
func (n *numbering) next(ref listRef) (marker string, depth int, ok bool) {
	l := n.lists[ref.id]
	if !ref.given || l == nil || n.kinds[l.kind] == nil {
		return "", 0, false
	}
	at := min(max(ref.level, 0), listLevels-1)
	levels := n.kinds[l.kind]
	marker, ok = itemMarker(levels, n.count(l, levels, at), at)
	return marker, at, ok
}

// count adds an item on a level of a list and returns the counters of its
// kind.
func (n *numbering) count(l *list, levels *listKind, at int) *[listLevels]int {
	counts := n.counters[l.kind]
	if counts == nil {
		counts = new([listLevels]int)
		for i := range counts {
			counts[i] = notBegun
		}
		n.counters[l.kind] = counts
	}
	if !l.begun {
		l.begun = true
		for i, start := range l.starts {
			counts[i] = start - 1
		}
	}
	for i := range at { // a list may begin below its first level
		if counts[i] == notBegun {
			counts[i] = levels[i].start
		}
	}
	if counts[at] == notBegun {
		counts[at] = levels[at].start
	} else {
		counts[at]++
	}
	for i := at + 1; i < listLevels; i++ {
		counts[i] = notBegun
	}
	return counts
}

// itemMarker writes the number of an item; ok is false when it has none.
func itemMarker(levels *listKind, counts *[listLevels]int, at int) (marker string, ok bool) {
	level := levels[at]
	switch level.format {
	case "bullet":
		return bullet, true
	case "none":
		return "", false
	}
	marker = level.text
	for i := range at + 1 {
		format := levels[i].format
		if level.legal {
			format = "decimal"
		}
		if place := "%" + strconv.Itoa(i+1); strings.Contains(marker, place) {
			marker = strings.ReplaceAll(marker, place, itemNumber(format, counts[i]))
		}
	}
	marker = strings.TrimSpace(marker)
	return marker, marker != ""
}

const notBegun = -1 << 30

// itemNumber formats a number for a list item.
func itemNumber(format string, n int) string {
	switch format {
	case "lowerLetter":
		return letters(n)
	case "upperLetter":
		return strings.ToUpper(letters(n))
	case "lowerRoman":
		return strings.ToLower(roman(n))
	case "upperRoman":
		return roman(n)
	case "decimalZero":
		if n >= 0 && n < 10 {
			return "0" + strconv.Itoa(n)
		}
	case "bullet", "none":
		return ""
	}
	return strconv.Itoa(n)
}

// letters counts a … z, aa … zz, as word processors do.
func letters(n int) string {
	if n < 1 || n > 26*20 {
		return strconv.Itoa(n)
	}
	return strings.Repeat(string(rune('a'+(n-1)%26)), (n-1)/26+1)
}

func roman(n int) string {
	if n < 1 || n > 3999 {
		return strconv.Itoa(n)
	}
	var out strings.Builder
	for _, r := range [...]struct {
		value int
		sign  string
	}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5,
		"V"}, {4, "IV"}, {1, "I"}} {
		for n >= r.value {
			out.WriteString(r.sign)
			n -= r.value
		}
	}
	return out.String()
}

// isWordLike reports whether a text is a single word or number, which needs no
// brackets in a formula.
func isWordLike(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != ',' && !unicode.Is(unicode.M, r) {
			return false
		}
	}
	return utf8.RuneCountInString(s) > 0
}

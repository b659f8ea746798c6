package office

import (
	"fmt"
	"strconv"
	"strings"
)

// A listRef is the list and level of a paragraph.
type listRef struct {
	given bool
	id    string
	level int // -1 if not given
}

const (
	listLevels   = 9        // per list
	bulletFormat = "bullet" // of a level without numbers
)

type listLevel struct {
	start  int
	format string
	text   string // "%1.%2": the numbers of levels 1 and 2
	legal  bool   // all numbers are decimal
}

type listKind [listLevels]listLevel

// A list has the levels of its kind, unless it overrides them.
type list struct {
	kind   string
	levels map[int]*listLevel
	starts map[int]int // by level; a list with such a start counts separately
}

// A numbering holds the lists of a document and counts their items.
type numbering struct {
	kinds    map[string]*listKind
	lists    map[string]*list
	counters map[string]*[listLevels]int // by kind, or by "own " and list
}

func newList(kind string) *list { return &list{kind, map[int]*listLevel{}, map[int]int{}} }

// wordNumbering reads the list definitions, up to any damage.
func (f *file) wordNumbering(part string) numbering {
	n := numbering{kinds: map[string]*listKind{}, lists: map[string]*list{}, counters: map[string]*[listLevels]int{}}
	var kind *listKind
	level, l, over := &listLevel{}, newList(""), 0
	_ = f.find(part, func(_ *xmlReader, e element) {
		at := number(e, "ilvl", -1)
		switch e.Name.Local {
		case "abstractNum":
			kind = &listKind{}
			if len(n.kinds) < maxEntries {
				n.kinds[attr(e, "abstractNumId")] = kind
			}
		case "num":
			kind, l = nil, newList("")
			if len(n.lists) < maxEntries {
				n.lists[attr(e, "numId")] = l
			}
		case "abstractNumId":
			l.kind = attr(e, "val")
		case "lvlOverride":
			over = at
		case "startOverride":
			if start := number(e, "val", -1); over >= 0 && over < listLevels && start >= 0 {
				l.starts[over] = start
			}
		case "lvl":
			if level = (&listLevel{}); kind != nil && at >= 0 && at < listLevels {
				level = &kind[at]
			} else if at >= 0 && at < listLevels {
				l.levels[at] = level
			}
			level.format = "decimal"
		case "start":
			level.start = number(e, "val", 0)
		case "numFmt":
			level.format = attr(e, "val")
		case "lvlText":
			if text := attr(e, "val"); len(text) <= 64 {
				level.text = text
			}
		case "isLgl":
			level.legal = isSwitchOn(e)
		}
	})
	return n
}

// next counts the next item of a list and returns its marker.
func (n *numbering) next(ref listRef) (marker string, depth int, ok bool) {
	l := n.lists[ref.id]
	if !ref.given || l == nil || n.kinds[l.kind] == nil {
		return "", 0, false
	}
	at := min(max(ref.level, 0), listLevels-1)
	levels, key := *n.kinds[l.kind], l.kind
	for i, level := range l.levels {
		levels[i] = *level
	}
	for i, start := range l.starts {
		levels[i].start, key = start, "own "+ref.id
	}
	marker, ok = itemMarker(&levels, n.count(key, &levels, at), at)
	return marker, at, ok
}

// count adds an item on a level to the counters of a key and returns them.
func (n *numbering) count(key string, levels *listKind, at int) *[listLevels]int {
	counts := n.counters[key]
	if counts == nil {
		counts = new([listLevels]int)
		for i := range counts {
			counts[i] = notBegun
		}
		n.counters[key] = counts
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

// itemMarker formats the number of an item; ok is false if it has no number.
func itemMarker(levels *listKind, counts *[listLevels]int, at int) (marker string, ok bool) {
	level := levels[at]
	if level.format == bulletFormat {
		return bullet, true
	}
	marker = level.text
	for i := range at + 1 {
		format := levels[i].format
		if level.legal {
			format = "decimal"
		}
		marker = strings.ReplaceAll(marker, "%"+strconv.Itoa(i+1), itemNumber(format, counts[i]))
	}
	marker = strings.TrimSpace(marker)
	return marker, marker != ""
}

const notBegun = -1 << 30

// itemNumber formats a number. Formats other than letters and Roman numerals are written as decimal
// numbers.
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
		return fmt.Sprintf("%02d", n)
	case bulletFormat, "none":
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

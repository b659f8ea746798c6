package cite

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// units are the words and signs behind a number that say what it counts or
// measures, with the one that stands for all that mean the same.
var units = func() map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(`
		second seconds sec secs sekunde sekunden
		minute minutes min mins minuten
		hour hours hr hrs h stunde stunden
		day days tag tage tagen
		week weeks woche wochen
		month months monat monate monaten
		year years jahr jahre jahren
		mm millimetre millimetres millimeter millimeters
		cm centimetre centimetres centimeter centimeters zentimeter
		m metre metres meter meters metern
		km kilometre kilometres kilometer kilometers kilometern
		inch inches
		foot feet ft
		yard yards yd
		mile miles
		mph
		km/h kmh kph
		knot knots kn knoten
		m/s
		g gram grams gramm
		kg kilo kilos kilogram kilograms kilogramm
		lb lbs pound pounds
		ton tons tonne tonnes tonnen
		ml millilitre millilitres milliliter milliliters
		l litre litres liter liters litern
		gallon gallons
		w watt watts
		kw kilowatt kilowatts
		mw megawatt megawatts
		hp horsepower bhp
		ps
		kwh
		kb kilobyte kilobytes
		mb megabyte megabytes
		gb gigabyte gigabytes
		tb terabyte terabytes
		°c celsius
		°f fahrenheit
		acre acres
		hectare hectares ha hektar`) {
		words := strings.Fields(line)
		for _, w := range words {
			m[w] = words[0]
		}
	}
	return m
}()

// unitOf gives the unit that a text behind a number begins with, "" when it
// begins with none.
func unitOf(rest string) string {
	const longest = 24
	rest = rest[:min(len(rest), longest)]
	if r, size := utf8.DecodeRuneInString(rest); r == '-' || r == '\u2009' || isGroupSpace(rest[:size]) {
		rest = rest[size:]
	}
	if half, n := meridiem(rest); n > 0 {
		return half
	}
	i := 0
	for i < len(rest) {
		r, size := utf8.DecodeRuneInString(rest[i:])
		if !isLetter(r) && r != '/' && r != '°' || isWideWord(r) {
			break
		}
		i += size
	}
	low := strings.ToLower(rest[:i])
	if u := units[low]; u != "" {
		return u
	}
	before, _, _ := strings.Cut(low, "/")
	return units[before]
}

// meridiem reads "a.m." or "p.m." behind an hour, in any spelling, and gives
// which it is and its length with the space before it.
func meridiem(rest string) (half string, length int) {
	const longest = len("\u202fa.m.") + utf8.UTFMax
	s := rest[:min(len(rest), longest)]
	_, size := utf8.DecodeRuneInString(s)
	if !isGroupSpace(s[:size]) {
		size = 0
	}
	s = s[size:]
	for _, spelling := range [...]string{"a.m.", "p.m.", "a.m", "p.m", "am", "pm"} {
		n := len(spelling)
		if len(s) < n || !strings.EqualFold(s[:n], spelling) {
			continue
		}
		if next, _ := utf8.DecodeRuneInString(s[n:]); len(s) > n && (isLetter(next) || isDigit(next)) {
			continue
		}
		return spelling[:1] + "m", size + n
	}
	return "", 0
}

// clock reads an hour with its minutes: 8:30, or 8.30 where what follows says
// that it is one. Minutes that are none are left out. It gives the end, 0 when
// there is no such.
func (l *lexer) clock(text string, start int) int {
	digits := func(i int) int {
		n := 0
		for i+n < len(text) && '0' <= text[i+n] && text[i+n] <= '9' && n < 3 {
			n++
		}
		return n
	}
	n := digits(start)
	point := start + n
	if n == 0 || n > 2 || point >= len(text) || digits(point+1) != 2 {
		return 0
	}
	end := point + 3
	half, length := meridiem(text[end:])
	switch {
	case text[point] == ':' && !(end < len(text) && text[end] == ':'):
	case text[point] == '.' && (length > 0 || strings.HasPrefix(text[end:], " Uhr") || strings.HasPrefix(text[end:], " o'clock")):
	default:
		return 0
	}
	hour, errHour := strconv.Atoi(text[start:point])
	minutes, errMinutes := strconv.Atoi(text[point+1 : end])
	if errHour != nil || errMinutes != nil || hour > 24 || minutes > 59 {
		return 0
	}
	l.opened = false
	if end = end + length; minutes == 0 {
		l.add(strconv.Itoa(hour), text[start:point], number, span{start, end})
	} else {
		l.add(strconv.Itoa(hour), text[start:point], number, span{start, point})
		l.add(strconv.Itoa(minutes), text[point+1:point+3], number, span{point + 1, end})
	}
	l.words[len(l.words)-1].unit = half
	return end
}

// otherRank says whether the best sentence has another ordinal than the claim
// before the same word, or another ideograph of a number or a day beside the
// same one.
func otherRank(all, best []word, claim, evidence map[string]bool) bool {
	theirs := make(map[string]bool)
	for i, w := range best {
		if claim[w.plain] {
			continue
		}
		if _, behind := neighbours(best, i); ordinals[w.plain] && behind != "" {
			theirs[behind] = true
		}
		for _, frame := range frames(w.plain) {
			theirs[frame] = true
		}
	}
	if len(theirs) == 0 {
		return false
	}
	for i, w := range all {
		if evidence[w.plain] {
			continue
		}
		if _, behind := neighbours(all, i); ordinals[w.plain] && theirs[behind] {
			return true
		}
		for _, frame := range frames(w.plain) {
			if theirs[frame] {
				return true
			}
		}
	}
	return false
}

// frames gives a pair of ideographs with a gap for each that is a number or
// the name of a day.
func frames(pair string) (found []string) {
	first, size := utf8.DecodeRuneInString(pair)
	if !isWideWord(first) || size == len(pair) {
		return nil
	}
	second, _ := utf8.DecodeRuneInString(pair[size:])
	const numerals, days = "〇零一二两兩三四五六七八九十百千万萬", "月火水木金土日"
	if strings.ContainsRune(numerals, first) || strings.ContainsRune(days, first) && second == '曜' {
		found = append(found, "_"+pair[size:])
	}
	if strings.ContainsRune(numerals, second) || strings.ContainsRune("日天", second) && strings.ContainsRune("期周週拜", first) {
		found = append(found, pair[:size]+"_")
	}
	return found
}

// ordinals are words for a rank.
var ordinals = wordSet(`first second third fourth fifth sixth seventh eighth ninth tenth last
	erste ersten erster erstes zweite zweiten zweiter zweites dritte dritten dritter drittes letzte letzten letzter letztes`)

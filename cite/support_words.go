package cite

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A wordKind says what a word can prove.
type wordKind uint8

const (
	light  wordKind = iota // an article, a pronoun, an auxiliary: stands in any text
	plain                  // any other word
	name                   // written with a capital inside a sentence, or with digits in it
	number                 // an amount, a year, a day
)

// A word is one word of a claim or a passage.
type word struct {
	// key is what words are compared by: stemmed; the value of a number.
	key string
	// plain is the word in lower case, as vectors are kept for it.
	plain string
	kind  wordKind
	// sign is the currency or % that a number is written with; 0 for none.
	sign rune
	// unit is what a number counts or measures; "" where that is none known.
	unit string
	// parted says that a comma, or what parts clauses as one does, stands
	// between the word and the one before it.
	parted bool
	span
}

// maxWordBytes is where a longer word is cut for comparing: what is longer is
// a key or an encoded image, and its beginning tells it from others.
const maxWordBytes = 64

// A lexer cuts text into words.
type lexer struct {
	stem func(string) string
	// begins holds the first two bytes of every word worth stemming; nil
	// stands for all. Stemming is most of the cost, and no stemmer touches the
	// first two letters of a word.
	begins map[[2]byte]bool
	words  []word
	first  int  // of the words of the text being read
	opened bool // no word of the sentence has been read
	parted bool // a comma has been read and no word behind it
}

// read appends the words of a text to the lexer's and gives them. Numbers are
// brought to their value ("1,500" and "1.5 thousand" are equal); capitals make
// a name unless they begin a sentence.
func (l *lexer) read(text string) []word {
	l.opened, l.parted = true, false
	l.first = len(l.words)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case isDigit(r):
			i = l.digits(text, i)
		case isWideWord(r):
			i = l.ideographs(text, i)
		case isLetter(r):
			i = l.letters(text, i)
		default:
			if isStop(r) || r == '\n' {
				l.opened = true
			}
			l.parted = l.parted || partsClauses(r)
			i += size
		}
	}
	read := l.words[l.first:len(l.words):len(l.words)]
	for i, w := range read {
		if w.kind == number && w.unit == "" {
			read[i].unit = unitOf(text[w.end:])
		}
	}
	return read
}

// isWideWord is isIdeograph, told at once for scripts that have none.
func isWideWord(r rune) bool { return r >= 0x0E00 && isIdeograph(r) }

func isDigit(r rune) bool {
	return '0' <= r && r <= '9' || r >= utf8.RuneSelf && unicode.IsDigit(r)
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r))
}

// ideographs reads a run of a script without spaces: every pair of characters
// is a word.
func (l *lexer) ideographs(text string, i int) int {
	before := -1
	first := i
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isWideWord(r) {
			break
		}
		if before >= 0 {
			pair := text[before : i+size]
			l.add(pair, pair, plain, span{before, i + size})
		}
		before = i
		i += size
	}
	if before == first {
		l.add(text[first:i], text[first:i], plain, span{first, i})
	}
	l.opened = false
	return i
}

func (l *lexer) add(key, written string, kind wordKind, at span) {
	l.words = append(l.words, word{key: key, plain: written, kind: kind, parted: l.parted, span: at})
	l.parted = false
}

// partsClauses says whether a negator on one side of a character says nothing
// of the words on its other side.
func partsClauses(r rune) bool {
	switch r {
	case ',', ';', ':', '(', ')', '–', '—', '，', '；', '：', '、':
		return true
	}
	return isStop(r)
}

// letters reads a word that begins with a letter; digits may follow (MH17),
// and an apostrophe or a full stop may stand inside (don't, U.S.).
func (l *lexer) letters(text string, start int) int {
	i := start
	capitals, letters, marks := 0, 0, false
	digit, ascii := false, true
	dots := 0
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if isDigit(r) {
			digit = true
		} else if isLetter(r) && !isWideWord(r) {
			letters++
			if unicode.IsUpper(r) {
				capitals++
			}
		} else if next, _ := utf8.DecodeRuneInString(text[i+size:]); (r == '\'' || r == '’') && isLetter(next) {
			marks = true
		} else if r == '.' && letters == dots+1 && capitals == letters && unicode.IsUpper(next) && !digit {
			dots++ // U.S.
		} else {
			break
		}
		ascii = ascii && r < utf8.RuneSelf
		i += size
	}
	w := text[start:i]
	if dots > 0 {
		w = strings.ReplaceAll(w, ".", "")
	}
	if marks {
		w = strings.ReplaceAll(w, "’", "'")
	}
	first, _ := utf8.DecodeRuneInString(w)
	low := strings.ToLower(clip(w, maxWordBytes))
	if !ascii {
		low = plainLetters(low)
	}
	low = strings.TrimSuffix(low, "'s")
	opened := l.opened
	l.opened = false
	at := span{start, i}
	switch {
	case low == "may" && capitals == 1 && (!opened || dayFollows(text[i:])):
		l.add(months[low], low, name, at)
		return i
	case lightWords[low] && !(capitals > 1 && capitals == letters && !opened):
		l.add(low, low, light, at)
		return i
	case l.spelled(low, text, at):
		return i
	}
	kind := plain
	if digit || capitals > 0 && (!opened || capitals > 1) && unicode.IsUpper(first) {
		kind = name
	}
	key := low
	if month, ok := months[low]; ok && (kind == name || opened && capitals > 0) {
		key = month
	} else if kind == plain || !digit {
		key = l.stemmed(low)
	}
	l.add(key, low, kind, at)
	return i
}

// dayFollows says whether a number comes next, as behind the name of a month.
func dayFollows(rest string) bool {
	return len(rest) > 1 && rest[0] == ' ' && '0' <= rest[1] && rest[1] <= '9'
}

func (l *lexer) stemmed(low string) string {
	if l.stem == nil || len(low) < 3 || l.begins != nil && !l.begins[[2]byte{low[0], low[1]}] {
		return low
	}
	return l.stem(low)
}

// clip cuts a string to at most n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// plainLetters takes the accents off.
func plainLetters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
}

// digits reads a number: digits with points and commas between them, and an
// ending such as th or s.
func (l *lexer) digits(text string, start int) int {
	if end := l.clock(text, start); end > 0 {
		return end
	}
	i := start
	points, commas, lastComma := 0, 0, 0
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if (r == '.' || r == ',') && i+1 < len(text) && '0' <= text[i+1] && text[i+1] <= '9' {
			if r == '.' {
				points++
			} else {
				commas++
				lastComma = i
			}
		} else if !isDigit(r) {
			break
		}
		i += size
	}
	l.opened = false
	grouped := false
	if points+commas == 0 && i-start <= 3 {
		for {
			n := groupAfter(text[i:])
			if n == 0 {
				break
			}
			grouped = true
			i += n
		}
	}
	w := clip(text[start:i], maxWordBytes)
	if grouped {
		w = strings.Map(func(r rune) rune {
			if isDigit(r) {
				return r
			}
			return -1
		}, w)
	}
	// A comma before exactly three digits groups them, another is a point.
	if commas > 0 {
		if commas > 1 || i-lastComma == 4 {
			w = strings.ReplaceAll(w, ",", "")
		} else {
			w = strings.ReplaceAll(w, ",", ".")
			points++
		}
	}
	key := w
	const exact = 15 // digits that a float64 holds
	if points <= 1 && len(w) <= exact {
		if v, err := strconv.ParseFloat(w, 64); err == nil {
			key = formatNumber(v)
		}
	}
	at := span{start, i}
	if n := len(l.words); n > l.first && i-start == 2 && isRange(text, l.words[n-1], start) {
		key = l.words[n-1].key[:2] + w // 2018–19
	}
	for _, ending := range [...]string{"st", "nd", "rd", "th", "s"} {
		if rest, ok := strings.CutPrefix(text[i:], ending); ok {
			if r, _ := utf8.DecodeRuneInString(rest); !isLetter(r) && !isDigit(r) {
				if ending == "s" {
					key += "s"
				}
				at.end = i + len(ending)
			}
		}
	}
	if end, month, day := isoDate(text, start, i); end > 0 {
		l.add(key, w, number, at)
		l.add(month, month, name, span{i + 1, i + 3})
		l.add(day, day, number, span{i + 4, end})
		return end
	}
	minus, sign := signs(text, start, at.end)
	if minus {
		key = "-" + key
	}
	l.add(key, w, number, at)
	last := &l.words[len(l.words)-1]
	last.sign = sign
	if half, n := meridiem(text[at.end:]); n > 0 {
		last.unit = half
		last.end += n
		return last.end
	}
	return at.end
}

// groupAfter gives the length of a space with three more digits of a number
// behind it; 0 when there are none.
func groupAfter(rest string) int {
	_, size := utf8.DecodeRuneInString(rest)
	end := size + 3
	if len(rest) < end || !isGroupSpace(rest[:size]) || !onlyDigits(rest[size:end]) {
		return 0
	}
	if r, _ := utf8.DecodeRuneInString(rest[end:]); isDigit(r) || isLetter(r) || r == ':' {
		return 0
	}
	return end
}

// signs gives what stands before and behind a number: whether it is negative,
// and its currency or %.
func signs(text string, start, end int) (minus bool, sign rune) {
	before, size := utf8.DecodeLastRuneInString(text[:start])
	if before == '-' || before == '−' {
		r, _ := utf8.DecodeLastRuneInString(text[:start-size])
		minus = start == size || unicode.IsSpace(r) || r == '('
	}
	if unicode.Is(unicode.Sc, before) {
		return minus, before
	}
	rest := strings.TrimPrefix(text[end:min(len(text), end+12)], " ")
	behind, _ := utf8.DecodeRuneInString(rest)
	switch {
	case behind == '%', strings.HasPrefix(rest, "percent"), strings.HasPrefix(rest, "per cent"):
		return minus, '%'
	case unicode.Is(unicode.Sc, behind):
		return minus, behind
	case strings.HasPrefix(rest, "euro"), strings.HasPrefix(rest, "EUR"):
		return minus, '€'
	case strings.HasPrefix(rest, "dollar"), strings.HasPrefix(rest, "USD"):
		return minus, '$'
	case strings.HasPrefix(rest, "pounds"), strings.HasPrefix(rest, "GBP"):
		return minus, '£'
	}
	return minus, 0
}

// isRange says whether a number that begins at start stands behind a year and
// a dash.
func isRange(text string, before word, start int) bool {
	if before.kind != number || len(before.key) != 4 || before.end-before.start != 4 {
		return false
	}
	switch text[before.end:start] {
	case "-", "–", "/":
		return true
	}
	return false
}

// isoDate reads the month and the day behind the year of a date as
// 2026-11-21; the month is given as months has it.
func isoDate(text string, start, end int) (after int, month, day string) {
	rest := text[end:]
	if end-start != 4 || len(rest) < 6 || rest[0] != '-' || rest[3] != '-' {
		return 0, "", ""
	}
	m, errMonth := strconv.Atoi(rest[1:3])
	d, errDay := strconv.Atoi(rest[4:6])
	if errMonth != nil || errDay != nil || m < 1 || m > 12 || d < 1 || d > 31 || len(rest) > 6 && isDigit(rune(rest[6])) {
		return 0, "", ""
	}
	return end + 6, monthKeys[m-1], formatNumber(float64(d))
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// spelled reads a number written as a word. A scale multiplies the number
// before it ("1.5 million"), a unit adds to the ten before it ("twenty-five").
func (l *lexer) spelled(low, text string, at span) bool {
	var before *word
	if n := len(l.words); n > l.first && l.words[n-1].kind == number && at.start-l.words[n-1].end == 1 {
		before = &l.words[n-1]
	}
	if scale, ok := scales[low]; ok {
		if before == nil {
			return false
		}
		if v, err := strconv.ParseFloat(before.key, 64); err == nil {
			before.key = formatNumber(v * scale)
			before.end = at.end
			return true
		}
		return false
	}
	v, ok := spelledNumbers[low]
	if !ok {
		return false
	}
	if before != nil && v < 10 && text[before.end] != ',' {
		if ten, err := strconv.ParseFloat(before.key, 64); err == nil && spelledNumbers[before.plain] == ten && ten >= 20 {
			before.key = formatNumber(ten + v)
			before.end = at.end
			return true
		}
	}
	l.add(formatNumber(v), low, number, at)
	return true
}

// beginnings gives the first two bytes of every word.
func beginnings(words []word) map[[2]byte]bool {
	m := make(map[[2]byte]bool, len(words))
	for _, w := range words {
		if len(w.plain) >= 2 {
			m[[2]byte{w.plain[0], w.plain[1]}] = true
		}
	}
	return m
}

var spelledNumbers = map[string]float64{
	"zero": 0, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
	"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
	"seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
	"sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

var scales = map[string]float64{
	"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12,
}

var monthKeys = [...]string{"jan.", "feb.", "mar.", "apr.", "may.", "jun.", "jul.", "aug.", "sep.", "oct.", "nov.", "dec."}

var months = map[string]string{
	"january": "jan.", "jan": "jan.", "february": "feb.", "feb": "feb.", "march": "mar.", "april": "apr.", "apr": "apr.",
	"may": "may.", "june": "jun.", "jun": "jun.", "july": "jul.", "jul": "jul.", "august": "aug.", "aug": "aug.",
	"september": "sep.", "sept": "sep.", "sep": "sep.", "october": "oct.", "oct": "oct.", "november": "nov.", "nov": "nov.",
	"december": "dec.", "dec": "dec.",
}

// lightWords are the words that stand in any English text: articles,
// pronouns, prepositions, conjunctions, auxiliaries.
var lightWords = wordSet(`
	a an the and or but nor of in on at to for from by with as into onto upon about over under after before between
	during through against among within without than then so such that this these those which who whom whose what
	when where why how if while because it its he she his him her hers they them their theirs i me my mine we us our
	ours you your yours is are was were be been being am do does did done has have had having will would shall should
	may might can could must not no also there here both each all any some more most other another only own same too
	very just up out off down again further once isn't aren't wasn't weren't don't doesn't didn't hasn't haven't
	hadn't won't wouldn't can't couldn't mustn't shouldn't cannot`)

func wordSet(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

package support

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
)

// A wordKind is how much a word can prove.
type wordKind uint8

const (
	light  wordKind = iota // an article, a pronoun, an auxiliary: in every text
	plain                  // any other word
	name                   // written with a capital inside a sentence, or with digits in it
	number                 // an amount, a year, a day
)

// A word is one word of a claim or a passage.
type word struct {
	key        string // for comparison: the stem, or the value of a number
	plain      string // the word in lower case
	kind       wordKind
	afterBreak bool // a comma, the border of a cell or another break is before the word
	// capital reports whether the word begins with a capital.
	capital bool
	Span
}

// maxWordBytes is the length to which words are cut. A longer one is a key or an encoded image.
const maxWordBytes = 64

// A lexer cuts text into words.
type lexer struct {
	stem func(string) string
	// begins holds the first two bytes of every word that must be stemmed; nil stems all.
	// Stemming is most of the cost.
	begins     map[[2]byte]bool
	words      []word
	atStart    bool // no word of the sentence has been read
	afterBreak bool // a comma has been read and no word after it
}

// read appends the words of a text to the lexer's and returns them. at is the text's offset in
// a longer text. A capital makes a name unless it begins a sentence.
func (l *lexer) read(text string, at int) []word {
	l.atStart, l.afterBreak = true, false
	first := len(l.words)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case isDigit(r):
			i = l.digits(text, i)
		case marker.IsUnspaced(r):
			i = l.ideographs(text, i)
		case isLetter(r):
			i = l.letters(text, i)
		case strings.ContainsRune("<=>+~±×÷≤≥≈%", r) || unicode.Is(unicode.Sc, r): // they change the meaning
			l.add(string(r), string(r), light, Span{i, i + size})
			i += size
		default:
			l.atStart = l.atStart || marker.IsStop(r) || r == '\n'
			l.afterBreak = l.afterBreak || marker.IsStop(r) || strings.ContainsRune(",;:()|/–—，；：、", r)
			i += size
		}
	}
	read := l.words[first:len(l.words):len(l.words)]
	for i := range read {
		read[i].Start += at
		read[i].End += at
	}
	return read
}

func (l *lexer) add(key, written string, kind wordKind, at Span) {
	l.words = append(l.words, word{key: key, plain: written, kind: kind, afterBreak: l.afterBreak, Span: at})
	l.atStart, l.afterBreak = false, false
}

func isDigit(r rune) bool {
	return '0' <= r && r <= '9' || r >= utf8.RuneSelf && unicode.IsDigit(r)
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	joiner := r == '\u200c' || r == '\u200d'
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) || joiner)
}

// ideographs reads a run of a script without spaces: every pair of characters is a word.
func (l *lexer) ideographs(text string, start int) int {
	i, before := start, -1
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !marker.IsUnspaced(r) {
			break
		}
		if before >= 0 {
			pair := text[before : i+size]
			l.add(pair, pair, plain, Span{before, i + size})
		}
		before = i
		i += size
	}
	if before == start {
		l.add(text[start:i], text[start:i], plain, Span{start, i})
	}
	return i
}

// letters reads a word that begins with a letter. Digits may follow (MH17), and
// an apostrophe may be inside (don't).
func (l *lexer) letters(text string, start int) int {
	i := start
	capitals, digit := 0, false
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if next, _ := utf8.DecodeRuneInString(text[i+size:]); marker.IsUnspaced(r) ||
			!isDigit(r) && !isLetter(r) && !((r == '\'' || r == '’') && isLetter(next)) {
			break
		}
		digit = digit || isDigit(r)
		if unicode.IsUpper(r) {
			capitals++
		}
		i += size
	}
	at := Span{start, i}
	low := strings.ToLower(clip(text[start:i], maxWordBytes))
	low = strings.TrimSuffix(strings.ReplaceAll(low, "’", "'"), "'s")
	first, _ := utf8.DecodeRuneInString(text[start:])
	switch {
	case months[low] != "" && capitals > 0: // not the auxiliary "may"
		l.add(months[low], low, name, at)
	case lightWords[low] && (l.atStart || capitals != utf8.RuneCountInString(low) || capitals < 2):
		l.add(low, low, light, at)
	case spelledNumbers[low] != 0:
		l.add(strconv.Itoa(spelledNumbers[low]), low, number, at)
	case digit:
		l.add(low, low, name, at)
	case unicode.IsUpper(first) && (!l.atStart || capitals > 1):
		l.add(l.stemWord(low), low, name, at)
	default:
		l.add(l.stemWord(low), low, plain, at)
	}
	l.words[len(l.words)-1].capital = unicode.IsUpper(first)
	return i
}

func (l *lexer) stemWord(low string) string {
	if len(low) < 3 || l.begins != nil && !l.begins[[2]byte{low[0], low[1]}] {
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

// digits reads a number: digits with points, commas or single spaces between
// them. It is compared by its value, so that 1,500 and 1 500 equal 1500.
func (l *lexer) digits(text string, start int) int {
	i, comma, commas := start, 0, 0
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isDigit(r) && !((r == '.' || r == ',') && i+1 < len(text) && '0' <= text[i+1] && text[i+1] <= '9') {
			break
		}
		if r == ',' {
			comma = i
			commas++
		}
		i += size
	}
	if i-start <= 3 {
		i += len(groups.FindString(text[i:min(len(text), i+maxWordBytes)]))
	}
	key := clip(text[start:i], maxWordBytes)
	if commas == 1 && i-comma != 4 { // a comma before three digits groups them
		key = strings.Replace(key, ",", ".", 1)
	}
	key = grouping.Replace(key)
	if m := yearBefore.FindStringSubmatch(text[max(0, start-8):start]); m != nil && len(key) == 2 && key > m[2] {
		key = m[1] + key // 2018–19
	}
	const exact = 15 // digits that a float64 holds
	if v, err := strconv.ParseFloat(key, 64); err == nil && len(key) <= exact {
		key = strconv.FormatFloat(v, 'f', -1, 64)
	}
	if negative.MatchString(text[max(0, start-8):start]) {
		key = "-" + key
	}
	l.add(key, key, number, Span{start, i})
	if n := len(l.words) - 1; n > 0 && l.words[n-1].End == start && isCurrency(l.words[n-1].plain) { // €5 is 5 €
		l.words[n-1], l.words[n] = l.words[n], l.words[n-1]
		l.words[n].End, l.words[n-1].Start = i, l.words[n].Start
	}
	return i
}

func isCurrency(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.Is(unicode.Sc, r)
}

// yearBefore matches the first year of a range, negative a minus sign.
var (
	yearBefore = regexp.MustCompile(`\b(\d\d)(\d\d)[-–/]$`)
	negative   = regexp.MustCompile(`(?:^|[\s(])[-−]$`)
)

// groups matches the digits of a number after its first space.
var (
	groups   = regexp.MustCompile(`^([ \x{a0}\x{2009}\x{202f}]\d{3}\b)+`)
	grouping = strings.NewReplacer(",", "", " ", "", "\u00a0", "", "\u2009", "", "\u202f", "")
)

// beginnings returns the first two bytes of every word.
func beginnings(words []word) map[[2]byte]bool {
	m := make(map[[2]byte]bool, len(words))
	for _, w := range words {
		if len(w.plain) >= 2 {
			m[[2]byte{w.plain[0], w.plain[1]}] = true
		}
	}
	return m
}

var spelledNumbers = map[string]int{
	"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
	"thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
	"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

// Digits returns a spelled number in digits, "12" for "twelve", and any other word unchanged.
func Digits(word string) string {
	if n := spelledNumbers[word]; n != 0 {
		return strconv.Itoa(n)
	}
	return word
}

// months maps the names of months and their short forms to the short form with
// a full stop.
var months = func() map[string]string {
	m := make(map[string]string)
	for of := time.January; of <= time.December; of++ {
		month := strings.ToLower(of.String())
		short := month[:3]
		if m[month] = short + "."; month != "march" {
			m[short] = short + "."
		}
	}
	m["sept"] = "sep."
	return m
}()

// lightWords are in any English text: articles, pronouns, prepositions, conjunctions,
// auxiliaries.
var lightWords = marker.WordSet(`
	a an the and or but nor of in on at to for from by with as into onto upon about over under after before between
	during through against among within without than then so such that this these those which who whom whose what
	when where why how if while because it its he she his him her hers they them their theirs i me my mine we us our
	ours you your yours is are was were be been being am do does did done has have had having will would shall should
	may might can could must not no also there here both each all any some more most other another only own same too
	very just up out off down again further once isn't aren't wasn't weren't don't doesn't didn't hasn't haven't
	hadn't won't wouldn't can't couldn't mustn't shouldn't cannot`)

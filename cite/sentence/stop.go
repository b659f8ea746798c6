package sentence

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
)

// RunsOn reports whether a sentence continues after a full stop, because the stop belongs to an
// initial, an abbreviation or an ordinal. before is the sentence up to the stop, and after is
// the text that follows the stop and its space. all means that the text ends with after; if it
// is not set, known is false if more text could change the result.
func RunsOn(before, after string, all bool) (runsOn, known bool) {
	w := lastWord(before)
	first, size := utf8.DecodeRuneInString(w)
	key := strings.ToLower(w)
	parted := inParts.MatchString(before[max(0, len(before)-maxParts):])
	digits := w != "" && strings.Trim(w, "0123456789") == ""
	switch {
	case digits && w == strings.TrimLeft(before, "#*_ ") && len(w) <= 3: // the number of a list item or heading
		return true, true
	case !parted && (abbreviations[key] || size == len(w) && unicode.IsUpper(first)):
		return true, true
	}
	next, whole := firstWord(after)
	capital, nextSize := utf8.DecodeRuneInString(next)
	known = whole || all
	switch {
	case parted, dotted.MatchString(w):
		return continues(w, next), known
	case digits && len(w) <= 2:
		return isOrdinal(before, after, next), known
	case numbered[key], strings.HasSuffix(key, "str"):
		return unicode.IsNumber(capital) || unicode.IsUpper(capital) && nextSize == len(next) && next != "A" && next != "I", known
	case surnamed[key]:
		return !beginners[strings.ToLower(next)], known
	case size == len(w) && unicode.IsLower(first) && unicode.IsUpper(capital) && utf8.RuneCountInString(next) <= 2: // e. V.
		return strings.HasPrefix(after[len(next):], "."), known
	}
	return false, true
}

// isOrdinal reports whether the number at the end of before is an ordinal or part of a date; next
// is the first word of after.
func isOrdinal(before, after, next string) bool {
	first, _ := utf8.DecodeRuneInString(next)
	low := strings.ToLower(next)
	return months[low] || dayBefore.MatchString(after) || ordinals.MatchString(before) && unicode.IsUpper(first) && !beginners[low] ||
		monthBefore.MatchString(before) && unicode.IsDigit(first)
}

// maxParts is more bytes than any abbreviation in parts has.
const maxParts = 16

// InBrackets reports whether a text ends within round brackets that are short enough for a
// remark.
func InBrackets(text string) bool {
	const longest = 160
	depth := 0
	for i := len(text) - 1; i >= max(0, len(text)-longest); i-- {
		switch text[i] {
		case ')':
			depth++
		case '(':
			r, _ := utf8.DecodeRuneInString(text[i+1:])
			if depth--; depth < 0 && (unicode.IsLetter(r) || unicode.IsNumber(r)) {
				return true
			}
			depth = max(0, depth)
		}
	}
	return false
}

// lastWord returns the letters, digits and dots at the end of a text, or "" if they
// are too many for an abbreviation.
func lastWord(text string) string {
	const longest = 24
	i := len(text)
	for i > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:i])
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '.' {
			break
		}
		if i -= size; len(text)-i > longest {
			return ""
		}
	}
	return text[i:]
}

// firstWord returns the letters, or the digits, at the beginning of a text, and
// whether they are a whole word.
func firstWord(text string) (word string, whole bool) {
	r, _ := utf8.DecodeRuneInString(text)
	i := 0
	if unicode.IsNumber(r) {
		return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))], strings.Trim(text, "0123456789") != ""
	}
	for i < min(len(text), maxLook) && (text[i] >= utf8.RuneSelf || text[i] == '\'' || 'a' <= text[i]|0x20 && text[i]|0x20 <= 'z') {
		i++
	}
	return text[:i], i < len(text)
}

// continues reports whether a capitalised word after a dotted abbreviation is in the same
// sentence. After an hour, a day or a time zone is; after other abbreviations, any word
// except one that often begins sentences.
func continues(abbreviation, next string) bool {
	if strings.EqualFold(abbreviation, "a.m") || strings.EqualFold(abbreviation, "p.m") {
		low := strings.ToLower(next)
		return days[low] || months[low] && low != next || len(next) > 1 && len(next) <= 4 && next == strings.ToUpper(next)
	}
	return next != "" && !beginners[strings.ToLower(next)]
}

var (
	// dotted matches single letters with dots between them (U.S, p.m) and a degree (Ph.D).
	// A sentence may end or continue after the last dot.
	dotted = regexp.MustCompile(`^(?:(?i:ph\.d)|\pL(?:\.\pL)+)$`)
	// inParts matches an abbreviation with spaces: z. Hd, u. a, i. d. R. A sentence may end or
	// continue after its last dot, too.
	inParts = regexp.MustCompile(`(?:^|[^\pL])\p{Ll}\. (?:\p{Ll}\. )*\pL\pL?$`)
	// ordinals matches German words before the number of a day, a floor or a century.
	ordinals = regexp.MustCompile(`(?:^|[^\pL])(?:[Aa]m|[Zz]um|[Bb]is|[Vv]om|[Dd]en|[Dd]em|[Dd]er|[Dd]ie|[Dd]as|[Ii]m|[Bb]eim|` +
		`[Ss]eit|[Aa]b) \d+$`)
	// dayBefore and monthBefore match parts of numeric dates: 12. 4. 2024.
	dayBefore   = regexp.MustCompile(`^\d{1,2}\.`)
	monthBefore = regexp.MustCompile(`(?:^|\D)\d{1,2}\. ?\d{1,2}$`)

	// In the same sentence, days and months may follow an hour, and months the number of a
	// day.
	days = marker.WordSet(`monday tuesday wednesday thursday friday saturday sunday ` +
		`mondays tuesdays wednesdays thursdays fridays saturdays sundays`)
	months = marker.WordSet(`january february march april may june july august september october november december
		jan feb mar apr jun jul aug sep sept oct nov dec
		januar jänner februar feber märz mai juni juli oktober dezember mär okt dez`)

	// beginners often begin a sentence.
	beginners = marker.WordSet(`a an the and or but nor of in on at to for from by with as into about over under after before between
		during through within without then so such that this these those who what when where why how if while because
		it its he she his her they their i me my we our you your there here both each all any some most other another only
		is are was were do does did can could may must no not also
		der die das den dem ein eine er sie es wir ich ihr man dies diese dieser dieses dort hier danach dann dazu
		am im bei bis vor nach seit und oder aber auch wenn weil als wer was wo wie`)
)

// abbreviations hardly ever end a sentence.
var abbreviations = marker.WordSet(`
	mr mrs ms mx dr prof rev hon gen col maj capt cmdr lt sgt ste mt messrs gov sen rep pres
	e.g i.e eg ie cf viz vs v approx ca incl excl esp resp pos
	z.b d.h bzw u.a z.t vgl sog ggf evtl inkl exkl zzgl hr hrn fr frl fa tel
	p.ex mme mlle tél sra srta dra av avda dott dott.ssa avv sig sig.ra sig.na т.е т.н г ул им напр см`)

// numbered abbreviations continue with a number: "No. 5", "Fig. 3", "Jan. 2", "(b. 1769)".
var numbered = marker.WordSet(`
	no nos nr num fig figs eq eqs sec ch chap vol vols pp p pg para art tab ref refs ver ed op abs bd s kap str abb anm ziff
	jan feb mar apr jun jul aug sep sept oct nov dec рис стр табл гл b c d n fl geb gest núm pág
	std stk stck mwst hrs qty pcs`)

// surnamed abbreviations end a sentence only if the next word often begins sentences.
var surnamed = marker.WordSet(`al st jr sr bros dept univ assn`)

package sentence

import (
	"cmp"
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
)

// States reports whether a sentence makes a statement that needs a source. It gets the sentence
// as written, as prose without code, and as plain text without references.
func States(written, prose, plain string) bool {
	if IsOffer(plain) || IsRefusal(plain) {
		return false
	}
	return isClaim(prose) || len(prose) == len(written) && isShortClaim(prose, plain)
}

//go:embed offers.txt
var offerTable string

//go:embed refusals.txt
var refusalTable string

var (
	offers = sync.OnceValue(func() *regexp.Regexp { return wholeForm(formsOf(offerTable, `[^:;\pN]{0,80}`)) })
	// refusals has the openings of refusals, words that add more than a refusal, and whole
	// refusals.
	refusals = sync.OnceValue(func() (of struct{ openings, more, forms *regexp.Regexp }) {
		forms := formsOf(refusalTable, `[^:;\pN]*`, "{S}", evidence, "{D}", germanEvidence,
			"{N}", `(?:nichts|nicht|keine? (?:angaben?|informationen?|auskunft|antwort|hinweise?))`)
		of.openings = regexp.MustCompile(`^(?:` + forms[0] + ` +)+`)
		of.more, of.forms = regexp.MustCompile(forms[1]), wholeForm(forms[2:])
		return of
	})
)

// Patterns for what English and German texts call the documents of an answer.
const (
	evidence = `(?:(?:the|this|these|any|my|your) )?(?:(?:provided|given|available|retrieved|above) )*` +
		`(?:evidence|documents?|passages?|sources?|excerpts?|texts?|context|documentation|information|handbook|manual)` +
		`(?: (?:provided|given|available|above|i have|i was given))?`
	germanEvidence = `(?:(?:die|den|der|das|dem|diesen?) )?(?:(?:vorliegende|bereitgestellte|angegebene|verfügbare)[nrs]? )?` +
		`(?:dokumente?n?|textstellen?|unterlagen|quellen?|texte?n?|auszügen?|passagen?)`
)

// formsOf returns the lines of a table with its placeholders replaced.
func formsOf(table, any string, signs ...string) (forms []string) {
	replace := strings.NewReplacer(append(signs, "…", any)...)
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); line[0] != '#' {
			forms = append(forms, replace.Replace(line))
		}
	}
	return forms
}

func wholeForm(forms []string) *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + strings.Join(forms, "|") + `)$`)
}

// normalize returns a sentence in the form of the tables, or "" if it is too long for them.
func normalize(sentence string) string {
	s := strings.TrimFunc(strings.ToLower(sentence), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if len(s) > 400 {
		return ""
	}
	return strings.ReplaceAll(s, "’", "'")
}

// IsOffer reports whether a sentence is a wish, thanks or an offer to the reader.
func IsOffer(sentence string) bool { return offers().MatchString(normalize(sentence)) }

// IsRefusal reports whether a sentence says only that the documents lack the answer, or that
// the writer does not know it.
func IsRefusal(sentence string) bool {
	of, s := refusals(), normalize(sentence)
	s = s[len(of.openings.FindString(s)):]
	return of.forms.MatchString(s) && !of.more.MatchString(s)
}

// IsNoAnswer reports whether a sentence is the reply NO ANSWER, which a prompt asks for.
func IsNoAnswer(sentence string) bool {
	return strings.HasSuffix(strings.ReplaceAll(normalize(sentence), "_", " "), "no answer") && IsRefusal(sentence)
}

// isClaim reports whether a sentence makes a statement that needs a source: it has at least
// four words or ideographs, and is not a question, a heading or the announcement of a list.
func isClaim(sentence string) bool {
	s := strings.TrimFunc(sentence, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("*_\"'”’)", r)
	})
	if s == "" || s[0] == '#' || s[0] == '`' || strings.HasPrefix(s, "~~~") {
		return false
	}
	if r, _ := utf8.DecodeLastRuneInString(s); strings.ContainsRune("?？:：", r) {
		return false
	}
	const least = 4
	words, ideographs := 0, 0
	for _, f := range strings.Fields(s) {
		if strings.IndexFunc(f, unicode.IsLetter) >= 0 {
			words++
		}
		for _, r := range f {
			if marker.IsUnspaced(r) {
				ideographs++
			}
		}
	}
	return words >= least || ideographs >= least
}

// isShortClaim reports whether a sentence too short for [isClaim] still makes a statement: a
// quantity, a year, or a predicate. written has the references, plain does not. A text without
// a full stop and without a quantity is a label.
func isShortClaim(written, plain string) bool {
	written = strings.TrimSpace(written)
	if strings.HasPrefix(written, "#") {
		return false
	}
	s := strings.TrimSpace(WithoutLead(plain))
	bold := strings.HasPrefix(s, "**") && strings.HasSuffix(s, "**")
	s = strings.TrimFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("*_\"'“”’)", r)
	})
	last, size := utf8.DecodeLastRuneInString(s)
	if size == 0 || strings.ContainsRune("?？:：", last) {
		return false
	}
	stop := marker.IsStop(last)
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("|*_,;()!", r) })
	for i := range words {
		words[i] = strings.TrimRight(words[i], ".:")
	}
	if (stop || !bold) && hasQuantity(words) {
		return true
	}
	if !stop || len(words) < 2 || strings.HasPrefix(written, "|") {
		return false
	}
	return slices.ContainsFunc(words, year.MatchString) || hasPredicate(words)
}

// hasQuantity reports whether a number has a currency or a unit.
func hasQuantity(words []string) bool {
	for i, w := range words {
		number := strings.TrimLeft(w, "€$£¥₹")
		rest := strings.TrimLeft(number, "0123456789.,:-–")
		if !strings.ContainsAny(number[:len(number)-len(rest)], "0123456789") {
			continue
		}
		unit := rest
		if i+1 < len(words) {
			unit = cmp.Or(rest, words[i+1])
		}
		if number != w || units[unit] || currencies[unit] || rest == "" && i > 0 && currencies[words[i-1]] {
			return true
		}
	}
	return false
}

var currencies = marker.WordSet("€ $ £ ¥ ₹ eur usd gbp chf jpy")

var units = marker.WordSet(`euro euros dollar dollars cent cents franken crowns yen million billion
	% ‰ percent prozent ° °c °f degrees grad kg g mg t lb lbs oz tonnes tons tonnen kilograms pounds
	km m cm mm mi ft miles metres meters meter feet inches knots km/h mph l ml litres liters liter m² m³
	kw kwh mw w v hp ps hz khz mhz ghz kb mb gb tb ms s min h am pm a.m p.m uhr
	second seconds minute minutes hour hours day days week weeks month months year years
	sekunden minuten stunden tage tagen wochen monate monaten jahre jahren`)

// year matches a year from 1000 to 2099.
var year = regexp.MustCompile(`^(?:1\d|20)\d\d$`)

// hasPredicate reports whether the words are a subject and its predicate, judging by a
// verb form. Statements about the writer, the reader or the text are not claims, nor are
// bare replies ("Yes, it is").
func hasPredicate(words []string) bool {
	switch words[0] {
	case "yes", "no", "not", "none", "nothing", "sure", "ok", "okay", "thanks", "thank", "hello", "hi", "sorry", "please", "see",
		"i", "we", "you", "i'm", "i’m", "that", "this", "these", "those", "here", "there", "as", "if", "what", "how", "let",
		"ja", "nein", "nicht", "keine", "danke", "hallo", "ich", "wir", "sie", "das", "dies", "hier", "wie", "siehe",
		"oui", "non", "merci", "bonjour", "je", "nous", "vous", "sí", "gracias", "hola":
		return false
	case "he", "she", "they":
		return !IsAuxiliary(words[len(words)-1])
	}
	for i, w := range words[1:] {
		if IsAuxiliary(w) && i+2 < len(words) {
			return true
		}
	}
	end := words[len(words)-1]
	return len(end) > 4 && strings.HasSuffix(end, "ed") && !strings.HasSuffix(end, "eed")
}

// IsAuxiliary reports whether a word, in lower case, is a form of an auxiliary verb.
func IsAuxiliary(word string) bool {
	switch word {
	case "is", "are", "was", "were", "isn't", "isn’t", "aren't", "aren’t", "wasn't", "wasn’t", "weren't", "weren’t",
		"has", "have", "had", "does", "do", "did", "can", "cannot", "can't", "can’t", "may", "must", "will", "won't", "won’t",
		"ist", "sind", "war", "waren", "wird", "werden", "wurde", "wurden", "hat", "haben", "hatte", "kann", "darf", "muss",
		"est", "sont", "était", "étaient", "fut", "es", "son", "fue", "fueron", "era":
		return true
	}
	return false
}

// WithoutLead removes characters before a sentence that are not part of it: signs of quotes,
// headings and lists, the number of a list item, the border and the row number of a table. Such
// a number is not a fact that needs a source.
func WithoutLead(claim string) string {
	s := claim[len(leadingSigns.FindString(claim)):]
	return s[len(itemNumber.FindString(s)):]
}

var (
	leadingSigns = regexp.MustCompile(`^[ \t\r\n>#|]*(?:- )?(?:\* )?(?:\+ )?(?:• )?(?:– )?`)
	itemNumber   = regexp.MustCompile(`^[*_( \t]*(?i:step )?\d{1,3}(?:` + // "1. ", "**2)** ", "Step 3: " or "4 |"
		`[.)*_: \t]*(?:[.):][.)*_: \t]*[ \t]|[ \t][.)*_: \t]*[.):])[.)*_: \t]*|[ \t]*\|[ \t]*)`)
)

package answer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/retrieve"
)

// The first words of an English question that is not the rest of another one,
// and the words by which a question refers to what was said before.
const (
	opening = " what which who whom whose when where why how is are was were do does did can could should would will has have had must may "
	leaning = " it its itself he him his himself she her hers herself they them their theirs themselves this that these those there here " +
		"then one ones other others another same such so too also else instead former latter both either neither again above " +
		"previous previously earlier before after afterwards next last first second more less most least better worse best worst " +
		"still yet any anything some something none all only exactly mean meant "
)

// standsAlone reports whether a question can be understood without what was
// said before. It errs on the side of no: it accepts only whole English
// questions, which name something by a name or a number and have no word that
// points back. "The fee" does point back; "the fee of the Tarn 14" and "the Tarn
// 14" do not.
func standsAlone(question string) bool {
	words := strings.FieldsFunc(question, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '\'' && r != '’' && r != '-'
	})
	// Two sentences may each be a part of the question.
	if len(words) == 0 || retrieve.Language(question) != "en" || len(retrieve.Terms(question)) < 3 ||
		strings.ContainsAny(strings.TrimRight(strings.TrimSpace(question), "?.! "), "?!:;\n") {
		return false
	}
	named := false
	for i, w := range words {
		small := strings.ToLower(w)
		if i == 0 {
			if !strings.Contains(opening, " "+small+" ") {
				return false
			}
			continue
		}
		compares := len(w) > 4 && (strings.HasSuffix(small, "er") || strings.HasSuffix(small, "est"))
		switch {
		case strings.Contains(leaning, " "+small+" "), strings.ContainsAny(w, "'’"):
			return false
		case small == "about" && i == 1: // what about …, how about …
			return false
		case proper(w):
			named = true
		case compares && !slices.Contains(words, "than"):
			return false
		case small == "the" && !completed(words[i+1:]):
			return false
		}
	}
	return named
}

// proper reports whether a word after the first is a name or a number.
func proper(w string) bool {
	first, n := utf8.DecodeRuneInString(w)
	return unicode.IsNumber(first) || unicode.IsUpper(first) && len(w) > n
}

// completed reports whether the words after a "the" say which one: by a name at
// once, or by an "of" soon after.
func completed(rest []string) bool {
	return len(rest) > 0 && proper(rest[0]) || slices.Contains(rest[min(1, len(rest)):min(3, len(rest))], "of")
}

package answer

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/cite/sentence"
	"ibid/cite/support"
	"ibid/ingest"
	"ibid/retrieve"
)

// quotesWhole reports whether a statement is a whole sentence, item or row of a passage, word for
// word. A part of a sentence is not enough, since it may lack the subject or an "only if". quote
// says where the passage has the words.
func quotesWhole(passage, statement string, quote support.Quote) bool {
	if quote.Verdict != support.Quoted {
		return false
	}
	claim := lowerWords(withoutNumber(statement))
	if len(claim) == 0 {
		return false
	}
	for s := range ingest.Sentences(passage) {
		if s.Start < quote.End && quote.Start < s.End {
			text := withoutNumber(passage[s.Start:s.End])
			return !isQuestion(text) && !refersBack(claim[0]) && slices.Equal(claim, lowerWords(text))
		}
	}
	return false
}

func withoutNumber(text string) string {
	return sectionNumber.ReplaceAllString(strings.TrimSpace(sentence.WithoutLead(text)), "")
}

var sectionNumber = regexp.MustCompile(`^\d+(?:\.\d+)+\.?\s+`)

// refersBack reports whether the first word of a sentence (the whole sentence in scripts without
// spaces) refers to the sentence before it, which may be a different one in an answer.
func refersBack(word string) bool {
	return leansOn[word] || leansUnspaced.MatchString(word)
}

var (
	leansOn = marker.WordSet(`it they he she this that these those such its their his her both neither otherwise then however
	er sie es dies diese dieser dieses il elle ils elles ce cette ces el ella ellos esto`)
	leansUnspaced = regexp.MustCompile(`^(?:[它他她这那此其彼]|[これそ][れのちう]|否则|两者|มัน|เขา|นี่|นั่น|สิ่งนี้)`)
)

// hasInRow reports whether a sentence has the words of a short reply in order and without gaps,
// or the reply consists of whole cells of a row: "Warranty: 3 years" matches the row
// "Property: Warranty | Value: 3 years". It ignores a leading "Answer:", and reports false for a
// reply without content words, such as "No".
func hasInRow(text, reply string) bool {
	words := lowerWords(reply)
	for len(words) > 1 && aboutAnswers[retrieve.Stem(words[0])] {
		words = words[1:]
	}
	if len(retrieve.Terms(reply)) == 0 {
		return false
	}
	border := " "
	if strings.ContainsFunc(reply, marker.IsUnspaced) {
		border = ""
	}
	phrase := func(words []string) string {
		var b strings.Builder
		for _, w := range words {
			b.WriteString(" " + support.Digits(w))
		}
		return border + strings.TrimSpace(b.String()) + border
	}
	said := phrase(words)
	if strings.Contains(phrase(lowerWords(text)), said) {
		return true
	}
	var cells []string // the words of the cells in the reply, with their columns' names if it has them
	for cell := range strings.SplitSeq(text, "|") {
		_, value, _ := strings.Cut(cell, ": ")
		for _, part := range []string{cell, value} {
			if w := lowerWords(part); len(w) > 0 && strings.Contains(said, phrase(w)) {
				cells = append(cells, w...)
				break
			}
		}
	}
	return phrase(cells) == said
}

// isOpening reports whether a text only leads up to an answer, like "Good question!", or
// only points to a reference.
func isOpening(text string) bool {
	isContent := func(w string) bool { return !aboutAnswers[retrieve.Stem(w)] }
	return sentence.Pointers(text) >= 0 || !slices.ContainsFunc(lowerWords(text), isContent)
}

// lowerWords returns the words of a text in lower case, without Markdown and without
// punctuation around them.
func lowerWords(text string) (words []string) {
	for w := range strings.FieldsSeq(unmarked.Replace(strings.ToLower(text))) {
		if w = strings.Trim(w, `.,;:!?"'“”„‘’«»()[]。，；：！？、`); w != "" {
			words = append(words, w)
		}
	}
	return words
}

var unmarked = strings.NewReplacer("*", "", "`", "", "|", " ", "’", "'")

func isQuestion(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, "*_\"'”’)` "))
	return last == '?' || last == '？'
}

func stems(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range lowerWords(text) {
		set[retrieve.Stem(w)] = true
	}
	return set
}

var aboutAnswers = stems(`good great excellent happy glad sure hello hi thanks help question answer list item follow following below above
	overview summary detail information document passage source text example exception step note frage antwort folgende dokument`)

// hasPredicate reports whether the words of a heading have a verb: an auxiliary, a word in
// "-ed" or "-s" before an article, or a last word in "-ed".
func hasPredicate(words []string) bool {
	for i, w := range words[1:] {
		past := strings.HasSuffix(w, "ed")
		switch {
		case i+2 == len(words):
			return past && i > 1
		case sentence.IsAuxiliary(w), (past || strings.HasSuffix(w, "s")) && isArticle[words[i+2]] && !isArticle[w]:
			return true
		}
	}
	return false
}

var isArticle = marker.WordSet("the a an all every no its their")

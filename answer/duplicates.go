package answer

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ibid/retrieve"
)

// withoutDuplicates separates the passages from those that say nothing that an
// earlier one does not.
func (a *Answerer) withoutDuplicates(kept []retrieve.Passage) (rest, duplicates []retrieve.Passage) {
	if a.KeepDuplicates {
		return kept, nil
	}
	var wordings []wording
	for _, p := range kept {
		w := wordingOf(p)
		if slices.ContainsFunc(wordings, w.repeats) {
			duplicates = append(duplicates, p)
			continue
		}
		wordings, rest = append(wordings, w), append(rest, p)
	}
	return rest, duplicates
}

// A wording is what a passage says, for comparison.
type wording struct {
	text    string // its words, separated and surrounded by spaces
	words   int
	heading string   // the words of the headings above it
	numbers []string // in its title and headings, sorted
}

// clearWords is how many words a passage needs to be understood without the
// headings above it.
const clearWords = 20

// repeats reports whether the other passage contains this one word for word. A
// single word, number or sign that differs makes the two different, since it
// may be the very fact that changed between two versions. So does a number in
// titles and headings, such as the year that a text is about.
func (w wording) repeats(other wording) bool {
	if w.words == 0 || !slices.Equal(w.numbers, other.numbers) {
		return false
	}
	if w.words < clearWords {
		return w.text == other.text && w.heading == other.heading
	}
	return strings.Contains(other.text, w.text)
}

func wordingOf(p retrieve.Passage) wording {
	words := plainWords(p.Text)
	w := wording{text: " " + strings.Join(words, " ") + " ", words: len(words), heading: strings.Join(plainWords(p.Heading), " ")}
	for _, word := range plainWords(p.Title + "\n" + p.Heading) {
		if strings.ContainsFunc(word, unicode.IsNumber) && !slices.Contains(w.numbers, word) {
			w.numbers = append(w.numbers, word)
		}
	}
	slices.Sort(w.numbers)
	return w
}

// plainWords returns the words and numbers of a text in lower case, and the
// signs that have a meaning, without punctuation and markup.
func plainWords(text string) []string { return plainWord.FindAllString(strings.ToLower(text), -1) }

var plainWord = regexp.MustCompile(`[\pL\pM\pN]+|\B-\d|[%‰§+<=>±×÷−≠≤≥≈\p{Sc}\p{So}]`)

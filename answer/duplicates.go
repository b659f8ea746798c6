package answer

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/retrieve"
)

// Copies are passages that say nothing that another one does not, by the label
// of that one. They are asked about only where nothing came of the other.
type copies map[int][]Evidence

// of takes the next copy of each passage of a batch, where there is one.
func (c copies) of(b batch) batch {
	var out batch
	for _, e := range b {
		if of := c[e.label]; len(of) > 0 {
			delete(c, e.label)
			if c[of[0].label] = of[1:]; len(of) == 1 {
				delete(c, of[0].label)
			}
			out = append(out, of[0])
		}
	}
	return out
}

// tellCopies tells of the copies that did not have to be read.
func (r *run) tellCopies(kept []retrieve.Passage, c copies) {
	var unread batch
	for _, label := range slices.Sorted(maps.Keys(c)) {
		unread = append(unread, c[label]...)
	}
	if len(unread) > 0 {
		r.stepped(Stepped{Passages: idsOf(kept, unread), Labels: unread.labels(), Reason: "near_duplicate"})
	}
}

// withoutCopies parts the passages from those that repeat an earlier one, and
// gives these by the index of the one that they repeat.
func (r *run) withoutCopies(kept []retrieve.Passage) (rest []retrieve.Passage, of map[int][]retrieve.Passage) {
	if r.KeepDuplicates {
		return kept, nil
	}
	of = map[int][]retrieve.Passage{}
	var plain []wording
	for _, p := range kept {
		w := wordingOf(p)
		if i := slices.IndexFunc(plain, w.repeats); i >= 0 {
			of[i] = append(of[i], p)
			continue
		}
		plain, rest = append(plain, w), append(rest, p)
	}
	return rest, of
}

// A wording is what a passage says, for comparison.
type wording struct {
	text    string // its words, parted and surrounded by spaces
	words   int
	heading string   // the words of the headings above it
	numbers []string // that stand in its title and headings, sorted
}

// tellingWords is how many words a passage needs to be understood without the
// headings above it.
const tellingWords = 20

// repeats tells whether a passage says nothing that another does not: it
// stands in the other word for word. A single word, number or sign that
// differs makes the two different, for it may be the very fact that changed
// between two versions, and so does a number in titles and headings, such as
// the year that a text is about.
func (w wording) repeats(other wording) bool {
	if w.words == 0 || !slices.Equal(w.numbers, other.numbers) {
		return false
	}
	if w.words < tellingWords {
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

// plainWords gives the words and numbers of a text in small letters, and the
// signs that have a meaning, without punctuation and markup.
func plainWords(text string) []string {
	var out []string
	start := -1 // of the open word
	end := func(i int) {
		if start >= 0 {
			out = append(out, strings.ToLower(text[start:i]))
		}
		start = -1
	}
	for i, c := range text {
		if isWordRune(c) || unicode.IsMark(c) {
			if start < 0 {
				start = i
			}
			continue
		}
		end(i)
		switch {
		case c == '|', c == '~', unicode.Is(unicode.Sk, c): // of tables and code
		case c == '%', c == '‰', c == '§', unicode.Is(unicode.S, c), c == '-' && minus(text[:i], text[i+1:]):
			out = append(out, string(c))
		}
	}
	end(len(text))
	return out
}

// minus tells whether a hyphen between two texts is the sign of a number.
func minus(before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	return unicode.IsDigit(next) && (before == "" || unicode.IsSpace(last))
}

package encoder

import (
	"errors"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A unigram vocabulary cuts text as SentencePiece does (Kudo, "Subword regularization", 2018): it
// composes the text (NFKC), puts a mark for the space before each word, and cuts each word into the
// pieces with the highest sum of scores.
type unigram struct {
	lexicon
	least               float32 // score of a rune that is not in any piece
	start, end, unknown int32
}

// space is the mark for a space.
const space = "▁"

// specialPieces do not occur in texts: their score is never.
var specialPieces = []string{"<s>", "</s>", "<unk>", "<pad>"}

var never = float32(math.Inf(-1))

func newUnigram(words lexicon) (*unigram, error) {
	u := &unigram{lexicon: words}
	if len(u.scores) != len(u.ends) {
		return nil, errors.New("its vocabulary has no scores")
	}
	for _, score := range u.scores {
		if score > never {
			u.least = min(u.least, score)
		}
	}
	u.least -= 10
	return u, u.findIDs(map[string]*int32{"<s>": &u.start, "</s>": &u.end, "<unk>": &u.unknown})
}

// tokens implements [tokenizer].
func (u *unigram) tokens(text string, limit int) []int32 {
	ids := append(make([]int32, 0, min(limit, len(text)/3+2)), u.start)
	text = strings.Map(plainRune, text[:min(len(text), limit*u.longest)])
	for word := range strings.FieldsSeq(norm.NFKC.String(text)) {
		if len(ids) >= limit-1 {
			break
		}
		ids = u.appendPieces(ids, space+word)
	}
	return append(ids[:min(len(ids), limit-1)], u.end)
}

// plainRune drops control characters and replaces white space and invisible runes by spaces.
func plainRune(r rune) rune {
	switch {
	case unicode.IsSpace(r), r == utf8.RuneError, r == 0xfeff, r == 0x2581, 0x200b <= r && r <= 0x200f:
		return ' '
	case unicode.IsControl(r):
		return -1
	}
	return r
}

// appendPieces appends the ids of a word's pieces (the Viterbi algorithm). Consecutive runes
// without a piece become one unknown piece.
func (u *unigram) appendPieces(ids []int32, word string) []int32 {
	type step struct {
		score float32
		from  int // start of the last piece
		id    int32
	}
	best := make([]step, len(word)+1) // best cut of each prefix
	for i := range best {
		best[i].score = never
	}
	best[0].score = 0
	for at := 0; at < len(word); {
		_, size := utf8.DecodeRuneInString(word[at:])
		for end := at + size; end <= min(len(word), at+u.longest); {
			if id, known := u.find(word[at:end]); known && best[at].score+u.scores[id] > best[end].score {
				best[end] = step{best[at].score + u.scores[id], at, id}
			}
			_, next := utf8.DecodeRuneInString(word[end:])
			if next == 0 {
				break
			}
			end += next
		}
		if unknown := best[at].score + u.least; unknown > best[at+size].score {
			best[at+size] = step{unknown, at, u.unknown}
		}
		at += size
	}
	first := len(ids)
	for at := len(word); at > 0; at = best[at].from {
		if id := best[at].id; id != u.unknown || len(ids) == first || ids[len(ids)-1] != id {
			ids = append(ids, id)
		}
	}
	for i, j := first, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids
}

package encoder

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A tokenizer cuts text into pieces.
type tokenizer interface {
	// tokens returns the ids of the text's pieces between those for the start and
	// the end, at most limit in all, by dropping the last.
	tokens(text string, limit int) []int32
}

// newTokenizer reads the vocabulary of a kind of tokenizer.
func newTokenizer(kind, text string, count int) (tokenizer, error) {
	switch kind {
	case wordPieces:
		return newVocabulary(text, count)
	case unigramPieces:
		return newUnigram(text, count)
	}
	return nil, fmt.Errorf("the tokenizer %.40q is unknown", kind)
}

// A vocabulary cuts text into word pieces as BERT does (Devlin and others, 2018):
// without accents, in lower case, at white space and around punctuation and
// ideographs, and then each word into the longest pieces from the left. Special
// tokens in the text are text.
type vocabulary struct {
	words, pieces       map[string]int32 // pieces continue a word: without their "##"
	longest             int              // in bytes
	start, end, unknown int32
}

// maxWord is the length of the longest word, in runes, that is cut into pieces.
const maxWord = 100

// newVocabulary reads words in the order of their ids, each ended by "\n".
func newVocabulary(text string, count int) (*vocabulary, error) {
	v := &vocabulary{words: make(map[string]int32, count), pieces: make(map[string]int32, count/4)}
	for id := range int32(count) {
		word, rest, found := strings.Cut(text, "\n")
		if !found {
			return nil, fmt.Errorf("the vocabulary has %d words instead of %d", id, count)
		}
		if piece, continues := strings.CutPrefix(word, "##"); continues {
			v.pieces[piece] = id
		} else {
			v.words[word] = id
		}
		v.longest, text = max(v.longest, len(word)), rest
	}
	for name, id := range map[string]*int32{"[CLS]": &v.start, "[SEP]": &v.end, "[UNK]": &v.unknown} {
		var known bool
		if *id, known = v.words[name]; !known {
			return nil, fmt.Errorf("the vocabulary has no %s", name)
		}
	}
	return v, nil
}

// tokens implements [tokenizer], with [CLS] and [SEP].
func (v *vocabulary) tokens(text string, limit int) []int32 {
	c := cutter{vocabulary: v, ids: append(make([]int32, 0, min(limit, len(text)/3+2)), v.start), limit: limit - 1}
	for at := 0; at < len(text) && len(c.ids) < c.limit; {
		if text[at] < utf8.RuneSelf {
			c.rune(rune(text[at]))
			at++
			continue
		}
		end := at + 1
		for end < len(text) && text[end] >= utf8.RuneSelf {
			end++
		}
		var it norm.Iter
		it.InitString(norm.NFD, text[at:end])
		for !it.Done() && len(c.ids) < c.limit {
			for _, r := range string(it.Next()) {
				c.rune(r)
			}
		}
		at = end
	}
	c.flush()
	return append(c.ids[:min(len(c.ids), c.limit)], v.end)
}

// A cutter collects the runes of a word.
type cutter struct {
	*vocabulary
	ids   []int32
	limit int
	word  []byte
	runes int
}

func (c *cutter) rune(r rune) {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == ' ':
		c.flush()
	case r < utf8.RuneSelf && (r < ' ' || r == 0x7f), r == utf8.RuneError,
		r >= utf8.RuneSelf && unicode.In(r, unicode.Mn, unicode.Cc, unicode.Cf, unicode.Co):
		// accents, control characters and private ones
	case unicode.IsSpace(r):
		c.flush()
	case isPunctuation(r) || isIdeograph(r):
		c.flush()
		c.add(r)
		c.flush()
	default:
		c.add(unicode.ToLower(r))
	}
}

func (c *cutter) add(r rune) {
	if c.runes++; c.runes <= maxWord {
		c.word = utf8.AppendRune(c.word, r)
	}
}

// flush adds the pieces of the word, or one unknown if it cannot be cut.
func (c *cutter) flush() {
	word, before := c.word, len(c.ids)
	if c.runes > maxWord {
		c.ids, word = append(c.ids, c.unknown), nil
	}
	table := c.words
	for len(word) > 0 {
		end := min(len(word), c.longest)
		id, known := table[string(word[:end])]
		for !known && end > 1 {
			end--
			id, known = table[string(word[:end])]
		}
		if !known {
			c.ids = append(c.ids[:before], c.unknown)
			break
		}
		c.ids, word, table = append(c.ids, id), word[end:], c.pieces
	}
	c.word, c.runes = c.word[:0], 0
}

// isPunctuation reports whether BERT takes a rune as a word of its own: all that is
// neither letter, digit nor control character in ASCII, and Unicode's punctuation.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	}
	return unicode.IsPunct(r)
}

func isIdeograph(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0xF900 <= r && r <= 0xFAFF ||
		0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF || 0x2F800 <= r && r <= 0x2FA1F
}

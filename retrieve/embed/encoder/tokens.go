package encoder

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A tokenizer cuts text into pieces.
type tokenizer interface {
	// tokens returns the ids of the text's pieces between the ids of the start and the end. It
	// drops the last pieces to return at most limit ids.
	tokens(text string, limit int) []int32
}

// newTokenizer returns a tokenizer of the given kind.
func newTokenizer(kind string, words lexicon) (tokenizer, error) {
	if err := words.check(); err != nil {
		return nil, err
	}
	switch kind {
	case wordPieces:
		return newVocabulary(words)
	case unigramPieces:
		return newUnigram(words)
	}
	return nil, fmt.Errorf("the tokenizer %.40q is unknown", kind)
}

// A lexicon has the words of a vocabulary by id, and finds the id of a word. It is stored in the
// model file, so that opening the file builds nothing.
type lexicon struct {
	text    string
	ends    []int32   // end of each word in text
	slots   []int32   // the ids by the hashes of the words; -1 if empty
	scores  []float32 // of each piece of a unigram vocabulary
	longest int       // length of the longest word, in bytes
}

// slotCount returns the length of a lexicon's slots: a power of two that leaves at least half of
// them empty.
func slotCount(words int) int { return 1 << bits.Len(uint(2*words)) }

func newLexicon(words []string, scores []float32) lexicon {
	l := lexicon{text: strings.Join(words, ""), ends: make([]int32, len(words)), scores: scores,
		slots: slices.Repeat([]int32{-1}, slotCount(len(words)))}
	end := 0
	for id, word := range words {
		end += len(word)
		l.ends[id] = int32(end)
		if at, known := l.slot(word); !known {
			l.slots[at] = int32(id)
		}
	}
	return l
}

// check returns an error if the other methods would fail, and sets l.longest.
func (l *lexicon) check() error {
	wrong := !slices.Contains(l.slots, -1)
	for _, id := range l.slots {
		wrong = wrong || id < -1 || int(id) >= len(l.ends)
	}
	start := int32(0)
	for _, end := range l.ends {
		wrong = wrong || end < start || int(end) > len(l.text)
		l.longest, start = max(l.longest, int(end-start)), end
	}
	if wrong {
		return errors.New("its vocabulary is damaged")
	}
	return nil
}

func (l *lexicon) word(id int32) string {
	if id == 0 {
		return l.text[:l.ends[0]]
	}
	return l.text[l.ends[id-1]:l.ends[id]]
}

// find returns the id of a word.
func (l *lexicon) find(word string) (id int32, known bool) {
	at, known := l.slot(word)
	return l.slots[at], known
}

// slot returns the slot of a word, or the empty slot that it would use.
func (l *lexicon) slot(word string) (at int, known bool) {
	hash := uint32(2166136261) // FNV-1a
	for i := range len(word) {
		hash = (hash ^ uint32(word[i])) * 16777619
	}
	for at = int(hash) & (len(l.slots) - 1); l.slots[at] >= 0; at = (at + 1) & (len(l.slots) - 1) {
		if l.word(l.slots[at]) == word {
			return at, true
		}
	}
	return at, false
}

// findIDs sets ids to the ids of words, which must exist.
func (l *lexicon) findIDs(ids map[string]*int32) error {
	for name, id := range ids {
		var known bool
		if *id, known = l.find(name); !known {
			return fmt.Errorf("the vocabulary has no %s", name)
		}
	}
	return nil
}

// A vocabulary cuts text into word pieces as BERT does (Devlin and others, 2018): without accents,
// in lower case, at white space and around punctuation and ideographs, and then each word into the
// longest pieces from the left. Special tokens in the text are treated as ordinary text.
type vocabulary struct {
	lexicon
	start, end, unknown int32
}

// continues marks a piece that continues a word.
const continues = "##"

// maxWord is the length in runes of the longest word that is cut into pieces.
const maxWord = 100

func newVocabulary(words lexicon) (*vocabulary, error) {
	v := &vocabulary{lexicon: words}
	return v, v.findIDs(map[string]*int32{"[CLS]": &v.start, "[SEP]": &v.end, "[UNK]": &v.unknown})
}

// tokens implements [tokenizer], with [CLS] and [SEP].
func (v *vocabulary) tokens(text string, limit int) []int32 {
	c := cutter{vocabulary: v, ids: append(make([]int32, 0, min(limit, len(text)/3+2)), v.start), limit: limit - 1}
	for _, r := range norm.NFD.String(text) {
		if len(c.ids) >= c.limit {
			break
		}
		c.addRune(r)
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

func (c *cutter) addRune(r rune) {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == ' ':
		c.flush()
	case r < utf8.RuneSelf && (r < ' ' || r == 0x7f), r == utf8.RuneError,
		r >= utf8.RuneSelf && unicode.In(r, unicode.Mn, unicode.Cc, unicode.Cf, unicode.Co):
		// accents, control characters and private-use characters are dropped
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

// flush adds the pieces of the word, or the unknown piece if the word cannot be cut.
func (c *cutter) flush() {
	word, before := string(c.word), len(c.ids)
	if c.runes > maxWord {
		c.ids, word = append(c.ids, c.unknown), ""
	}
	for prefix := ""; word != ""; prefix = continues {
		end := min(len(word), c.longest)
		id, known := c.find(prefix + word[:end])
		for !known && end > 1 {
			end--
			id, known = c.find(prefix + word[:end])
		}
		if !known {
			c.ids = append(c.ids[:before], c.unknown)
			break
		}
		c.ids, word = append(c.ids, id), word[end:]
	}
	c.word, c.runes = c.word[:0], 0
}

// isPunctuation reports whether BERT treats a rune as a separate word: everything in ASCII except
// letters, digits and control characters, and Unicode's punctuation.
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

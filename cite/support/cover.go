package support

import (
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
)

const (
	// maxClaimWords limits the different words of a claim that are looked up, so that time
	// is linear. Words beyond it count as missing.
	maxClaimWords = 256
	// maxEvidence is the number of sentences taken together as evidence.
	maxEvidence = 3
	// maxJoined is the number of passages that are judged together. minJoined is the number
	// of words that a passage must add, since any text may have a single one.
	maxJoined = 16
	minJoined = 2
	// minVerbatim is the number of consecutive words that a passage must share to count as
	// quoted, since any text may share fewer.
	minVerbatim = 3
)

// A cover records which sentences of passages have which words of a claim.
type cover struct {
	claim     []word  // the different words that prove something, in order
	total     float64 // their number, including words beyond maxClaimWords
	sentences []covered
	keys      map[string]bool // of all words of the passages, their titles and headings
	names     map[string]bool // of all names of the claim and the passages
}

// A covered is a sentence with the indexes of the claim's words in it. A sentence that has any
// also gets the indexes for its title and headings.
type covered struct {
	Span
	words   []word
	hits    []int
	heading bool
	passage int
}

// claimWords returns the different words of a claim, without light words unless it has no
// others.
func claimWords(words []word) []word {
	seen := make(map[string]bool, len(words))
	var out []word
	for _, least := range []wordKind{plain, light} {
		for _, w := range words {
			if w.kind >= least && !seen[w.key] {
				seen[w.key] = true
				out = append(out, w)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// cover looks the words of a claim up in the sentences of passages.
func (p Prover) cover(all []word, passages []Passage) *cover {
	claim := claimWords(all)
	total := float64(len(claim))
	claim = claim[:min(len(claim), maxClaimWords)]
	c := &cover{claim: claim, total: total, keys: make(map[string]bool), names: make(map[string]bool)}
	index := make(map[string]int, len(claim))
	for i, w := range claim {
		index[w.key] = i
	}
	l := lexer{stem: p.Stem, begins: beginnings(claim)}
	for n, passage := range passages {
		context := l.read(passage.Title+"\n"+passage.Heading, 0)
		c.hits(context, index, nil)
		for _, at := range p.Sentences(passage.Text) {
			text := passage.Text[at.Start:at.End]
			s := covered{Span: at, words: l.read(text, at.Start), heading: isHeading(text, passage.Text[at.End:]), passage: n}
			if s.hits = c.hits(s.words, index, nil); len(s.hits) > 0 {
				s.hits = c.hits(context, index, s.hits)
			}
			c.sentences = append(c.sentences, s)
		}
	}
	c.findNames(all)
	return c
}

// findNames finds the names in the claim and the sentences: capitalized words inside a
// sentence, and capitalized first words that the passages never have in lower case.
func (c *cover) findNames(claim []word) {
	lower := make(map[string]bool)
	for _, inside := range []bool{true, false} {
		for i := -1; i < len(c.sentences); i++ {
			words := claim
			if i >= 0 {
				words = c.sentences[i].words
			}
			for _, w := range words {
				lower[w.key] = lower[w.key] || !w.capital
				if w.kind == name || !inside && w.kind == plain && w.capital && !lower[w.key] && c.keys[w.key] {
					c.names[w.key] = true
				}
			}
		}
	}
}

// hits appends to hits the indexes of the claim's words that are among words.
func (c *cover) hits(words []word, index map[string]int, hits []int) []int {
	for _, w := range words {
		c.keys[w.key] = true
		if i, ok := index[w.key]; ok && !slices.Contains(hits, i) {
			hits = append(hits, i)
		}
	}
	return hits
}

// gain returns the number of words that a sentence would add to found.
func (c *cover) gain(found []bool, sentence int) int {
	n := 0
	for _, i := range c.sentences[sentence].hits {
		if !found[i] {
			n++
		}
	}
	return n
}

func (c *cover) add(found []bool, sentence int) {
	for _, i := range c.sentences[sentence].hits {
		found[i] = true
	}
}

// evidence picks the sentences that together have most of the claim's words, best first. It
// reports which words were found, and which passages have these sentences or equally good ones.
// A sentence of another passage must add several words.
func (c *cover) evidence(passages int) (picked []int, found, parts []bool) {
	found, parts = make([]bool, len(c.claim)), make([]bool, passages)
	joins := func(i, gain int) bool {
		return len(picked) == 0 || gain >= minJoined || len(picked) < maxEvidence && parts[c.sentences[i].passage]
	}
	for range max(maxEvidence, passages) {
		best, most := -1, 0
		for i := range c.sentences {
			if g := c.gain(found, i); g > most && joins(i, g) {
				best, most = i, g
			}
		}
		if best < 0 {
			break
		}
		for i, s := range c.sentences {
			if !parts[s.passage] && c.gain(found, i) == most && joins(i, most) {
				parts[s.passage] = true
			}
		}
		c.add(found, best)
		picked = append(picked, best)
	}
	return picked, found, parts
}

// quote returns the range of the sentence with most of the claim's words, or of a few
// consecutive ones if each adds enough. If headings is false, the words of a heading count for
// the sentence below it, but less than its own words.
func (c *cover) quote(headings bool) Span {
	best, most, above := c.sentences[0].Span, -1.0, 0.0
	for i, s := range c.sentences {
		if s.heading && !headings {
			above = 0.01 * float64(len(s.hits)) / c.total
			continue
		}
		if len(s.hits) == 0 && above == 0 && most >= 0 {
			continue
		}
		found, words := make([]bool, len(c.claim)), 0
		for n, t := range c.sentences[i:min(i+maxQuote, len(c.sentences))] {
			if t.heading && !headings {
				break
			}
			words += c.gain(found, i+n)
			c.add(found, i+n)
			if v := float64(words)/c.total - minAdded*float64(n) + above; v > most+1e-9 {
				best, most = Span{s.Start, t.End}, v
			}
		}
		above = 0
	}
	return best
}

// isHeading reports whether a sentence is a heading: a line that begins with "#", or a few
// words without a full stop and with an empty line or a rule below. rest is the text after it.
func isHeading(sentence, rest string) bool {
	if strings.HasPrefix(sentence, "#") {
		return !strings.Contains(sentence, "\n")
	}
	const long = 80
	end, _ := utf8.DecodeLastRuneInString(sentence)
	return len(sentence) <= long && unicode.IsLetter(end) && !strings.ContainsAny(sentence, "0123456789:|\n") &&
		underHeading.MatchString(rest)
}

var underHeading = regexp.MustCompile(`^[ \t\r]*\n([ \t\r]*\n|===|---)`)

// verbatim finds the words of a claim in the passage, in order, ignoring separators. negated
// reports whether the first sentence with these words negates one of them and the claim does
// not.
func (c *cover) verbatim(claim []word) (at Span, found, negated bool) {
	var wide int
	for _, w := range claim {
		if r, _ := utf8.DecodeRuneInString(w.plain); marker.IsUnspaced(r) {
			wide++
		}
	}
	if len(claim)-wide < minVerbatim && wide < 2*minVerbatim-1 {
		return Span{}, false, false
	}
	var words []word
	for _, s := range c.sentences {
		words = append(words, s.words...)
	}
	text, starts := joinWords(words)
	needle, _ := joinWords(claim)
	i := strings.Index(text, needle)
	if i < 0 {
		return Span{}, false, false
	}
	first := sort.SearchInts(starts, i)
	at = Span{words[first].Start, words[first+len(claim)-1].End}
	for _, s := range c.sentences {
		if s.Start <= at.Start && at.Start < s.End {
			said := s.words
			// "No, it is shut." does not contradict "it is shut"; "No pier is shut." does.
			if len(said) > 1 && slices.Contains(replies, said[0].plain) && said[1].Start-said[0].End > 1 {
				said = said[1:]
			}
			negated = isContradicted(claim, said)
		}
	}
	return at, true, negated
}

// joinWords concatenates words, each after a NUL, and returns their offsets.
func joinWords(words []word) (text string, starts []int) {
	var b strings.Builder
	for _, w := range words {
		starts = append(starts, b.Len())
		b.WriteByte(0)
		if w.kind == number {
			b.WriteString(w.key)
		} else {
			b.WriteString(w.plain)
		}
	}
	b.WriteByte(0)
	return b.String(), starts
}

// lacksSubject reports whether the passages lack the first word of a claim, or only the word
// after its initial article, if that is a plain word. After an opening phrase and a comma the
// subject may be anywhere.
func (c *cover) lacksSubject(claim []word) bool {
	const phrase = 6 // words
	if len(claim) < 2 || !claim[0].capital {
		return false
	}
	subject, article := claim[0], slices.Contains([]string{"the", "a", "an"}, claim[0].plain)
	if article {
		subject = claim[1]
	}
	lacking := func(w word) bool { return !c.keys[w.key] }
	if subject.kind != plain || isNegator(subject.plain) || !lacking(subject) || article && slices.ContainsFunc(c.claim, func(w word) bool {
		return lacking(w) && w.key != subject.key
	}) {
		return false
	}
	return !slices.ContainsFunc(claim[1:min(len(claim), phrase+1)], func(w word) bool { return w.afterBreak })
}

// closingLength returns the length of the punctuation that ends a quote.
func closingLength(rest string) int {
	n := 0
	for n < len(rest) {
		r, size := utf8.DecodeRuneInString(rest[n:])
		if !marker.IsStop(r) && !strings.ContainsRune("\"'”’)]»」』）】%", r) {
			break
		}
		n += size
	}
	return n
}

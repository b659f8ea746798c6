package charset

import (
	"bytes"
	"math"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// The guess compares likelihoods. Each encoding turns the bytes into characters, and a simple
// language model gives their likelihood from the frequencies of letters, from capitals after small
// letters and from signs inside words. All encodings explain the same bytes, so the sums are
// comparable. The numbers are natural logarithms.

const (
	sampleBytes = 64 << 10
	lineBytes   = 16 << 10 // per line in the sample

	unlikelyLetter = -9.0  // in the script but not in the language
	strayCharacter = -14.0 // control and undefined characters
	// Another encoding overrules the declared one if its likelihood is higher by both of these, in
	// total and per byte.
	overrule        = 10.0
	overrulePerByte = 0.25
	// If the best encoding of a long text has a lower likelihood per byte, the text is in none of
	// them.
	leastPerByte = -7.2
)

// detectEncoding returns the encoding with the highest likelihood for bytes that are not UTF-8.
func detectEncoding(data []byte, declared encoding.Encoding) (encoding.Encoding, error) {
	sample := sampleOf(data)
	high := 0
	for _, c := range sample {
		if c >= utf8.RuneSelf {
			high++
		}
	}
	best, most := encoding.Encoding(charmap.Windows1252), math.Inf(-1)
	stated := math.Inf(-1)
	note := func(enc encoding.Encoding, likelihood float64) {
		if likelihood > most {
			best, most = enc, likelihood
		}
		if enc == declared {
			stated = max(stated, likelihood)
		}
	}
	var count [256]float64
	for _, c := range sample {
		count[c]++
	}
	order := make(map[*charmap.Charmap]float64) // the same for every language
	for _, r := range readings() {
		if _, ok := order[r.chars]; !ok {
			order[r.chars] = r.orderLikelihood(sample)
		}
		sum := r.prior + order[r.chars]
		for c := utf8.RuneSelf; c < len(count); c++ {
			sum += count[c] * r.cost[c]
		}
		note(r.chars, sum)
	}
	for _, w := range wides {
		note(w.enc, w.likelihood(sample))
	}
	if high >= 100 && most < leastPerByte*float64(high) {
		return nil, ErrEncoding
	}
	if declared == nil {
		return best, nil
	}
	if math.IsInf(stated, -1) { // not one of the candidates
		if _, single := declared.(*charmap.Charmap); single {
			return declared, nil
		}
		return best, nil // an encoding with escapes, but the data has no escape
	}
	if gain := most - stated; gain > overrule && gain > overrulePerByte*float64(high) {
		return best, nil
	}
	return declared, nil
}

// sampleOf returns lines with bytes beyond ASCII, from the start of the data.
func sampleOf(data []byte) (sample []byte) {
	for line := range bytes.Lines(data) {
		if slices.ContainsFunc(line, func(c byte) bool { return c >= utf8.RuneSelf }) {
			sample = append(sample, line[:min(len(line), lineBytes)]...)
		}
		if len(sample) >= sampleBytes {
			break
		}
	}
	return sample
}

// A candidate is one language in one single-byte encoding.
type candidate struct {
	chars *charmap.Charmap
	prior float64
	cost  [256]float64 // log likelihood of each byte beyond ASCII
	class [256]class
}

type class uint8

const (
	other class = iota // includes letters without case
	lower
	capital
	sign
	kind = sign // mask of the class without flags

	ascii   class = 4 // added to ASCII letters
	foreign class = 8 // added to letters of other scripts than Latin
)

// orderLikelihood returns the log likelihood of each character beyond ASCII after the character
// before it.
func (r *candidate) orderLikelihood(sample []byte) float64 {
	sum := 0.0
	var before, previous class
	for _, c := range sample {
		here := r.class[c]
		if c >= utf8.RuneSelf || previous&ascii == 0 && previous != other {
			sum += classLikelihood(before, previous, here)
		}
		before, previous = previous, here
	}
	return sum
}

// classLikelihood returns the log likelihood of a class of character after another.
func classLikelihood(before, previous, here class) float64 {
	cased := func(c class) bool { return c&kind == lower || c&kind == capital }
	switch {
	case previous&ascii != 0 && here&foreign != 0, previous&foreign != 0 && here&ascii != 0:
		return -4 // two scripts in a word
	case previous&kind == lower && here&kind == capital:
		return -5
	case cased(before) && previous&kind == sign && cased(here):
		return -4 // a sign in a word
	}
	return 0
}

// readings are all languages in all their encodings.
var readings = sync.OnceValue(func() []*candidate {
	var all []*candidate
	for _, l := range languages {
		weights := l.weights()
		for _, in := range l.encodings {
			all = append(all, newCandidate(in, weights))
		}
	}
	return all
})

func newCandidate(in encodingPrior, weights map[rune]float64) *candidate {
	r := &candidate{chars: in.chars, prior: in.prior}
	for i := range 256 {
		c := in.chars.DecodeByte(byte(i))
		r.class[i] = classOf(c)
		if i < utf8.RuneSelf {
			if r.class[i] == sign {
				r.class[i] = other
			} else if r.class[i] != other {
				r.class[i] += ascii
			}
			continue
		}
		r.cost[i] = costOf(c, r.class[i], weights)
		if unicode.IsLetter(c) && !unicode.Is(unicode.Latin, c) {
			r.class[i] += foreign
		}
	}
	return r
}

func classOf(c rune) class {
	switch {
	case unicode.IsLower(c):
		return lower
	case unicode.IsUpper(c):
		return capital
	case unicode.In(c, unicode.L, unicode.M) || unicode.IsSpace(c):
		return other
	}
	return sign
}

func costOf(c rune, k class, weights map[rune]float64) float64 {
	if w, ok := weights[unicode.ToLower(c)]; ok {
		return math.Log(0.96 * w)
	}
	switch {
	case c == 0xfffd || unicode.IsControl(c) || c >= 0x2500 && c < 0x25a0: // includes the frames of tables
		return strayCharacter
	case c == 0xa0, slices.Contains([]rune("«»“”„‘’‚–—…•·№€©®°§"), c):
		return -5
	case k == sign:
		return -9
	}
	return unlikelyLetter
}

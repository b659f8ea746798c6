package ingest

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"
)

var (
	anyWord = regexp.MustCompile(`[\pL\pN_]+`)
	parted  = regexp.MustCompile(`(\p{Ll})-\n(\p{Ll})`)
)

// wordF1 is the harmonic mean of the shares of words that the texts have in common;
// repeated words count as often as both have them.
func wordF1(a, b string) float64 { return gramF1(a, b, 1) }

// gramF1 is the same for runs of n words: with two, word spaces and reading order
// count too.
func gramF1(a, b string, n int) float64 {
	count := map[string]int{}
	grams := func(s string) (out []string) {
		words := anyWord.FindAllString(strings.ToLower(parted.ReplaceAllString(norm.NFKC.String(s), "$1$2")), -1)
		for i := 0; i+n <= len(words); i++ {
			out = append(out, strings.Join(words[i:i+n], " "))
		}
		return out
	}
	ga, gb := grams(a), grams(b)
	for _, g := range gb {
		count[g]++
	}
	common := 0
	for _, g := range ga {
		if count[g] > 0 {
			count[g]--
			common++
		}
	}
	if len(ga)+len(gb) == 0 {
		return 1
	}
	return 2 * float64(common) / float64(len(ga)+len(gb))
}

package office

import "strings"

// Raised writes what stands raised beside a word, an exponent or the sign of a
// note, with the digits made for it: 10⁶ is not 106. ok is false for other
// texts, ordinals as in 1st for one.
func Raised(text string) (raised string, ok bool) {
	text = strings.TrimSpace(text)
	const most = 20 // bytes; longer ones are no signs
	if text == "" || len(text) > most {
		return "", false
	}
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	var out strings.Builder
	for i, r := range text {
		switch {
		case r >= '0' && r <= '9':
			out.WriteRune(digits[r-'0'])
			ok = true
		case i == 0 && r == '+':
			out.WriteRune('⁺')
		case i == 0 && (r == '-' || r == '−' || r == '–'):
			out.WriteRune('⁻')
		case strings.ContainsRune(",–- ", r): // between several
			out.WriteRune(r)
		default:
			return "", false
		}
	}
	return out.String(), ok
}

package office

import "strings"

// Superscript writes an exponent, note mark or other superscript in superscript digits, since 10⁶
// is not 106. ok is false for other texts, such as the ordinal 1st.
func Superscript(text string) (raised string, ok bool) {
	text = strings.TrimSpace(text)
	const most = 20 // bytes; longer text is not a mark
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
		case strings.ContainsRune(",–- ", r): // separates several marks
			out.WriteRune(r)
		default:
			return "", false
		}
	}
	return out.String(), ok
}

package office

import (
	"strconv"
	"strings"
)

// symbol returns the character at a place of a symbol font.
func symbol(font, hex string) string {
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		return ""
	}
	r := rune(n)
	if r < 0xf000 || r > 0xf0ff {
		return string(r)
	}
	r -= 0xf000
	switch strings.ToLower(font) {
	case "symbol":
		if text, ok := symbolFont[r]; ok {
			return text
		}
		// Greek letters are in the places of similar Latin ones.
		const latin, greek = "ABGDEZHQIKLMNXOPRSTUFCYWabgdezhqiklmnxoprstufcyw", "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρστυφχψω"
		if i := strings.IndexRune(latin, r); i >= 0 {
			return string([]rune(greek)[i])
		}
		if r >= ' ' && r < 0x7f {
			return string(r)
		}
	case "wingdings":
		return map[rune]string{0xfc: "✓", 0xfe: "✓", 0xfb: "✗", 0xfd: "✗", 0xe0: "→", 0xe8: "→"}[r]
	}
	return ""
}

var symbolFont = map[rune]string{
	0xa3: "≤", 0xb3: "≥", 0xb1: "±", 0xb4: "×", 0xb0: "°", 0xb7: "•", 0xb9: "≠", 0xbb: "≈", 0xae: "→", 0xa5: "∞",
}

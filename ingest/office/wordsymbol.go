package office

import (
	"strconv"
	"strings"
)

// symbol gives the character of a symbol font, where there is one.
func symbol(font, hex string) string {
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		return ""
	}
	r := rune(n)
	if r >= 0xf000 && r <= 0xf0ff {
		r -= 0xf000
		switch strings.ToLower(font) {
		case "symbol":
			return symbolFont(r)
		case "wingdings":
			switch r {
			case 0xfc, 0xfe:
				return "✓"
			case 0xfb, 0xfd:
				return "✗"
			case 0xe0, 0xe8:
				return "→"
			case 0x4a:
				return "☺"
			}
		}
		return ""
	}
	return string(r)
}

// symbolFont gives the character at a place of Adobe's Symbol encoding: Greek
// letters stand where their Latin likes do.
func symbolFont(r rune) string {
	const latin, greek = "ABGDEZHQIKLMNXOPRSTUFCYWabgdezhqiklmnxoprstufcywVJ", "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρστυφχψωςϑ"
	if i := strings.IndexRune(latin, r); i >= 0 && r < 0x80 {
		return string([]rune(greek)[i])
	}
	switch r {
	case 0xa3:
		return "≤"
	case 0xb3:
		return "≥"
	case 0xb1:
		return "±"
	case 0xb4:
		return "×"
	case 0xb0:
		return "°"
	case 0xb7:
		return "•"
	case 0xb9:
		return "≠"
	case 0xbb:
		return "≈"
	case 0xae:
		return "→"
	case 0xa5:
		return "∞"
	}
	if r >= ' ' && r < 0x7f {
		return string(r)
	}
	return ""
}

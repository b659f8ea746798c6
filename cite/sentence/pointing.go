package sentence

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
)

// pointing are words that only introduce a reference.
var pointing = marker.WordSet(`see also cf source sources reference references ref refs citation citations cited document documents
	doc docs passage passages evidence used and from per based on according to the in
	siehe vgl quelle quellen beleg belege nachweis nachweise und nach voir et fuente fuentes
	来源 來源 资料来源 参考 參考 参考文献 出处 出典 参见 見 见 和 と`)

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r))
}

// Pointers returns the number of words of a short text that only introduces a reference, or -1
// if a word does more.
func Pointers(text string) int {
	n := 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !isWordRune(r) }) {
		if !pointing[strings.ToLower(word)] {
			return -1
		}
		n++
	}
	return n
}

// onlyPoints reports whether a line has only references and words that introduce them.
func onlyPoints(text []byte, refs []Span, line Span) bool {
	words, found := 0, false
	for i, looked := line.Start, 0; i < line.End; looked++ {
		if looked == 2*maxLook {
			return false
		}
		if to := RefAt(refs, i); to > 0 {
			i, found = to, true
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if !isWordRune(r) {
			i += size
			continue
		}
		end := i
		for end < line.End && end-i <= maxLook {
			r, size := utf8.DecodeRune(text[end:])
			if !isWordRune(r) || RefAt(refs, end) > 0 {
				break
			}
			end += size
		}
		if Pointers(string(text[i:end])) < 0 {
			return false
		}
		words++
		i = end
	}
	return found && words > 0
}

// WithoutAsides removes brackets that only introduced a reference, such as "(see )".
func WithoutAsides(claim string) string {
	const longest = 64
	var b strings.Builder
	kept := 0
	for i := 0; i < len(claim); i++ {
		if claim[i] != '(' {
			continue
		}
		inner, _, closed := strings.Cut(claim[i+1:min(len(claim), i+longest)], ")")
		if closed && Pointers(inner) > 0 {
			b.WriteString(strings.TrimRight(claim[kept:i], " "))
			i += len(inner) + 1
			kept = i + 1
		}
	}
	b.WriteString(claim[kept:])
	return b.String()
}

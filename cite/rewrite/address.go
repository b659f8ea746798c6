package rewrite

import (
	"bytes"
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Addresses is a set of web and mail addresses. It ignores case, the scheme, "www.",
// a fragment and a slash at the end.
type Addresses map[string]bool

// Add adds the addresses in a text, and their hosts.
func (a Addresses) Add(text string) {
	for word := range activeWords([]byte(text)) {
		key := addressKey(word)
		a[key] = true
		a[hostEnd.Split(key, 2)[0]] = true
	}
}

// Missing returns the addresses in a text that are not in the set. It ignores file names such
// as "main.go", although link finders may link them.
func (a Addresses) Missing(text string) (missing []string) {
	for word := range activeWords([]byte(text)) {
		if matches(leadsAway, word) && !a[addressKey(word)] {
			missing = append(missing, string(word))
		}
	}
	return missing
}

// maxAddress is the largest length of an address, in bytes.
const maxAddress = 2048

// activeWords returns the words of a text that a link finder may link.
func activeWords(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			n := wordEnd(text)
			if n == 0 {
				_, n = utf8.DecodeRune(text)
			} else if isActive(text[:n]) {
				n = addressEnd(text, n)
				if !yield(trimAddress(text[:n])) {
					return
				}
			}
			text = text[n:]
		}
	}
}

const (
	webSchemes = `https?|ftps?|sftp|file|smb|wss?`
	// Schemes that are linked without slashes, or that run code or carry data.
	otherSchemes = `mailto|xmpp|tel|sms|callto|sip|skype|javascript|vbscript|livescript|data|blob|about|filesystem|view-source|jar|` +
		`intent|ms-[a-z]+|search-ms|vscode`
)

var (
	// active matches text that a link finder, an HTML reader or a decoder of character
	// references may act on.
	active = regexp.MustCompile(`(?i)//[^/\s]|(?:^|[^a-z0-9])(?:` + webSchemes + `|` + otherSchemes + `):\S|www\.\S|` +
		`\S@[\pL\pN_]|[\pL\pM\pN_-]\.\pL[\pL\pM]|&(?:#|[a-z][a-z0-9]{0,31};|[lg]t)|\d\.\d+\.\d+\.\d`)
	// leadsAway matches addresses that people would recognize, but not every name with a
	// dot.
	leadsAway = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^/\s]|^//[^/\s]*\.|(?:^|[^a-z0-9])(?:https?|` + otherSchemes + `):[^/\s]|` +
		`www\.[^.\s]|\S@[^\s@]*\.\pL\pL|^[^\s/]*\.(?:com|org|net|edu|gov|mil|int|info|biz|app|dev|example|рф)(?:[/:?#]|$)`)
	schemeStart = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	hostEnd     = regexp.MustCompile(`[/:?]`)
)

// isActive reports whether a link finder may act on a word.
func isActive(word []byte) bool {
	return bytes.ContainsAny(word, `.:@/&`) && matches(active, word)
}

// matches reports whether a pattern matches a word, with or without the backslashes that
// Markdown renderers remove.
func matches(pattern *regexp.Regexp, word []byte) bool {
	return pattern.Match(word) || bytes.IndexByte(word, '\\') >= 0 && pattern.MatchString(withoutBackslashes(word))
}

func withoutBackslashes(word []byte) string { return strings.ReplaceAll(string(word), `\`, "") }

func addressKey(address []byte) string {
	key := strings.ToLower(withoutBackslashes(address))
	key = strings.TrimLeft(key[len(schemeStart.FindString(key)):], "/")
	key, _, _ = strings.Cut(strings.TrimPrefix(key, "www."), "#")
	return strings.TrimRight(key, "/")
}

// wordEnd returns the length of the word at the beginning of b, or 0 if b begins with a
// separator.
func wordEnd(b []byte) int { return indexSign(b, 0, " \t\n<>\"`|[](){}*,='!^~") }

// addressEnd returns the end of the address that begins with the n bytes of a word.
func addressEnd(b []byte, n int) int { return indexSign(b[:min(len(b), maxAddress)], n, " \t\n<>\"`|") }

// indexSign returns the offset, from n on, of the first character that is in signs, or is
// outside ASCII and neither letter nor number.
func indexSign(b []byte, n int, signs string) int {
	for n < len(b) {
		if c := b[n]; c < utf8.RuneSelf {
			if strings.IndexByte(signs, c) >= 0 {
				return n
			}
			n++
			continue
		}
		r, size := utf8.DecodeRune(b[n:])
		if unicode.IsPunct(r) || unicode.IsSymbol(r) || unicode.IsSpace(r) {
			return n
		}
		n += size
	}
	return n
}

// trimAddress removes the punctuation of the sentence, and brackets not opened in the address,
// from its end.
func trimAddress(b []byte) []byte {
	for len(b) > 1 {
		switch c := b[len(b)-1]; c {
		case '.', ',', ';', ':', '!', '?', '\'', '*', '_', '~', '=':
		case ')', ']', '}':
			open := map[byte]string{')': "(", ']': "[", '}': "{"}[c]
			if bytes.Count(b, []byte(open)) >= bytes.Count(b, []byte{c}) {
				return b
			}
		default:
			return b
		}
		b = b[:len(b)-1]
	}
	return b
}

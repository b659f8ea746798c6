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

// Missing returns the addresses in a text that are not in the set. What only looks
// like one to finders of links ("main.go") is none.
func (a Addresses) Missing(text string) (missing []string) {
	for word := range activeWords([]byte(text)) {
		if matches(leadsAway, word) && !a[addressKey(word)] {
			missing = append(missing, string(word))
		}
	}
	return missing
}

// maxAddress is the length of the longest address that is read as one, in bytes.
const maxAddress = 2048

// activeWords returns the words of a text that finders of links may act on.
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
	// Schemes that are linked without slashes, or run or carry something.
	otherSchemes = `mailto|xmpp|tel|sms|callto|sip|skype|javascript|vbscript|livescript|data|blob|about|filesystem|view-source|jar|` +
		`intent|ms-[a-z]+|search-ms|vscode`
)

var (
	// active matches what a finder of links, a reader of HTML or one that decodes
	// character references may act on.
	active = regexp.MustCompile(`(?i)//[^/\s]|(?:^|[^a-z0-9])(?:` + webSchemes + `|` + otherSchemes + `):\S|www\.\S|` +
		`\S@[\pL\pN_]|[\pL\pM\pN_-]\.\pL[\pL\pM]|&(?:#|[a-z][a-z0-9]{0,31};|[lg]t)|\d\.\d+\.\d+\.\d`)
	// leadsAway matches addresses for people, and not every name with a dot in it.
	leadsAway = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^/\s]|^//[^/\s]*\.|(?:^|[^a-z0-9])(?:https?|` + otherSchemes + `):[^/\s]|` +
		`www\.[^.\s]|\S@[^\s@]*\.\pL\pL|^[^\s/]*\.(?:com|org|net|edu|gov|mil|int|info|biz|app|dev|example|рф)(?:[/:?#]|$)`)
	schemeStart = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	hostEnd     = regexp.MustCompile(`[/:?]`)
)

// isActive reports whether a word is active to those who find links in text.
func isActive(word []byte) bool {
	return bytes.ContainsAny(word, `.:@/&`) && matches(active, word)
}

// withoutBackslashes is how readers of Markdown may see a word.
// matches reports whether a pattern matches a word, as it is or as readers of Markdown
// see it: they remove some of its backslashes.
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

// wordEnd returns the length of the word that b begins with; 0 if it begins with
// what is between words.
func wordEnd(b []byte) int { return indexSign(b, 0, " \t\n<>\"`|[](){}*,='!^~") }

// addressEnd returns the end of the address whose first n bytes are a word.
func addressEnd(b []byte, n int) int { return indexSign(b[:min(len(b), maxAddress)], n, " \t\n<>\"`|") }

// indexSign returns the place from n on of one of some signs, or of one outside ASCII that
// is neither letter nor number.
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

// trimAddress removes punctuation from the end that belongs to the sentence, and
// brackets that are not opened in the address.
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

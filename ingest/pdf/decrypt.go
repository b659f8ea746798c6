package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"regexp"
	"strconv"
	"strings"
)

var (
	aes256Entry  = regexp.MustCompile(`/CFM[ \t\r\n]*/AESV3\b`)
	encryptRef   = regexp.MustCompile(`/Encrypt[ \t\r\n]+(\d{1,7})[ \t\r\n]+(\d{1,5})[ \t\r\n]+R`)
	xrefStream   = regexp.MustCompile(`/Type[ \t\r\n]*/XRef\b`)
	directLength = regexp.MustCompile(`/Length[ \t\r\n]+(\d{1,10})(?:[ \t\r\n]*[/>]|[ \t\r\n]+[^\d \t\r\n])`)
)

// decryptAES256 decrypts files encrypted with AES-256 (PDF 2.0, 7.6.4,
// revision 6, and revision 5 before it) that need no password for reading, which
// the library cannot. The file has one key, so streams and strings are decrypted in
// place and the encryption is removed from the trailer. Other files are not changed.
func decryptAES256(data []byte) error {
	refs := encryptRef.FindAllSubmatch(data, -1)
	if refs == nil || !aes256Entry.Match(data) {
		return nil
	}
	ref := refs[len(refs)-1]
	object := regexp.MustCompile(`(?:^|[\s>])` + string(ref[1]) + `[ \t\r\n]+` + string(ref[2]) + `[ \t\r\n]+obj\b`)
	at := object.FindIndex(data)
	if at == nil {
		return nil
	}
	entries := dictionary(data[at[1]:])
	user, wrapped := entries["U"].str, entries["UE"].str
	revision := entries["R"].num
	if len(user) < 48 || len(wrapped) < 32 || revision != 5 && revision != 6 {
		return nil
	}
	validation, keySalt := []byte(user[32:40]), []byte(user[40:48])
	if string(hashPassword(validation, revision)) != user[:32] {
		return ErrEncrypted
	}
	block, err := aes.NewCipher(hashPassword(keySalt, revision))
	if err != nil {
		return err
	}
	key := make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(key, []byte(wrapped[:32]))
	if block, err = aes.NewCipher(key); err != nil {
		return err
	}
	for _, o := range objectsIn(data) {
		dictionary, stream := streamOf(data, o)
		if stream == nil {
			dictionary, _, _ = bytes.Cut(data[o.start:o.end], []byte("stream"))
		}
		decryptStrings(dictionary, block)
		if plain := decrypted(stream, block); plain != nil {
			replace(stream, plain)
		}
	}
	for _, m := range encryptRef.FindAllIndex(data, -1) {
		copy(data[m[0]:], "/Decrypt") // as long as the word it replaces
	}
	return nil
}

// decryptStrings decrypts the strings of an object in place.
func decryptStrings(object []byte, block cipher.Block) {
	for at := 0; at < len(object); at++ {
		l := lexer{src: object, pos: at}
		switch c := object[at]; {
		case c == '<' && at+1 < len(object) && object[at+1] == '<':
			at++
			continue
		case c != '(' && c != '<':
			continue
		}
		value, _ := l.value(0)
		if plain := decrypted([]byte(value.str), block); plain != nil {
			text := literals.Replace(string(plain))
			if len(text)+2 > l.pos-at { // more of it is escaped than before: it is lost
				text = ""
			}
			replace(object[at:l.pos], []byte("("+text+")"))
		}
		at = l.pos - 1
	}
}

// literals escapes what is not itself in a string.
var literals = strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`, "\r", `\r`)

// dictionary returns the outermost entries of the dictionary at the start of src.
func dictionary(src []byte) map[string]operand {
	out := make(map[string]operand)
	l := lexer{src: src[:min(len(src), 16<<10)]}
	if l.space(); l.pos < len(l.src) {
		dict, _ := l.value(0)
		for i := 0; i+1 < len(dict.items); i++ {
			if dict.items[i].kind == opName {
				out[dict.items[i].str] = dict.items[i+1]
			}
		}
	}
	return out
}

// hashPassword hashes the empty password with algorithm 2.B of the standard, or as
// revision 5 did.
func hashPassword(salt []byte, revision float64) []byte {
	sum := sha256.Sum256(salt)
	k := sum[:]
	if revision == 5 {
		return k
	}
	for i := 0; ; i++ {
		e := bytes.Repeat(k, 64)
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			panic("unreachable: a key of 16 bytes is refused: " + err.Error())
		}
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(e, e)
		mod := 0
		for _, b := range e[:16] {
			mod += int(b)
		}
		switch mod % 3 {
		case 0:
			s := sha256.Sum256(e)
			k = s[:]
		case 1:
			s := sha512.Sum384(e)
			k = s[:]
		default:
			s := sha512.Sum512(e)
			k = s[:]
		}
		if i >= 63 && int(e[len(e)-1]) <= i-31 {
			return k[:32]
		}
	}
}

// streamOf returns the dictionary and the stream of an object; nil for none.
func streamOf(data []byte, o object) (dictionary, stream []byte) {
	body := data[o.start:o.end]
	at := bytes.Index(body, []byte("stream"))
	if at < 0 || xrefStream.Match(body[:at]) {
		return nil, nil
	}
	start := o.start + at + len("stream")
	if bytes.HasPrefix(data[start:], []byte("\r\n")) {
		start++
	}
	start = min(start+1, len(data))
	length := max(bytes.Index(data[start:], []byte("endstream")), 0)
	if d := directLength.FindSubmatch(body[:at]); d != nil {
		if n, _ := strconv.Atoi(string(d[1])); start+n <= len(data) {
			length = n
		}
	}
	return body[:at], data[start : start+length]
}

// replace replaces a stream by a shorter one and line ends, which filters ignore.
func replace(stream, by []byte) {
	for i := copy(stream, by); i < len(stream); i++ {
		stream[i] = '\n'
	}
}

// decrypted decrypts a stream or a string; nil if it is not encrypted.
func decrypted(data []byte, block cipher.Block) []byte {
	data = data[:len(data)-len(data)%aes.BlockSize] // a line end may be the last
	if len(data) < 2*aes.BlockSize {
		return nil
	}
	plain := bytes.Clone(data[aes.BlockSize:])
	cipher.NewCBCDecrypter(block, data[:aes.BlockSize]).CryptBlocks(plain, plain)
	if pad := int(plain[len(plain)-1]); pad <= aes.BlockSize {
		plain = plain[:len(plain)-pad]
	}
	return plain
}

// hexFilter matches the filter for hexadecimal digits, alone or before others.
var hexFilter = regexp.MustCompile(`/Filter\s*/ASCIIHexDecode|(/Filter\s*\[\s*)/ASCIIHexDecode`)

// decodeHex decodes the streams of hexadecimal digits in place, which the library
// cannot, and removes that filter.
func decodeHex(data []byte) {
	if !bytes.Contains(data, []byte("/ASCIIHexDecode")) || encryptEntry.Match(data) {
		return
	}
	for _, o := range objectsIn(data) {
		dictionary, stream := streamOf(data, o)
		if m := hexFilter.FindSubmatchIndex(dictionary); m != nil {
			digits := lexer{src: stream}
			replace(stream, []byte(digits.hex()))
			from := max(m[0], m[3]) // of an array, only the name is removed
			copy(dictionary[from:m[1]], bytes.Repeat([]byte(" "), m[1]-from))
		}
	}
}

package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	aes256Entry  = regexp.MustCompile(`/CFM[ \t\r\n]*/AESV3\b`)
	aes128Entry  = regexp.MustCompile(`/CFM[ \t\r\n]*/AESV2\b`)
	openMetadata = regexp.MustCompile(`/EncryptMetadata[ \t\r\n]+false`)
	fileID       = regexp.MustCompile(`/ID[ \t\r\n]*\[`)
	encryptRef   = regexp.MustCompile(`/Encrypt[ \t\r\n]*(?:<<|(\d{1,7})[ \t\r\n]+(\d{1,5})[ \t\r\n]+R)`)
	xrefStream   = regexp.MustCompile(`/Type[ \t\r\n]*/XRef\b`)
	directLength = regexp.MustCompile(`/Length[ \t\r\n]+(\d{1,10})(?:[ \t\r\n]*[/>]|[ \t\r\n]+[^\d \t\r\n])`)
)

// decrypt decrypts files that need no password for reading: AES-256 (PDF 2.0, 7.6.4, revisions 5
// and 6), AES-128 and RC4. The PDF library loses the end of the text of some of them. Streams and
// strings are decrypted in place, and the trailer's encryption entry is removed. decrypt returns
// the objects that become longer. It doesn't change other files.
func decrypt(data []byte) (longer []byte, err error) {
	refs := encryptRef.FindAllSubmatchIndex(data, -1)
	if refs == nil {
		return nil, nil
	}
	ref := refs[len(refs)-1]
	start := ref[1] - len("<<")
	if ref[2] > 0 {
		object := regexp.MustCompile(`(?:^|[\s>])` + string(data[ref[2]:ref[3]]) +
			`[ \t\r\n]+` + string(data[ref[4]:ref[5]]) + `[ \t\r\n]+obj\b`)
		at := object.FindIndex(data)
		if at == nil {
			return nil, nil
		}
		start = at[1]
	}
	opened := md5Opener
	if aes256Entry.Match(data) {
		opened = aes256Opener
	}
	l := lexer{src: data[start:min(start+16<<10, len(data))]}
	var dictionary operand
	if l.skipSpace(); l.pos < len(l.src) {
		dictionary, _ = l.value(0)
	}
	open, err := opened(data, dictionary.entries())
	if open == nil {
		return nil, err
	}
	for _, o := range objectsIn(data) {
		dictionary, stream := streamOf(data, o)
		if stream == nil {
			dictionary, _, _ = bytes.Cut(data[o.start:o.end], []byte("endobj"))
		}
		with := decryptStrings(dictionary, func(s []byte) []byte { return open(o, s) })
		if plain := open(o, stream); plain != nil {
			replaceStream(stream, plain)
		}
		if with != nil {
			longer = fmt.Appendf(longer, "\n%d %d obj%s%s", o.number, o.generation, with, data[o.start+len(dictionary):o.end])
		}
	}
	for _, m := range encryptRef.FindAllIndex(data, -1) {
		copy(data[m[0]:], "/Decrypt") // the same length as "/Encrypt"
	}
	return longer, nil
}

// An opener decrypts a stream or string of an object. It returns nil if s isn't encrypted.
type opener func(o object, s []byte) []byte

// aes256Opener returns the opener of a file encrypted with AES-256, or nil.
func aes256Opener(_ []byte, entries map[string]operand) (opener, error) {
	user, wrapped, revision := entries["U"].str, entries["UE"].str, entries["R"].num
	if len(user) < 48 || len(wrapped) < 32 || revision != 5 && revision != 6 {
		return nil, nil
	}
	if string(hashPassword([]byte(user[32:40]), revision)) != user[:32] {
		return nil, ErrEncrypted
	}
	key := make([]byte, 32)
	block := newAES(hashPassword([]byte(user[40:48]), revision))
	cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(key, []byte(wrapped[:32]))
	block = newAES(key)
	return func(_ object, s []byte) []byte { return decryptCBC(s, block) }, nil
}

// padding is the empty password (PDF 1.7, algorithm 2).
const padding = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08" +
	"\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

// md5Opener returns the opener of a file encrypted with RC4 or AES-128, whose keys are MD5 sums, or
// nil.
func md5Opener(data []byte, entries map[string]operand) (opener, error) {
	version, n := entries["V"].num, int(entries["Length"].num)/8
	switch {
	case version == 4 && entries["StmF"].str == entries["StrF"].str:
		n = 16
	case version == 1 || version == 2 && n == 0:
		n = 5
	case version != 2 || n < 5 || n > 16:
		return nil, nil
	}
	id := ""
	if m := fileID.FindIndex(data); m != nil {
		if list, _ := (&lexer{src: data[m[1]-1:]}).value(0); len(list.items) > 0 {
			id = list.items[0].str
		}
	}
	revision, user := entries["R"].num, entries["U"].str
	seed := append(binary.LittleEndian.AppendUint32([]byte(padding+entries["O"].str), uint32(int64(entries["P"].num))), id...)
	if revision > 3 && openMetadata.Match(data) {
		seed = append(seed, 0xff, 0xff, 0xff, 0xff)
	}
	sum := md5.Sum(seed)
	check := []byte(padding)
	if revision > 2 {
		for range 50 {
			sum = md5.Sum(sum[:n])
		}
		first := md5.Sum([]byte(padding + id))
		check = first[:]
	}
	key := sum[:n]
	for i := range byte(20) {
		mixed := bytes.Clone(key)
		for at := range mixed {
			mixed[at] ^= i
		}
		if i == 0 || revision > 2 {
			check = rc4Crypt(mixed, check)
		}
	}
	if !strings.HasPrefix(user, string(check)) {
		return nil, ErrEncrypted
	}
	byAES := version == 4 && aes128Entry.Match(data)
	return func(o object, s []byte) []byte {
		number, generation := o.number, o.generation
		own := append(bytes.Clone(key), byte(number), byte(number>>8), byte(number>>16), byte(generation), byte(generation>>8))
		if !byAES {
			sum := md5.Sum(own)
			return rc4Crypt(sum[:min(n+5, 16)], s)
		}
		sum := md5.Sum(append(own, "sAlT"...))
		return decryptCBC(s, newAES(sum[:]))
	}, nil
}

// newAES returns the cipher of a key of 16 or 32 bytes.
func newAES(key []byte) cipher.Block {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(fmt.Sprintf("unreachable: a key of %d bytes is refused: %v", len(key), err))
	}
	return block
}

// rc4Crypt encrypts or decrypts with RC4.
func rc4Crypt(key, s []byte) []byte {
	out := bytes.Clone(s)
	if c, err := rc4.NewCipher(key); err == nil { // fails only for an empty key
		c.XORKeyStream(out, out)
	}
	return out
}

// decryptStrings decrypts the strings of an object in place, or returns a longer object.
func decryptStrings(object []byte, open func(s []byte) []byte) []byte {
	var out []byte
	done := 0
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
		if plain := open([]byte(value.str)); plain != nil {
			text := "(" + literals.Replace(string(plain)) + ")"
			out = append(append(out, object[done:at]...), text...)
			out = append(out, bytes.Repeat([]byte(" "), max(l.pos-at-len(text), 0))...)
			done = l.pos
		}
		at = l.pos - 1
	}
	if out = append(out, object[done:]...); len(out) > len(object) {
		return out
	}
	copy(object, out)
	return nil
}

// literals escapes the special characters of a string.
var literals = strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`, "\r", `\r`)

// hashPassword hashes the empty password with algorithm 2.B of the standard, or as in revision 5.
func hashPassword(salt []byte, revision float64) []byte {
	sum := sha256.Sum256(salt)
	k := sum[:]
	if revision == 5 {
		return k
	}
	for i := 0; ; i++ {
		e := bytes.Repeat(k, 64)
		cipher.NewCBCEncrypter(newAES(k[:16]), k[16:32]).CryptBlocks(e, e)
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

// streamOf returns the dictionary and the stream of an object, or nil.
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

// replaceStream overwrites a stream with a shorter one, padded with line ends, which filters
// ignore.
func replaceStream(stream, by []byte) {
	for i := copy(stream, by); i < len(stream); i++ {
		stream[i] = '\n'
	}
}

// decryptCBC decrypts a stream or a string. It returns nil if data isn't encrypted.
func decryptCBC(data []byte, block cipher.Block) []byte {
	data = data[:len(data)-len(data)%aes.BlockSize] // the last byte may be a line end
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

// hexFilter matches the filter ASCIIHexDecode, alone or as the first of several.
var hexFilter = regexp.MustCompile(`/Filter\s*/ASCIIHexDecode|(/Filter\s*\[\s*)/ASCIIHexDecode`)

// decodeHex decodes hexadecimal streams in place, which the library can't, and removes their filter
// entry.
func decodeHex(data []byte) {
	if !bytes.Contains(data, []byte("/ASCIIHexDecode")) || encryptRef.Match(data) {
		return
	}
	for _, o := range objectsIn(data) {
		dictionary, stream := streamOf(data, o)
		if m := hexFilter.FindSubmatchIndex(dictionary); m != nil {
			digits := lexer{src: stream}
			replaceStream(stream, []byte(digits.hex()))
			from := max(m[0], m[3]) // remove only the name from an array
			copy(dictionary[from:m[1]], bytes.Repeat([]byte(" "), m[1]-from))
		}
	}
}

package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"errors"
	"regexp"
	"strconv"
)

var (
	aes256Entry  = regexp.MustCompile(`/CFM[ \t\r\n]*/AESV3\b`)
	encryptRef   = regexp.MustCompile(`/Encrypt[ \t\r\n]+(\d{1,7})[ \t\r\n]+(\d{1,5})[ \t\r\n]+R`)
	xrefStream   = regexp.MustCompile(`/Type[ \t\r\n]*/XRef\b`)
	directLength = regexp.MustCompile(`/Length[ \t\r\n]+(\d{1,10})(?:[ \t\r\n]*[/>]|[ \t\r\n]+[^\d \t\r\n])`)
)

// decryptAES256 decrypts files encrypted with AES-256 (PDF 2.0, 7.6.4,
// revisions 5 and 6) that need no password for reading, which the library
// cannot. The file has one key, so streams are decrypted in place and the
// encryption is removed from the trailer; strings stay encrypted. ok is false
// for other files, which are not changed.
func decryptAES256(data []byte) (ok bool, err error) {
	refs := encryptRef.FindAllSubmatch(data, -1)
	if refs == nil || !aes256Entry.Match(data) {
		return false, nil
	}
	ref := refs[len(refs)-1]
	object := regexp.MustCompile(`(?:^|[\s>])` + string(ref[1]) + `[ \t\r\n]+` + string(ref[2]) + `[ \t\r\n]+obj\b`)
	at := object.FindIndex(data)
	if at == nil {
		return false, nil
	}
	entries := dictionary(data[at[1]:])
	user, wrapped := entries["U"].str, entries["UE"].str
	revision := int(entries["R"].num)
	if len(user) < 48 || len(wrapped) < 32 || revision != 5 && revision != 6 {
		return false, nil
	}
	validation, keySalt := []byte(user[32:40]), []byte(user[40:48])
	if subtle.ConstantTimeCompare(hashR(revision, validation), []byte(user[:32])) != 1 {
		return false, ErrEncrypted
	}
	block, err := aes.NewCipher(hashR(revision, keySalt))
	if err != nil {
		return false, err
	}
	key := make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(key, []byte(wrapped[:32]))
	if err := decryptStreams(data, key); err != nil {
		return false, err
	}
	for _, m := range encryptRef.FindAllIndex(data, -1) {
		copy(data[m[0]:], "/Decrypt") // as long as the word it replaces
	}
	return true, nil
}

// dictionary returns the outermost entries of the dictionary at the start of
// src.
func dictionary(src []byte) map[string]operand {
	l := lexer{src: src[:min(len(src), 16<<10)]}
	l.space()
	if !bytes.HasPrefix(l.src[l.pos:], []byte("<<")) {
		return nil
	}
	l.pos += 2
	items := l.until(">>", 0)
	out := make(map[string]operand)
	for i := 0; i+1 < len(items); i++ {
		if items[i].kind == opName {
			out[items[i].str] = items[i+1]
		}
	}
	return out
}

// hashR hashes the empty password: with SHA-256 in revision 5, with algorithm
// 2.B of the standard in revision 6.
func hashR(revision int, salt []byte) []byte {
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

// decryptStreams decrypts every stream in place and fills the remaining bytes
// with line ends, which filters ignore.
func decryptStreams(data, key []byte) error {
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	found := objectStart.FindAllIndex(data, maxObjects)
	if len(found) == 0 {
		return errors.New("it is damaged: it has no objects")
	}
	for i, m := range found {
		end := len(data)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		body := data[m[1]:end]
		at := bytes.Index(body, []byte("stream"))
		if at < 0 || xrefStream.Match(body[:at]) {
			continue
		}
		length := -1
		if d := directLength.FindSubmatch(body[:at]); d != nil {
			length, _ = strconv.Atoi(string(d[1]))
		}
		start := m[1] + at + len("stream")
		if bytes.HasPrefix(data[start:], []byte("\r\n")) {
			start += 2
		} else {
			start++
		}
		if length < 0 || start+length > len(data) {
			if length = bytes.Index(data[min(start, len(data)):], []byte("endstream")); length < 0 {
				continue
			}
			length -= length % aes.BlockSize // a line end precedes the word
		}
		stream := data[start : start+length]
		if len(stream) < 2*aes.BlockSize || len(stream)%aes.BlockSize != 0 {
			continue
		}
		iv := bytes.Clone(stream[:aes.BlockSize])
		plain := stream[aes.BlockSize:]
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, plain)
		n := len(plain)
		if pad := int(plain[n-1]); pad <= aes.BlockSize {
			n -= pad
		}
		copy(stream, plain[:n])
		for j := n; j < len(stream); j++ {
			stream[j] = '\n'
		}
	}
	return nil
}

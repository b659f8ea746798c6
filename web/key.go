package web

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
)

// A key is keyPrefix, 256 random bits and their CRC-32, both in base 62: "ibid_"
// and 49 letters and digits. The prefix lets secret scanners find leaked keys;
// the checksum reveals mistyped ones without a server.
const (
	keyPrefix    = "ibid_"
	secretDigits = 43 // of 256 bits
	sumDigits    = 6  // of 32 bits
)

// NewKey makes a key. Only its digest is stored.
func NewKey() (key string, digest [sha256.Size]byte) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	digits := base62(new(big.Int).SetBytes(secret[:]), secretDigits)
	key = keyPrefix + digits + keySum(digits)
	return key, sha256.Sum256([]byte(key))
}

func keySum(digits string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(digits)))), sumDigits)
}

func base62(n *big.Int, digits int) string {
	text := n.Text(62)
	return strings.Repeat("0", digits-len(text)) + text
}

var errNoKey = errors.New(`it does not begin with "` + keyPrefix + `", is incomplete, or has a typing mistake`)

// checkKey reports whether key has the form of a key.
func checkKey(key string) error {
	digits, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || len(digits) != secretDigits+sumDigits || keySum(digits[:secretDigits]) != digits[secretDigits:] {
		return errNoKey
	}
	return nil
}

package web

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
)

// A key is keyPrefix, 256 random bits and their CRC-32, both in digits of base
// 62: "ibid_" and 49 letters and digits. The prefix lets scanners for secrets
// find keys that lie about; the checksum tells them, and people, a key from
// what only looks like one, without asking a server.
const (
	keyPrefix    = "ibid_"
	secretDigits = 43 // of 256 bits
	sumDigits    = 6  // of 32 bits
)

// NewKey makes a key. It is shown once; of it only the digest is kept.
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

// errNoKey is about what cannot be a key, whatever keys there are.
var errNoKey = errors.New(`it does not begin with "` + keyPrefix + `", is not whole, or has a typing mistake`)

// checkKey tells a key from what only looks like one.
func checkKey(key string) error {
	digits, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || len(digits) != secretDigits+sumDigits || keySum(digits[:secretDigits]) != digits[secretDigits:] {
		return errNoKey
	}
	return nil
}

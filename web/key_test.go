package web

import (
	"crypto/sha256"
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestNewKey(t *testing.T) {
	form := regexp.MustCompile(`^ibid_[0-9A-Za-z]{49}$`)
	seen := map[string]bool{}
	for range 1000 {
		key, digest := NewKey()
		if !form.MatchString(key) || seen[key] || digest != sha256.Sum256([]byte(key)) || checkKey(key) != nil {
			t.Fatalf("%q is not a new key: %v", key, checkKey(key))
		}
		seen[key] = true
	}
	key, _ := NewKey()
	for at := range len(key) { // every typing mistake of one character is detected
		other := "0"
		if key[at] == '0' {
			other = "1"
		}
		if wrong := key[:at] + other + key[at+1:]; !errors.Is(checkKey(wrong), errNoKey) {
			t.Errorf("%q is accepted as a key like %q", wrong, key)
		}
	}
	for _, wrong := range []string{"", "ibid_", key[:len(key)-1], key + "0", " " + key, strings.ToUpper(key), strings.ToLower(key),
		strings.TrimPrefix(key, "ibid_"), "\x00" + key[1:]} {
		if checkKey(wrong) == nil {
			t.Errorf("%q is accepted as a key", wrong)
		}
	}
}

package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoreURLKeepsSecrets: whatever is wrong with an address, its password is
// not in the words about it.
func TestStoreURLKeepsSecrets(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://ibid:Tr0ub4dor@db.example.com/library",
		"postgres://ibid:Tr0ub4dor@db.example.com:port/library",
		"postgres://ibid:Tr0ub4dor/more@db.example.com/library",
		"postgres://ibid:Tr0ub4dor#more@db.example.com/library",
		"postgres://ibid:Tr0ub4dor%zz@db.example.com/library",
		"postgres://db.example.com/library?user=ibid&password=Tr0ub4dor",
		"postgres://db.example.com/library?sslpassword=Tr0ub4dor&sslmode=require",
		"weaviate://db.example.com:8080?apikey=Tr0ub4dor",
		"weaviate://Tr0ub4dor@db.example.com:8080",
		"other://ibid:Tr0ub4dor@db.example.com",
		"ibid:Tr0ub4dor@db.example.com",
		"postgres://ibid:Tr0ub4dor@",
		"postgres://ibid:1234/Tr0ub4dor@db.example.com/library",
		"postgres://ibid:1234#Tr0ub4dor@db.example.com/library",
		"postgres://ibid:1234?Tr0ub4dor@db.example.com/library",
		"weaviate://1234/Tr0ub4dor@db.example.com:8080",
		"postgres://ibid:Tr0ub4dor\x7f@db.example.com/library",
	} {
		var u storeURL
		if err := u.UnmarshalText([]byte(address)); err != nil && strings.Contains(err.Error(), "Tr0ub4dor") {
			t.Errorf("%s: %v", address, err)
		}
		if shown := u.String(); strings.Contains(shown, "Tr0ub4dor") {
			t.Errorf("%s is shown as %s", address, shown)
		}
	}
	shown := storeURL{url: &url.URL{Scheme: "postgres", User: url.UserPassword("ibid", "x"), Host: "db:5433", Path: "/library",
		RawQuery: "sslmode=require&password=y"}}.String()
	if shown != "postgres://ibid@db:5433/library" {
		t.Errorf("shown as %s", shown)
	}
}

func TestStorePassword(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte("of the/file\n"), 0o600))
	for _, test := range []struct{ address, file, environment, want string }{
		{"postgres://ibid@db/library", "", "", ""},
		{"postgres://ibid@db/library", "", "variable", "variable"},
		{"postgres://ibid:own@db/library", "", "variable", "own"},
		{"postgres://ibid:own@db/library", file, "variable", "of the/file"},
	} {
		parsed, err := url.Parse(test.address)
		must(t, err)
		before := parsed.String()
		address, err := placeConfig{Store: storeURL{url: parsed}, StorePasswordFile: test.file}.address(test.environment)
		must(t, err)
		got, err := url.Parse(address)
		must(t, err)
		if password, _ := got.User.Password(); password != test.want {
			t.Errorf("%s, file %q, variable %q: %q", test.address, test.file, test.environment, password)
		}
		if parsed.String() != before {
			t.Errorf("the address was changed to %s", parsed)
		}
	}
	if _, err := (placeConfig{Store: storeURL{url: &url.URL{}}, StorePasswordFile: file + "2"}).address("x"); err == nil {
		t.Error("a file that is not there gave a password")
	}
}

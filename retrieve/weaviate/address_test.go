package weaviate

import (
	"slices"
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"weaviate://db", "http db:8080 db:50051  Ibid 0 0"},
		{"weaviate://db:80/?grpc=rpc:90", "http db:80 rpc:90  Ibid 0 0"},
		{"weaviate://:word@db:80?grpc=rpc&scheme=https&prefix=Team2&shards=3&replicas=2", "https db:80 rpc:50051 word Team2 3 2"},
		{"weaviate://word@[::1]:80", "http [::1]:80 [::1]:50051 word Ibid 0 0"},
		{"weaviate://a:1?grpc=a:2&nodes=b:3/4,c", "http a:1,b:3,c:8080 a:2,b:4,c:50051  Ibid 0 0"},
	} {
		a, err := parseAddress(c.url)
		got := strings.Join([]string{a.scheme, strings.Join(a.hosts, ","), strings.Join(a.grpc, ","), a.key, a.prefix, string(rune('0' + a.shards)), string(rune('0' + a.replicas))}, " ")
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.url, got, err, c.want)
		}
	}
	for url, says := range map[string]string{
		"weaviate://":                          "is not weaviate://",
		"weaviate://x:s3cret@":                 "is not weaviate://",
		"http://x:s3cret@db":                   "is not weaviate://",
		"weaviate://x:s3cret@db/library":       "is not weaviate://",
		"weaviate://1234/s3cret@db:8080":       "is not weaviate://",
		"weaviate://s3cret/more@db:8080":       "is not weaviate://",
		"weaviate://x:1234#s3cret@db:8080":     "is not weaviate://",
		"weaviate://x:1234?s3cret@db:8080":     "is not weaviate://",
		"weaviate://x:s3cret\x7f@db":           "cannot be read",
		"weaviate://x:s3cret@db?shards=0":      "shards=0",
		"weaviate://x:s3cret@db?replicas=many": "replicas=many",
		"weaviate://x:s3cret@db?prefix=small":  `prefix "small"`,
		"weaviate://x:s3cret@db?scheme=ftp":    `scheme "ftp"`,
		"weaviate://x:s3cret@db?shard=3":       `no parameter "shard"`,
	} {
		if _, err := parseAddress(url); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", url, err, says)
		}
	}
}

func TestWord(t *testing.T) {
	seen := make(map[string]string)
	for _, term := range []string{"boat", "Boat", "BOAT", "a b", "a\tb", "a\u2003b", "", "_", "é", "e\u0301", "日本", strings.Repeat("x", 300), strings.Repeat("x", 301), strings.Repeat("é", 300), "_Ym9hdA", "\x00", "\xff"} {
		w := word(term)
		if fields := strings.Fields(w); len(fields) != 1 || fields[0] != w || len(w) > maxKey {
			t.Errorf("the word of %.20q is %q", term, w)
		}
		if other, taken := seen[w]; taken {
			t.Errorf("%.20q and %.20q have one word", term, other)
		}
		seen[w] = term
	}
}

func TestSplit(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat("x", partBytes), strings.Repeat("é", partBytes), strings.Repeat("日", partBytes)} {
		starts := split(text)
		var b strings.Builder
		for i, start := range starts {
			end := len(text)
			if i+1 < len(starts) {
				end = starts[i+1]
			}
			if part := text[start:end]; len(part) == 0 || len(part) > partBytes || strings.ToValidUTF8(part, "") != part {
				t.Fatalf("part %d of %d has %d bytes", i, len(starts), len(part))
			}
			b.WriteString(text[start:end])
		}
		if b.String() != text || !slices.IsSorted(starts) {
			t.Errorf("%d bytes came out as %d", len(text), b.Len())
		}
	}
}

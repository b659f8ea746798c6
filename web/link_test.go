package web

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

// FuzzLink checks that a link leads the router to the same document and place.
func FuzzLink(f *testing.F) {
	for _, id := range []string{"a/b.md", "a/b c#d?e%f&g;h+i=j.txt", `a/<script>"'.md`, "a/日本/né.pdf", "a/..b", "a/%2e%2e/%2F", "a/b\\c",
		"a//b", "a/\x1b[31m", "a/b\u202e", "a/:x/*y"} {
		f.Add(id, 3, 9)
	}
	var seen string
	var place textRange
	e := newHandler(f, func(o *Options) { o.Library = probe{&seen} })
	f.Fuzz(func(t *testing.T, id string, start, end int) {
		link := Link("http://127.0.0.1:8080/", id, start, end)
		u, err := url.Parse(link)
		if err != nil {
			t.Fatalf("Link(%q) = %q: %v", id, link, err)
		}
		if u.Host != "127.0.0.1:8080" || !strings.HasPrefix(u.Path, "/documents/") {
			t.Fatalf("Link(%q) = %q leads elsewhere", id, link)
		}
		if strings.ContainsAny(link, "\"'<>\\^`{|} \x00\n\r\t") && !strings.ContainsAny(link, "'") {
			t.Fatalf("Link(%q) = %q is not escaped", id, link)
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + u.RequestURI() + " HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")))
		if err != nil {
			t.Fatalf("Link(%q) = %q cannot be requested: %v", id, link, err)
		}
		seen = ""
		e.ServeHTTP(httptest.NewRecorder(), r)
		if seen != id {
			t.Fatalf("Link(%q) = %q requests %q", id, link, seen)
		}
		if start < 0 {
			return
		}
		if _, place, err = parseLink(u, "/documents/"); err != nil {
			t.Fatalf("Link(%q, %d, %d) = %q: %v", id, start, end, link, err)
		}
		if want := (textRange{Start: start, End: end}); end > start && place != want {
			t.Fatalf("Link(%q, %d, %d) = %q gives %+v", id, start, end, link, place)
		}
	})
}

// probe is a library that records the id of the last request.
type probe struct{ seen *string }

func (p probe) Document(_ context.Context, id string) (*ingest.Document, error) {
	*p.seen = id
	return &ingest.Document{ID: id, Text: "text"}, nil
}

func (p probe) Documents(context.Context, retrieve.Filter) ([]retrieve.DocumentInfo, error) {
	return nil, nil
}

func (p probe) Holds(context.Context, retrieve.Filter) (bool, error) { return false, nil }

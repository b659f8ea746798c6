package site

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"ibid/ingest"
	"ibid/ingest/child"
)

// childRole is the role of children that look for addresses in pages and sitemaps.
const childRole = "links"

// RunChild is [ingest.RunChild] for programs that also crawl sites. They call it
// instead, before anything else.
func RunChild(getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) (code int, ran bool) {
	if getenv(child.Variable) == childRole {
		return child.Run(getenv, stdin, stdout, stderr, findLinks)
	}
	return ingest.RunChild(getenv, stdin, stdout, stderr)
}

// A linkRequest is a request to a child, which goes with a body. The reply has
// an address a line, after a word for its kind.
type linkRequest struct{ Address, Ending string }

type linkReply struct{ More, Large bool }

// findLinks is linksIn as a [child.Handler].
func findLinks(message json.RawMessage, body []byte) (any, string) {
	var request linkRequest
	err := json.Unmarshal(message, &request)
	var at *url.URL
	if err == nil {
		at, err = url.Parse(request.Address)
	}
	if err != nil {
		panic(fmt.Sprintf("unreachable: a request names an address: %v", err))
	}
	f := linksIn(at, request.Ending, body)
	var lines strings.Builder
	for _, u := range f.links {
		fmt.Fprintln(&lines, "link", u)
	}
	for _, u := range f.sitemaps {
		fmt.Fprintln(&lines, "sitemap", u)
	}
	if f.twin != nil {
		fmt.Fprintln(&lines, "twin", f.twin)
	}
	return linkReply{f.more, f.large}, lines.String()
}

// linksIn is the function of that name in a child.
func (c *crawl) linksIn(ctx context.Context, at *url.URL, ending string, body []byte) (f found, err error) {
	if ending == ".pdf" {
		return f, nil
	}
	var reply linkReply
	lines, err := c.children.Ask(ctx, "page", linkRequest{at.String(), ending}, body, &reply)
	if err != nil {
		return f, err
	}
	f.more, f.large = reply.More, reply.Large
	for line := range strings.Lines(lines) {
		kind, address, _ := strings.Cut(line, " ")
		u := resolve(at, address)
		switch {
		case u == nil: // its usual form is too long
		case kind == "link":
			f.links = append(f.links, u)
		case kind == "sitemap":
			f.sitemaps = append(f.sitemaps, u)
		default:
			f.twin = u
		}
	}
	return f, nil
}

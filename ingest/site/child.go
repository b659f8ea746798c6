package site

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"ibid/ingest"
	"ibid/ingest/child"
)

// childRole is the role of child processes that find addresses in pages and sitemaps.
const childRole = "links"

// RunChild is like [ingest.RunChild] for programs that also crawl sites. They call it first,
// instead of ingest.RunChild.
func RunChild(getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) (code int, ran bool) {
	if getenv(child.Variable) == childRole {
		return child.Run(getenv, stdin, stdout, stderr, findLinks)
	}
	return ingest.RunChild(getenv, stdin, stdout, stderr)
}

// A linkRequest is a request to a child process. The body follows it.
type linkRequest struct{ At, Ending string }

// findLinks is the [child.Handler] for linksIn.
func findLinks(message json.RawMessage, body []byte) (any, string) {
	var request linkRequest
	err := json.Unmarshal(message, &request)
	at, failed := url.Parse(request.At)
	if err = cmp.Or(err, failed); err != nil {
		panic(fmt.Sprintf("unreachable: a request names an address: %v", err))
	}
	return linksIn(at, request.Ending, body), ""
}

// linksIn calls the function linksIn in a child process.
func (c *crawl) linksIn(ctx context.Context, at *url.URL, ending string, body []byte) (f foundLinks, err error) {
	if ending != ".pdf" {
		_, err = c.children.Ask(ctx, "page", linkRequest{at.String(), ending}, body, &f)
	}
	return f, err
}

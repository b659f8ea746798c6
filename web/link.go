package web

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Link gives the address of the viewer page that shows a document with the
// bytes from start to end of its text marked, below base ("http://host:port",
// a path prefix allowed). When start and end are no range, the link leads to
// the document without a mark.
func Link(base, document string, start, end int) string {
	segments := strings.Split(document, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	link := strings.TrimRight(base, "/") + "/documents/" + strings.Join(segments, "/")
	if start >= 0 && end > start {
		link += fmt.Sprintf("?start=%d&end=%d#quote", start, end)
	}
	return link
}

// linked gives back what [Link] put into an address: the document's id from
// the escaped path behind the route's own part, and the range from the query.
func linked(u *url.URL, route string) (document string, r textRange, err error) {
	document, err = url.PathUnescape(strings.TrimPrefix(u.EscapedPath(), route))
	if err != nil {
		return "", textRange{}, invalid("bad_document", "the address does not spell a document: %v", err)
	}
	q := u.Query()
	for _, p := range []struct {
		name string
		to   *int
	}{{"start", &r.Start}, {"end", &r.End}, {"at", &r.At}} {
		v := q.Get(p.name)
		if v == "" {
			continue
		}
		if *p.to, err = strconv.Atoi(v); err != nil || *p.to < 0 {
			return "", textRange{}, invalid("bad_range", "%s is %.40q: give a byte offset, 0 or more", p.name, v)
		}
	}
	return document, r, nil
}

// A textRange is the part of a document's text that an address asks for, in bytes.
type textRange struct {
	Start, End int // to mark; nothing when End is not behind Start
	At         int // around which to show, when there is nothing to mark
}

package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
)

// Every relative link and picture of every page leads to a file in the
// repository, and every anchor to a heading. Links to other servers are not checked.
func TestLinks(t *testing.T) {
	t.Parallel()
	tracked := trackedFiles(t)
	files := make(map[string]bool) // files, and the folders they are in
	pages := make(map[string]outline)
	for _, name := range tracked {
		for at := name; at != "."; at = path.Dir(at) {
			files[at] = true
		}
		if path.Ext(name) == ".md" && !strings.Contains(name, "/testdata/") { // which are no pages
			data, err := os.ReadFile(filepath.Join(moduleRoot(t), filepath.FromSlash(name)))
			must(t, err)
			pages[name] = outlineOf(data)
		}
	}
	checked, anchors := 0, 0
	for name, page := range pages {
		for _, link := range page.links {
			ours, fault := linkFault(name, link, files, pages)
			if fault != "" {
				t.Errorf("%s: %s: %s", name, link, fault)
			}
			if ours {
				checked++
			}
			if ours && strings.Contains(link, "#") {
				anchors++
			}
		}
	}
	t.Logf("figure: %d relative links and pictures of %d pages, %d of them with an anchor", checked, len(pages), anchors)
	if checked < 50 || anchors < 9 {
		t.Errorf("only %d links and %d anchors: the search for them is broken", checked, anchors)
	}
}

// trackedFiles returns the paths of the files in git, from the root of the module.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = moduleRoot(t)
	out, err := list.Output()
	if err != nil {
		t.Skipf("this is no clone, or git is not here: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// linkFault returns the fault of a link of a page, if any, and whether it leads
// into the repository.
func linkFault(page, link string, files map[string]bool, pages map[string]outline) (ours bool, fault string) {
	u, err := url.Parse(link)
	if err != nil {
		return true, err.Error()
	}
	if u.Scheme != "" || u.Host != "" {
		return false, ""
	}
	to := page
	switch {
	case strings.HasPrefix(u.Path, "/"):
		to = strings.TrimPrefix(path.Clean(u.Path), "/")
	case u.Path != "":
		to = path.Join(path.Dir(page), u.Path)
	}
	switch {
	case to == ".." || strings.HasPrefix(to, "../"):
		return true, "outside the repository"
	case !files[to]:
		return true, "git tracks no such file"
	}
	if strings.Contains(link, "#") && !pages[to].anchors[u.Fragment] {
		return true, "no such heading"
	}
	return true, ""
}

// An outline has the links of a page and its anchors.
type outline struct {
	links   []string
	anchors map[string]bool
}

func outlineOf(source []byte) outline {
	o := outline{anchors: make(map[string]bool)}
	var raw bytes.Buffer
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			slug := slugOf(plainText(n, source))
			unique := slug
			for i := 1; o.anchors[unique]; i++ {
				unique = fmt.Sprintf("%s-%d", slug, i)
			}
			o.anchors[unique] = true
		case *ast.Link:
			o.links = append(o.links, string(n.Destination))
		case *ast.Image:
			o.links = append(o.links, string(n.Destination))
		case *ast.RawHTML:
			o.markup(string(n.Segments.Value(source)))
		case *ast.HTMLBlock:
			raw.Reset()
			raw.Write(n.Lines().Value(source))
			if n.HasClosure() {
				raw.Write(n.ClosureLine.Value(source))
			}
			o.markup(raw.String())
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		panic(err) // no step of the walk returns one
	}
	return o
}

// markup adds the links and anchors of HTML in a page.
func (o *outline) markup(s string) {
	for z := html.NewTokenizer(strings.NewReader(s)); z.Next() != html.ErrorToken; {
		for _, a := range z.Token().Attr {
			switch a.Key {
			case "src", "href":
				o.links = append(o.links, a.Val)
			case "srcset":
				for candidate := range strings.SplitSeq(a.Val, ",") {
					address, _, _ := strings.Cut(strings.TrimSpace(candidate), " ")
					o.links = append(o.links, address)
				}
			case "id", "name":
				o.anchors[a.Val] = true
			}
		}
	}
}

// plainText returns a heading without its markup.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(source))
		case *ast.String:
			b.Write(c.Value)
		case *ast.RawHTML:
		default:
			b.WriteString(plainText(c, source))
		}
	}
	return b.String()
}

// slugOf is the anchor that GitHub gives a heading: in lower case, letters,
// marks, digits, hyphens and underscores as they are, each space a hyphen, and
// nothing of the rest.
func slugOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
)

// Every relative link and picture of every page leads to a file that is in the
// repository, and every anchor to a heading of the page it names. What other
// servers have is not asked for.
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
			if err != nil {
				t.Fatal(err)
			}
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

// What is dead is found, and what is alive is let be.
func TestLinkFaults(t *testing.T) {
	t.Parallel()
	const page = "# Café & co\n\n## `ibid ask`: _how_ to\n\n## Twice\n\n## Twice\n\n## Twice-1\n\n## A [link](b.md), 1.5 %\n\nSet\n---\n\n" +
		"<a id=\"Here\"></a><a name=\"there\"></a> <img src=\"pictures/a.png\">\n\n" +
		"<picture>\n  <source srcset=\"pictures/a.png 1x, pictures/b.png 2x\">\n  <img src=\"pictures/none.png\">\n</picture>\n\n" +
		"[ref][1] `[code](none.md)`\n\n```\n[fence](none.md)\n# No heading\n```\n\n[1]: sub/c.md#c\n"
	files := map[string]bool{"doc": true, "doc/a.md": true, "doc/b.md": true, "doc/sub": true, "doc/sub/c.md": true, "doc/pictures/a.png": true, "README.md": true}
	pages := map[string]outline{"doc/a.md": outlineOf([]byte(page)), "doc/sub/c.md": outlineOf([]byte("# C\n")), "README.md": {}}
	if got, want := pages["doc/a.md"].links, []string{"b.md", "pictures/a.png", "pictures/a.png", "pictures/b.png", "pictures/none.png", "sub/c.md#c"}; !slices.Equal(got, want) {
		t.Errorf("the links are %q, not %q", got, want)
	}
	for link, fault := range map[string]string{
		"#café--co":             "",
		"#ibid-ask-how-to":      "",
		"#twice":                "",
		"#twice-1":              "",
		"#twice-1-1":            "",
		"#twice-2":              "no such heading",
		"#a-link-15-":           "",
		"#set":                  "",
		"#Here":                 "",
		"#there":                "",
		"#no-heading":           "no such heading",
		"#Twice":                "no such heading",
		"#":                     "no such heading",
		"b.md":                  "",
		"b.md#b":                "no such heading",
		"sub/c.md#c":            "",
		"sub":                   "",
		"sub/":                  "",
		"sub/d.md":              "git tracks no such file",
		"../README.md":          "",
		"../../README.md":       "outside the repository",
		"/README.md":            "",
		"pictures/none.png":     "git tracks no such file",
		"https://example.org/x": "",
		"mailto:a@example.org":  "",
		"sub/c%2Emd":            "",
	} {
		if _, got := linkFault("doc/a.md", link, files, pages); got != fault {
			t.Errorf("%s: %q, not %q", link, got, fault)
		}
	}
}

// trackedFiles are what git keeps, with slashes, from the root of the module.
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

// linkFault says what is wrong with a link of a page, and whether it is one
// that leads into the repository.
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

// An outline is what a page links to, and what can be linked to in it.
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

// markup takes in what HTML in a page links to, and the anchors in it.
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

// plainText is what a reader sees of a heading.
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

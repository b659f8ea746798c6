package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// TestLinks checks that every relative link and picture of every page leads to a file in
// the repository, and every anchor to a heading. Links to other hosts are not checked.
func TestLinks(t *testing.T) {
	t.Parallel()
	tracked := trackedFiles(t)
	files := make(map[string]bool) // files and their folders
	pages := make(map[string]outline)
	for _, name := range tracked {
		for at := name; at != "."; at = path.Dir(at) {
			files[at] = true
		}
		if path.Ext(name) == ".md" && !strings.Contains(name, "/testdata/") { // not pages
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
		t.Errorf("only %d links and %d anchors checked: the search for them is broken", checked, anchors)
	}
}

// trackedFiles returns the paths of the files in git, relative to the root of the module.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = moduleRoot(t)
	out, err := list.Output()
	if err != nil {
		t.Skipf("git ls-files: %v; this test needs git and a clone", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// linkFault returns the fault of a link of a page, or "", and whether the link leads into
// the repository.
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

// An outline is the links and anchors of a page.
type outline struct {
	links   []string
	anchors map[string]bool
}

var (
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]*`")
	linked   = regexp.MustCompile(`\]\(([^)\s]+)\)|\b(?:src|href|srcset)="([^"\s]+)`)
	anchored = regexp.MustCompile(`\b(?:id|name)="([^"]+)"`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
)

func outlineOf(source []byte) outline {
	o := outline{anchors: make(map[string]bool)}
	text := string(source)
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		slug := slugOf(regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(m[1], ""))
		unique := slug
		for i := 1; o.anchors[unique]; i++ {
			unique = fmt.Sprintf("%s-%d", slug, i)
		}
		o.anchors[unique] = true
	}
	text = fenced.ReplaceAllString(text, "")
	for _, m := range linked.FindAllStringSubmatch(text, -1) {
		o.links = append(o.links, m[1]+m[2])
	}
	for _, m := range anchored.FindAllStringSubmatch(text, -1) {
		o.anchors[m[1]] = true
	}
	return o
}

// slugOf returns the anchor that GitHub gives a heading: in lower case, with letters,
// marks, digits, hyphens and underscores unchanged, a hyphen for each space, and all else
// removed.
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

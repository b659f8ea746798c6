package ingest

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreRules are the patterns of the .gitignore and .ibidignore files from the root down to a
// folder. The last matching pattern decides.
type ignoreRules []ignoreRule

type ignoreRule struct {
	pattern string // in doublestar syntax, from the root
	negated bool
	dirOnly bool
}

// maxIgnoreBytes is the largest ignore file that is read.
const maxIgnoreBytes = 1 << 20

// withFolder adds the rules of a folder. It skips files that can't be read.
func (rules ignoreRules) withFolder(fsys fs.FS, dir string) ignoreRules {
	for _, name := range []string{".gitignore", ".ibidignore"} {
		p := path.Join(dir, name)
		info, err := fs.Lstat(fsys, p)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreBytes {
			continue
		}
		if data, err := fs.ReadFile(fsys, p); err == nil {
			rules = append(rules[:len(rules):len(rules)], parseIgnore(dir, string(data))...)
		}
	}
	return rules
}

// parseIgnore reads patterns as git's manual page gitignore(5) describes them.
func parseIgnore(dir, text string) []ignoreRule {
	base := ""
	if dir != "." {
		base = escapeGlob(dir) + "/"
	}
	var rules []ignoreRule
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimRight(line, " "); !strings.HasSuffix(trimmed, `\`) {
			line = trimmed
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var r ignoreRule
		if line, r.negated = strings.CutPrefix(line, "!"); line == "" {
			continue
		}
		if line, r.dirOnly = strings.CutSuffix(line, "/"); line == "" {
			continue
		}
		// A pattern with a slash is anchored to this folder. Any other pattern matches at every
		// depth.
		anchored := strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		line = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line)
		if !anchored {
			line = "**/" + line
		}
		if strings.HasSuffix(line, "/**") {
			line += "/*" // the files in the folder, not the folder itself
		}
		if r.pattern = base + line; doublestar.ValidatePattern(r.pattern) {
			rules = append(rules, r)
		}
	}
	return rules
}

// CheckGlob checks a pattern for [Syncer.Include] or [Syncer.Exclude].
func CheckGlob(pattern string) error {
	switch {
	case strings.ContainsAny(pattern, "\n\r"):
		return fmt.Errorf("the pattern %q has more than one line: give several patterns", pattern)
	case strings.HasPrefix(pattern, "!"):
		return fmt.Errorf("the pattern %q begins with !: say what to include and what to exclude", pattern)
	case len(parseIgnore(".", pattern)) == 0:
		return fmt.Errorf("the pattern %q is not understood: write it as in a .gitignore file, *.md or drafts/ for one", pattern)
	}
	return nil
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`).Replace(s)
}

// matchBelow reports whether the rules match a file, or a folder above it and below top.
func (rules ignoreRules) matchBelow(top, p string) bool {
	matched := rules.excludes(p, false)
	for dir := path.Dir(p); !matched && len(dir) > len(top) && dir != "."; dir = path.Dir(dir) {
		matched = rules.excludes(dir, true)
	}
	return matched
}

// excludes reports whether the rules exclude a path. They must not exclude the folders above it.
func (rules ignoreRules) excludes(p string, dir bool) bool {
	out := false
	for _, r := range rules {
		if r.dirOnly && !dir {
			continue
		}
		if doublestar.MatchUnvalidated(r.pattern, p) {
			out = !r.negated
		}
	}
	return out
}

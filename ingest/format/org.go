package format

import (
	"regexp"
	"strings"
)

var (
	orgKeyword = regexp.MustCompile(`(?i)^[ \t]*#\+(\w+):[ \t]*(.*)$`)
	orgBlock   = regexp.MustCompile(`(?i)^[ \t]*#\+(begin|end)_(src|example|export|comment)\b`)
	orgHeading = regexp.MustCompile(`^(\*{1,6})[ \t]+` +
		`(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z]\][ \t]+)?(\S.*?)(?:[ \t]+:[\w@:]+:)?$`)
	orgRule   = regexp.MustCompile(`^[ \t]*\|-[-+]*\|?$`)
	orgSilent = regexp.MustCompile(`^[ \t]*(?:#(?:[+ \t].*)?|:[\w-]+:.*)$`) // other keywords, comments, properties
	orgFixed  = regexp.MustCompile(`^[ \t]*: `)
	orgNamed  = regexp.MustCompile(`\[\[([^\[\]]+)\]\[([^\[\]]+)\]\]`)
)

// Org reads Org as the Markdown that says the same. Emphasis other than *bold*
// stays as written.
func Org(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	lines := strings.Split(src, "\n") // one of Markdown for each, so that their numbers stay
	block := ""
	rows := 0 // of the table so far, with the rule below its names
	for i, line := range lines {
		m := orgBlock.FindStringSubmatch(line)
		if m != nil {
			if block = strings.ToLower(m[2]); strings.EqualFold(m[1], "end") {
				block = ""
			}
		}
		switch {
		case m != nil && !strings.EqualFold(m[2], "comment"):
			lines[i] = "```"
		case m != nil, block == "comment":
			lines[i] = ""
		case block == "":
			lines[i] = orgLine(doc, line)
			switch {
			case !strings.HasPrefix(strings.TrimSpace(line), "|"):
				rows = 0
			case !orgRule.MatchString(line) || rows == 1:
				rows++
			default: // of Markdown, a table has one rule
				lines[i] = "| |"[:min(rows, 1)*3]
			}
		}
	}
	var b builder
	markdownInto(&b, strings.Join(lines, "\n"), make(map[string]int), false, 0)
	b.into(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

// orgLine returns a line outside blocks as Markdown, and keeps its metadata.
func orgLine(doc *Document, line string) string {
	line = strings.TrimRight(line, " \t")
	if m := orgKeyword.FindStringSubmatch(line); m != nil {
		if key := strings.ToLower(m[1]); key == "filetags" {
			doc.setMeta("tags", strings.Trim(strings.ReplaceAll(m[2], ":", ", "), ", "))
		} else {
			doc.setMeta(key, m[2])
		}
	}
	switch m := orgHeading.FindStringSubmatch(line); {
	case m != nil:
		line = strings.Repeat("#", len(m[1])) + " " + m[2]
	case orgSilent.MatchString(line):
		return ""
	case orgRule.MatchString(line):
		return strings.ReplaceAll(line, "+", "|")
	}
	return orgNamed.ReplaceAllString(orgFixed.ReplaceAllString(line, "    "), "[$2]($1)")
}

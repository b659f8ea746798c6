package rewrite_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"

	"ibid/cite/rewrite"
)

var (
	oScheme  = regexp.MustCompile(`^([a-z][a-z0-9+.-]*):`)
	oLines   = regexp.MustCompile(`[\r\n]+`)
	oSpecial = regexp.MustCompile("[\x00- ()<>\"\\\\\x7f]")
	oEscaped = regexp.MustCompile(`[\\\[\]<]`)
	oHTTP    = regexp.MustCompile(`^(?i)https?://`)
)

// oLink returns a source as the target of a link, or "".
func oLink(source string) string {
	bare := strings.ToLower(regexp.MustCompile("[\x00- \x7f]").ReplaceAllString(source, ""))
	if m := oScheme.FindStringSubmatch(bare); m != nil && m[1] != "http" && m[1] != "https" {
		return ""
	}
	return strings.TrimFunc(source, unicode.IsSpace)
}

func oTarget(u string) string {
	return oSpecial.ReplaceAllStringFunc(u, func(s string) string { return fmt.Sprintf("%%%02X", s[0]) })
}

func oMarkdown(s string) string {
	return oEscaped.ReplaceAllString(oLines.ReplaceAllString(s, " "), `\$0`)
}

// mark returns a number as the text shows it.
func (o *oracle) mark(number int) string {
	u := oLink(o.numbers[number-1].Source)
	switch {
	case o.style == "text":
		return fmt.Sprintf("[%d]", number)
	case o.style == "markdown" && u != "":
		return fmt.Sprintf("<sup>[[%d](%s)]</sup>", number, oTarget(u))
	case o.style == "markdown":
		return fmt.Sprintf("<sup>[%d]</sup>", number)
	case o.style == "html" && u != "":
		return fmt.Sprintf(`<sup><a href="%s">%d</a></sup>`, html.EscapeString(u), number)
	case o.style == "html":
		return fmt.Sprintf("<sup>%d</sup>", number)
	}
	return ""
}

// list returns the list of sources.
func (o *oracle) list() string {
	if len(o.numbers) == 0 || o.style == "empty" {
		return ""
	}
	list := map[string]string{"text": "\n\n", "markdown": "\n\n", "html": "\n<ol>"}[o.style]
	for _, s := range o.numbers {
		u := oLink(s.Source)
		label := s.Title
		if label == "" {
			label = s.Source
		}
		if label == "" {
			label = fmt.Sprintf("document %d", s.IDs[0])
		}
		line := func(s string) string { return oLines.ReplaceAllString(s, " ") }
		switch {
		case o.style == "text" && s.Title != "" && s.Source != "":
			list += fmt.Sprintf("- [%d] %s (%s)\n", s.Number, line(s.Title), line(s.Source))
		case o.style == "text":
			list += fmt.Sprintf("- [%d] %s\n", s.Number, line(label))
		case o.style == "markdown" && u == "":
			list += fmt.Sprintf("- **%d** %s\n", s.Number, oMarkdown(label))
		case o.style == "markdown" && s.Title == "" && oHTTP.MatchString(u):
			list += fmt.Sprintf("- **%d** <%s>\n", s.Number, oTarget(u))
		case o.style == "markdown" && s.Title == "":
			list += fmt.Sprintf("- **%d** [%s](%s)\n", s.Number, oMarkdown(u), oTarget(u))
		case o.style == "markdown":
			list += fmt.Sprintf("- **%d** [%s](%s)\n", s.Number, oMarkdown(s.Title), oTarget(u))
		case u != "":
			list += fmt.Sprintf(`<li><a href="%s">%s</a></li>`, html.EscapeString(u), html.EscapeString(label))
		default:
			list += fmt.Sprintf("<li>%s</li>", html.EscapeString(label))
		}
	}
	if o.style == "html" {
		list += "</ol>"
	}
	return list
}

// blank reports whether a title or a source is missing.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// plainly returns the documents with missing titles and sources as "".
func plainly(docs []rewrite.Document) []rewrite.Document {
	plain := make([]rewrite.Document, len(docs))
	for i, d := range docs {
		plain[i] = rewrite.Document{ID: i + 1}
		if !blank(d.Source) {
			plain[i].Source = d.Source
		}
		if !blank(d.Title) {
			plain[i].Title = d.Title
		}
	}
	return plain
}

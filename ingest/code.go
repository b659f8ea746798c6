package ingest

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A language is how the structure of a programming language is seen: by the
// lines that begin a declaration. Nesting is read from the indentation.
type language struct {
	// declares gives the name of what a line declares, in its first group that
	// matches anything.
	declares *regexp.Regexp
	line     []string // signs that begin a comment to the end of the line
	block    []string // pairs of signs around a comment
	text     []string // signs around texts of several lines
	loose    bool     // a declaration must not be a mere call or a prototype
	attached string   // what lines between a comment and its declaration may begin with
}

// languageOf gives the language of a file by its ending; nil when its text has
// no declarations of its own.
func languageOf(name string) *language {
	l, ok := languages[strings.ToLower(path.Ext(name))]
	if !ok {
		return nil
	}
	return &l
}

var (
	slashes = []string{"//"}
	starred = []string{"/*", "*/"}

	scriptLanguage = language{line: slashes, block: starred, text: []string{"`"}, attached: "@", declares: regexp.MustCompile(
		`^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:(?:function\s*\*?|class|interface|enum|namespace|module|type)\s+([\w$]+)` +
			`|(?:const|let|var)\s+([\w$]+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^()]*\)\s*(?::[^=]+)?=>|[\w$]+\s*=>|class\b))` +
			`|^\s+(?:(?:public|private|protected|static|async|get|set|override|readonly)\s+)*\*?(#?[\w$]+)\s*(?:<[^<>]+>)?\([^()]*\)\s*(?::[^{;=]+)?\{\s*$`)}
	classLanguage = language{line: slashes, block: starred, attached: "@[", declares: regexp.MustCompile(
		`^\s*(?:(?:public|private|protected|internal|static|final|abstract|sealed|partial|virtual|override|async|synchronized|native|default|unsafe|readonly|open|data|inline|suspend|fileprivate|mutating|case|implicit|extern|new|strictfp)\s+)*` +
			`(?:(?:class|interface|enum|record|struct|trait|object|extension|protocol|namespace|fun|func|def|@interface)\s+(?:<[^<>]+>\s*)?(\w+)` +
			`|(?:[\w<>\[\],.?&]+\s+){1,2}(\w+)\s*\([^();]*(?:\)|,\s*$)[^;=]*$)`), loose: true}
	cLanguage = language{line: slashes, block: starred, attached: "#[t", declares: regexp.MustCompile(
		`^(?:(?:typedef\s+)?(?:struct|union|enum(?:\s+class)?|class|namespace)\s+(\w+)[^;()=]*$` +
			`|#\s*define\s+(\w+\([^()]*\))` +
			`|(?:[A-Za-z_][\w:<>,*&~\s]*?[\s*&])??((?:\w+::)*~?\w+|operator[^\s\w(]{1,3})\s*\([^;]*$)`), loose: true}
)

// languages are those whose declarations are known, by the endings of files.
var languages = map[string]language{
	".js": scriptLanguage, ".mjs": scriptLanguage, ".cjs": scriptLanguage, ".jsx": scriptLanguage,
	".ts": scriptLanguage, ".mts": scriptLanguage, ".cts": scriptLanguage, ".tsx": scriptLanguage,
	".java": classLanguage, ".cs": classLanguage, ".kt": classLanguage, ".kts": classLanguage, ".swift": classLanguage, ".scala": classLanguage, ".groovy": classLanguage,
	".c": cLanguage, ".h": cLanguage, ".cc": cLanguage, ".cpp": cLanguage, ".cxx": cLanguage, ".hh": cLanguage, ".hpp": cLanguage, ".m": cLanguage,
	".go": {line: slashes, block: starred, text: []string{"`"}, declares: regexp.MustCompile(`^(?:func\s+(?:\([^()]+\)\s*)?|type\s+)(\w+)`)},
	".py": {line: []string{"#"}, text: []string{`"""`, "'''"}, attached: "@", declares: regexp.MustCompile(`^\s*(?:async\s+)?(?:def|class)\s+(\w+)`)},
	".rs": {line: slashes, block: starred, attached: "#", declares: regexp.MustCompile(
		`^\s*(?:pub(?:\([^()]+\))?\s+)?(?:default\s+|const\s+|async\s+|unsafe\s+|extern\s+"[^"]*"\s+)*(?:fn|struct|enum|union|trait|mod|type|macro_rules!)\s+(\w+)|^\s*(?:unsafe\s+)?(impl\b[^{;]+?)\s*(?:\{|where|$)`)},
	".rb": {line: []string{"#"}, block: []string{"=begin", "=end"}, declares: regexp.MustCompile(`^\s*(?:private\s+|protected\s+)?(?:def|class|module)\s+([\w.:?!=<>\[\]+*/-]+)`)},
	".php": {line: []string{"//", "#"}, block: starred, attached: "#[", declares: regexp.MustCompile(
		`^\s*(?:(?:public|private|protected|static|final|abstract|readonly)\s+)*(?:function\s+&?|class\s+|interface\s+|trait\s+|enum\s+)(\w+)`)},
	".sh": shellLanguage, ".bash": shellLanguage, ".zsh": shellLanguage,
	".sql": {line: []string{"--"}, block: starred, declares: regexp.MustCompile(
		`(?i)^\s*((?:create|alter)\s+(?:or\s+replace\s+)?(?:unique\s+|temp\s+|temporary\s+|materialized\s+)?(?:table|view|index|function|procedure|trigger|type|schema|sequence|policy|extension)\s+(?:if\s+(?:not\s+)?exists\s+)?[\w."\[\]` + "`" + `]+)`)},
	".lua": {line: []string{"--"}, declares: regexp.MustCompile(`^\s*(?:local\s+)?function\s+([\w.:]+)`)},
	".pl":  {line: []string{"#"}, declares: regexp.MustCompile(`^\s*(?:sub|package)\s+([\w:]+)`)},
	".r":   {line: []string{"#"}, declares: regexp.MustCompile(`^\s*([\w.]+)\s*(?:<-|=)\s*function\b`)},
	".ex":  elixirLanguage, ".exs": elixirLanguage,
	".ps1": {line: []string{"#"}, block: []string{"<#", "#>"}, declares: regexp.MustCompile(`(?i)^\s*(?:function|class|filter)\s+([\w:-]+)`)},
	".css": styleLanguage, ".scss": styleLanguage, ".less": styleLanguage,
	".proto": {line: slashes, block: starred, declares: regexp.MustCompile(`^\s*((?:message|service|enum|rpc)\s+\w+)`)},
	".tf":    {line: []string{"#", "//"}, block: starred, declares: regexp.MustCompile(`^((?:resource|data|module|variable|output|provider|locals|terraform)\b(?:\s+"[^"]+")*)`)},
}

var (
	shellLanguage  = language{line: []string{"#"}, declares: regexp.MustCompile(`^\s*(?:function\s+([\w:.-]+)|([\w:.-]+)\s*\(\)\s*(?:\{|\(|$))`)}
	elixirLanguage = language{line: []string{"#"}, text: []string{`"""`}, attached: "@", declares: regexp.MustCompile(`^\s*(?:defmodule|defp?|defmacro)\s+([\w.?!]+)`)}
	styleLanguage  = language{block: starred}
)

// codeEndings are the endings of files that are read as source code.
func codeEndings() []string { return slices.Sorted(maps.Keys(languages)) }

// maxCodeLine is the length of a line that no person wrote.
const maxCodeLine = 5000

// unwritten says why a source file is none that people wrote or read: made by
// a program, or packed for machines. It is empty for all others.
func unwritten(src string) string {
	head := src[:min(len(src), 2<<10)]
	if generatedMark.MatchString(head) {
		return "generated code: a program wrote it from another file"
	}
	longest, lines := 0, 1
	for line := range strings.Lines(src) {
		longest = max(longest, len(line))
		lines++
	}
	if longest > maxCodeLine && len(src)/lines > 200 {
		return "minified code: no person reads it"
	}
	return ""
}

var generatedMark = regexp.MustCompile(`(?m)^\W{0,6}Code generated .{0,200}DO NOT EDIT|^\W{0,6}@generated\b|(?i)^\W{0,6}(?:this (?:file|code) (?:is|was) (?:auto(?:matically)?[- ]?)?generated\b.{0,200}(?:do not (?:edit|modify)|by )|autogenerated.{0,80}do not)`)

// readCode reads source code by its own structure: each function, type and
// class is a section with the name it is called by, the comment over it as
// text, and its lines as code. The anchor of a section is its line, "L120".
func readCode(doc *Document, data []byte) error {
	src, err := decode(data, "")
	if err != nil {
		return err
	}
	if reason := unwritten(src); reason != "" {
		return &SkipError{reason}
	}
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	doc.Title = path.Base(doc.Path)
	w := codeWriter{lines: strings.Split(src, "\n")}
	if strings.HasPrefix(src, "#!") {
		w.lines[0] = "" // the program that runs it
	}
	w.language = languageOf(doc.Path)
	found := false
	if strings.EqualFold(path.Ext(doc.Path), ".go") {
		w.parts, found = goParts(src)
	}
	if !found {
		w.scan()
	}
	w.write()
	w.b.into(doc)
	return nil
}

// A codePart is a declaration, from the line after the one before it.
type codePart struct {
	name  string
	level int
	line  int // index of the declaration's first line
	over  int // index of the first line of the comment over it
}

// maxDeclaration is the length of a line that is looked at for a declaration.
const maxDeclaration = 500

type codeWriter struct {
	b        builder
	lines    []string
	parts    []codePart
	language *language
	inside   []bool // by line: it begins inside a comment or a text
}

// scan finds the declarations by their lines.
func (w *codeWriter) scan() {
	if w.language == nil || w.language.declares == nil {
		return
	}
	w.seeInside()
	type scope struct {
		indent, level int
		function      bool
	}
	var scopes []scope
	last := -1
	for i, line := range w.lines {
		if w.inside[i] || len(line) > maxDeclaration {
			continue
		}
		name := w.declared(i)
		if name == "" {
			continue
		}
		indent := width(line)
		for len(scopes) > 0 && scopes[len(scopes)-1].indent >= indent {
			scopes = scopes[:len(scopes)-1]
		}
		level := len(scopes) + 1
		if level > 3 || level > 1 && scopes[level-2].function {
			continue // what is local to a function is part of it
		}
		scopes = append(scopes, scope{indent, level, strings.Contains(line, "def ")})
		over := w.commentOver(i, last)
		last = i
		w.parts = append(w.parts, codePart{name: name, level: level, line: i, over: over})
	}
}

// notNames are words that look like a function's name in front of a bracket.
var notNames = set(`if else for foreach while switch return catch do sizeof throw new delete using lock when elseif await yield typeof assert defined super this synchronized try`)

func (w *codeWriter) declared(i int) string {
	line := w.lines[i]
	for _, sign := range w.language.line {
		if sign != "#" && strings.HasPrefix(strings.TrimSpace(line), sign) {
			return ""
		}
	}
	m := w.language.declares.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	name := ""
	for _, group := range m[1:] {
		if group != "" {
			name = oneLine(group)
			break
		}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	first, _, _ = strings.Cut(first, "(")
	if notNames[name] || notNames[first] {
		return ""
	}
	if w.language.loose && strings.Contains(line, "(") && !strings.HasPrefix(strings.TrimSpace(line), "#") && !w.opens(i) {
		return ""
	}
	return name
}

// opens reports whether a body follows the head of a function, within a few
// lines.
func (w *codeWriter) opens(i int) bool {
	for _, line := range w.lines[i:min(len(w.lines), i+8)] {
		if at := strings.IndexAny(line[:min(len(line), maxCodeLine)], "{;"); at >= 0 {
			return line[at] == '{'
		}
		if strings.Contains(line, "=>") || strings.HasSuffix(strings.TrimSpace(line), "=") {
			return true
		}
	}
	return false
}

// commentOver gives the first of the lines of comment and annotation that
// stand right over a line, under the declaration before.
func (w *codeWriter) commentOver(i, last int) int {
	over := i
	for j := i - 1; j > last; j-- {
		trimmed := strings.TrimSpace(w.lines[j])
		comment := w.inside[j] || trimmed != "" && w.isComment(trimmed)
		if j == i-1 && w.language.loose && typeAlone.MatchString(w.lines[j]) {
			over = j // of a function whose name stands on the next line
			continue
		}
		if !comment && (trimmed == "" || w.language.attached == "" || strings.IndexByte(w.language.attached, trimmed[0]) < 0) {
			break
		}
		over = j
	}
	return over
}

var typeAlone = regexp.MustCompile(`^[A-Za-z_][\w\s*&:<>,]{0,200}$`)

func (w *codeWriter) isComment(trimmed string) bool {
	for _, sign := range w.language.line {
		if strings.HasPrefix(trimmed, sign) {
			return true
		}
	}
	return len(w.language.block) > 0 && strings.HasPrefix(trimmed, w.language.block[0])
}

// seeInside notes which lines begin inside a comment or a text of several
// lines: what looks like a declaration there is none.
func (w *codeWriter) seeInside() {
	w.inside = make([]bool, len(w.lines))
	until := ""
	for i, line := range w.lines {
		w.inside[i] = until != ""
		for rest := line; rest != ""; {
			if until != "" {
				at := strings.Index(rest, until)
				if at < 0 {
					break
				}
				rest, until = rest[at+len(until):], ""
				continue
			}
			at, opened := w.firstOpening(rest)
			if at < 0 {
				break
			}
			rest = rest[at:]
			if opened == "" { // a text or comment that ends with the line
				break
			}
			until = opened
			if open := w.openingOf(opened); strings.HasPrefix(rest, open) {
				rest = rest[len(open):]
			}
		}
	}
}

func (w *codeWriter) openingOf(closing string) string {
	if len(w.language.block) > 0 && closing == w.language.block[1] {
		return w.language.block[0]
	}
	return closing
}

// firstOpening gives where in a line a comment or text of several lines begins,
// and what ends it; -1 when none does. Texts inside one line are passed over.
func (w *codeWriter) firstOpening(line string) (at int, closing string) {
	if len(line) > maxCodeLine {
		return -1, ""
	}
	unclosed := ""
	for i := 0; i < len(line); i++ {
		rest := line[i:]
		for _, sign := range w.language.text {
			if strings.HasPrefix(rest, sign) {
				return i, sign
			}
		}
		for _, sign := range w.language.line {
			if strings.HasPrefix(rest, sign) {
				return -1, ""
			}
		}
		if len(w.language.block) > 0 && strings.HasPrefix(rest, w.language.block[0]) {
			return i, w.language.block[1]
		}
		if c := line[i]; (c == '"' || c == '\'') && strings.IndexByte(unclosed, c) < 0 {
			end := i + 1
			for end < len(line) && line[end] != c {
				if line[end] == '\\' {
					end++
				}
				end++
			}
			if end < len(line) {
				i = end
			} else { // an apostrophe, or a lifetime in Rust
				unclosed += line[i : i+1]
			}
		}
	}
	return -1, ""
}

// width gives the indentation of a line, a tab being four.
func width(line string) int {
	n := 0
	for i := range len(line) {
		switch line[i] {
		case ' ':
			n++
		case '\t':
			n += 4
		default:
			return n
		}
	}
	return n
}

// write puts the parts into the text: what stands in front of the first, then
// each under its name.
func (w *codeWriter) write() {
	end := len(w.lines)
	if len(w.parts) > 0 {
		end = w.parts[0].over
	}
	w.body(0, end)
	for i, p := range w.parts {
		end := len(w.lines)
		if i+1 < len(w.parts) {
			end = w.parts[i+1].over
		}
		w.b.line = p.line + 1
		w.b.Heading(p.level, p.name, fmt.Sprintf("L%d", p.line+1))
		w.body(p.over, end)
	}
}

// body writes lines: those of a comment at their begin as text, the rest as
// code.
func (w *codeWriter) body(start, end int) {
	at := start
	for at < end && strings.TrimSpace(w.lines[at]) == "" {
		at++
	}
	if w.language != nil {
		from := at
		var prose []string
		at, prose = w.leadingComment(from, end)
		w.b.line = from + 1
		w.b.Paragraph(strings.Join(prose, "\n"))
		if docstring, first, after, ok := w.docstring(at, end); ok {
			w.code(at, first)
			w.b.line = first + 1
			w.b.Paragraph(docstring)
			at = after
		}
	}
	w.code(at, end)
}

func (w *codeWriter) code(start, end int) {
	for start < end && strings.TrimSpace(w.lines[start]) == "" {
		start++
	}
	if start < end {
		w.b.line = start + 1
		w.b.Code(strings.Join(w.lines[start:end], "\n"))
	}
}

// leadingComment gives the comment that lines begin with, without its signs.
func (w *codeWriter) leadingComment(start, end int) (after int, prose []string) {
	closing := ""
	at := start
	for ; at < end; at++ {
		line := strings.TrimSpace(w.lines[at])
		if closing != "" {
			text, _, closed := strings.Cut(line, closing)
			prose = append(prose, uncommented(text, "*"))
			if closed {
				closing = ""
			}
			continue
		}
		if len(w.language.block) > 0 && strings.HasPrefix(line, w.language.block[0]) {
			text, rest, closed := strings.Cut(line[len(w.language.block[0]):], w.language.block[1])
			if closed && strings.TrimSpace(rest) != "" {
				return at, prose // code stands behind it
			}
			prose = append(prose, uncommented(text, "*!"))
			if !closed {
				closing = w.language.block[1]
			}
			continue
		}
		sign := ""
		for _, s := range w.language.line {
			if strings.HasPrefix(line, s) {
				sign = s
			}
		}
		if line != "" && (sign == "" || strings.HasPrefix(line, "#include") || strings.HasPrefix(line, "#[")) {
			break
		}
		if line == "" && sign == "" {
			prose = append(prose, "")
			continue
		}
		prose = append(prose, uncommented(line[len(sign):], sign[:1]+"!"))
	}
	return at, prose
}

// uncommented takes the signs of a comment and rows of them off a line.
func uncommented(line, signs string) string {
	line = strings.TrimLeft(strings.TrimSpace(line), signs)
	line = strings.TrimSuffix(strings.TrimPrefix(line, " "), "*")
	if strings.Trim(line, "-=*#/~ ") == "" {
		return ""
	}
	return line
}

// docstring finds the text with which a Python definition says what it does.
func (w *codeWriter) docstring(start, end int) (text string, first, after int, ok bool) {
	if len(w.language.text) < 2 {
		return "", 0, 0, false
	}
	for i := start; i < min(end, start+30); i++ {
		trimmed := strings.TrimLeft(strings.TrimSpace(w.lines[i]), "rRuU")
		for _, sign := range w.language.text {
			inner, found := strings.CutPrefix(trimmed, sign)
			if !found || i > start && !strings.HasSuffix(strings.TrimSpace(w.lines[i-1]), ":") {
				continue
			}
			if text, _, closed := strings.Cut(inner, sign); closed {
				return text, i, i + 1, true
			}
			lines := []string{inner}
			for j := i + 1; j < end; j++ {
				text, _, closed := strings.Cut(w.lines[j], sign)
				lines = append(lines, strings.TrimSpace(text))
				if closed {
					return strings.Join(lines, "\n"), i, j + 1, true
				}
			}
			return "", 0, 0, false
		}
	}
	return "", 0, 0, false
}

package format

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A language says which lines begin a declaration. Nesting follows the
// indentation.
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

// languageOf returns the language of a file by its ending; nil if unknown.
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
		`^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?` +
			`(?:(?:function\s*\*?|class|interface|enum|namespace|module|type)\s+([\w$]+)` +
			`|(?:const|let|var)\s+([\w$]+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^()]*\)\s*(?::[^=]+)?=>|[\w$]+\s*=>|class\b))` +
			`|^\s+(?:(?:public|private|protected|static|async|get|set|override|readonly)\s+)*` +
			`\*?(#?[\w$]+)\s*(?:<[^<>]+>)?\([^()]*\)\s*(?::[^{;=]+)?\{\s*$`)}
	classLanguage = language{line: slashes, block: starred, attached: "@[", declares: regexp.MustCompile(
		`^\s*(?:(?:public|private|protected|internal|static|final|abstract|sealed|partial|virtual|override|` +
			`async|synchronized|native|default|unsafe|readonly|open|data|inline|suspend|` +
			`fileprivate|mutating|case|implicit|extern|new|strictfp)\s+)*` +
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
	".java": classLanguage, ".cs": classLanguage, ".kt": classLanguage, ".kts": classLanguage,
	".swift": classLanguage, ".scala": classLanguage, ".groovy": classLanguage,
	".c": cLanguage, ".h": cLanguage, ".cc": cLanguage, ".cpp": cLanguage, ".cxx": cLanguage,
	".hh": cLanguage, ".hpp": cLanguage, ".m": cLanguage,
	".go": {line: slashes, block: starred, text: []string{"`"}, declares: regexp.MustCompile(
		`^(func\s+(?:\([^()]+\)\s*)?\w+|(?:type|var|const)\s+\w+|(?:type|var|const)\b)`)},
	".py": {line: []string{"#"}, text: []string{`"""`, "'''"}, attached: "@", declares: regexp.MustCompile(
		`^\s*(?:async\s+)?(?:def|class)\s+(\w+)`)},
	".rs": {line: slashes, block: starred, attached: "#", declares: regexp.MustCompile(
		`^\s*(?:pub(?:\([^()]+\))?\s+)?(?:default\s+|const\s+|async\s+|unsafe\s+|extern\s+"[^"]*"\s+)*` +
			`(?:fn|struct|enum|union|trait|mod|type|macro_rules!)\s+(\w+)|^\s*(?:unsafe\s+)?(impl\b[^{;]+?)\s*(?:\{|where|$)`)},
	".rb": {line: []string{"#"}, block: []string{"=begin", "=end"}, declares: regexp.MustCompile(
		`^\s*(?:private\s+|protected\s+)?(?:def|class|module)\s+([\w.:?!=<>\[\]+*/-]+)`)},
	".php": {line: []string{"//", "#"}, block: starred, attached: "#[", declares: regexp.MustCompile(
		`^\s*(?:(?:public|private|protected|static|final|abstract|readonly)\s+)*(?:function\s+&?|class\s+|interface\s+|trait\s+|enum\s+)(\w+)`)},
	".sh": shellLanguage, ".bash": shellLanguage, ".zsh": shellLanguage,
	".sql": {line: []string{"--"}, block: starred, declares: regexp.MustCompile(
		`(?i)^\s*((?:create|alter)\s+(?:or\s+replace\s+)?(?:unique\s+|temp\s+|temporary\s+|materialized\s+)?` +
			`(?:table|view|index|function|procedure|trigger|type|schema|sequence|policy|extension)\s+` +
			`(?:if\s+(?:not\s+)?exists\s+)?[\w."\[\]` + "`" + `]+)`)},
	".lua": {line: []string{"--"}, declares: regexp.MustCompile(`^\s*(?:local\s+)?function\s+([\w.:]+)`)},
	".pl":  {line: []string{"#"}, declares: regexp.MustCompile(`^\s*(?:sub|package)\s+([\w:]+)`)},
	".r":   {line: []string{"#"}, declares: regexp.MustCompile(`^\s*([\w.]+)\s*(?:<-|=)\s*function\b`)},
	".ex":  elixirLanguage, ".exs": elixirLanguage,
	".ps1": {line: []string{"#"}, block: []string{"<#", "#>"}, declares: regexp.MustCompile(`(?i)^\s*(?:function|class|filter)\s+([\w:-]+)`)},
	".css": styleLanguage, ".scss": styleLanguage, ".less": styleLanguage,
	".proto": {line: slashes, block: starred, declares: regexp.MustCompile(`^\s*((?:message|service|enum|rpc)\s+\w+)`)},
	".tf": {line: []string{"#", "//"}, block: starred, declares: regexp.MustCompile(
		`^((?:resource|data|module|variable|output|provider|locals|terraform)\b(?:\s+"[^"]+")*)`)},
}

var (
	shellLanguage = language{line: []string{"#"}, declares: regexp.MustCompile(
		`^\s*(?:function\s+([\w:.-]+)|([\w:.-]+)\s*\(\)\s*(?:\{|\(|$))`)}
	elixirLanguage = language{line: []string{"#"}, text: []string{`"""`}, attached: "@", declares: regexp.MustCompile(
		`^\s*(?:defmodule|defp?|defmacro)\s+([\w.?!]+)`)}
	styleLanguage = language{block: starred}
)

// CodeEndings are the endings of files that are read as source code.
func CodeEndings() []string { return slices.Sorted(maps.Keys(languages)) }

package format

import (
	"maps"
	"slices"
)

// A language describes the lines that begin a declaration. Indentation determines nesting.
type language struct {
	// declares is a regular expression whose first non-empty group is the declared name. It is
	// empty if the language has no declarations.
	declares  string
	comments  [][2]string // start and end markers; an empty end means the end of the line
	loose     bool        // calls and prototypes look like declarations
	docstring bool        // a string literal in a declaration is its comment
	nested    bool        // a declaration extends to the next unindented line and may contain others
}

var (
	slashes = [][2]string{{"//", ""}, {"/*", "*/"}}
	hashes  = [][2]string{{"#", ""}}
	dashes  = [][2]string{{"--", ""}, {"/*", "*/"}}
	quotes  = [][2]string{{"#", ""}, {`"""`, `"""`}, {"'''", "'''"}}

	scriptLanguage = language{comments: slashes, declares: `^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?` +
		`(?:(?:function\s*\*?|class|interface|enum|namespace|module|type)\s+([\w$]+)` +
		`|(?:const|let|var)\s+([\w$]+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^()]*\)\s*(?::[^=]+)?=>|[\w$]+\s*=>|class\b))` +
		`|^\s+(?:(?:public|private|protected|static|async|get|set|override|readonly)\s+)*` +
		`\*?(#?[\w$]+)\s*(?:<[^<>]+>)?\([^()]*\)\s*(?::[^{;=]+)?\{\s*$`}
	classLanguage = language{comments: slashes, loose: true, declares: `^\s*(?:(?:public|private|protected|internal|static|final|` +
		`abstract|sealed|partial|virtual|override|` +
		`async|synchronized|native|default|unsafe|readonly|open|data|inline|suspend|` +
		`fileprivate|mutating|case|implicit|extern|new|strictfp)\s+)*` +
		`(?:(?:class|interface|enum|record|struct|trait|object|extension|protocol|namespace|fun|func|def|@interface)\s+(?:<[^<>]+>\s*)?(\w+)` +
		`|(?:[\w<>\[\],.?&]+\s+){1,2}(\w+)\s*\([^();]*(?:\)|,\s*$)[^;=]*$)`}
	cLanguage = language{comments: slashes, loose: true, declares: `^(?:(?:typedef\s+)?` +
		`(?:struct|union|enum(?:\s+class)?|class|namespace)\s+(\w+)[^;()=]*$` +
		`|#\s*define\s+(\w+\([^()]*\))` +
		`|(?:[A-Za-z_][\w:<>,*&~\s]*?[\s*&])??((?:\w+::)*~?\w+|operator[^\s\w(]{1,3})\s*\([^;]*$)`}
	shellLanguage  = language{comments: hashes, declares: `^\s*(?:function\s+([\w:.-]+)|([\w:.-]+)\s*\(\)\s*(?:\{|\(|$))`}
	elixirLanguage = language{comments: quotes, declares: `^\s*(?:defmodule|defp?|defmacro)\s+([\w.?!]+)`}
	styleLanguage  = language{comments: slashes[1:]}

	// Declarations are the keys with nested keys in YAML, on two levels, and the tables in TOML,
	// INI and similar settings.
	yamlLanguage = language{comments: hashes, nested: true,
		declares: `^ *("[^"]+"|'[^']+'|[^\s#"'&*!|>%@{\[-][^:#]*):\s*(?:&\S+\s*)?(?:#.*)?$`}
	tableLanguage = language{comments: [][2]string{{"#", ""}, {";", ""}, {"!", ""}},
		declares: `^\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:[#;].*)?$`}
)

// languages maps file endings to languages.
var languages = map[string]language{
	".js": scriptLanguage, ".mjs": scriptLanguage, ".cjs": scriptLanguage, ".jsx": scriptLanguage,
	".ts": scriptLanguage, ".mts": scriptLanguage, ".cts": scriptLanguage, ".tsx": scriptLanguage,
	".java": classLanguage, ".cs": classLanguage, ".kt": classLanguage, ".kts": classLanguage,
	".swift": classLanguage, ".scala": classLanguage, ".groovy": classLanguage,
	".c": cLanguage, ".h": cLanguage, ".cc": cLanguage, ".cpp": cLanguage, ".cxx": cLanguage,
	".hh": cLanguage, ".hpp": cLanguage, ".m": cLanguage,
	".go": {comments: slashes, declares: `^(func\s+(?:\([^()]+\)\s*)?\w+|(?:type|var|const)\s+\w+|(?:type|var|const)\b)`},
	".py": {comments: quotes, docstring: true, declares: `^\s*(?:async\s+)?(?:def|class)\s+(\w+)\s*[(:]`},
	".rs": {comments: slashes, declares: `^\s*(?:pub(?:\([^()]+\))?\s+)?(?:default\s+|const\s+|async\s+|unsafe\s+|extern\s+"[^"]*"\s+)*` +
		`(?:fn|struct|enum|union|trait|mod|type|macro_rules!)\s+(\w+)|^\s*(?:unsafe\s+)?(impl\b[^{;]+?)\s*(?:\{|where|$)`},
	".rb": {comments: append(hashes, [2]string{"=begin", "=end"}), declares: `^\s*(?:private\s+|protected\s+)?` +
		`(?:def|class|module)\s+([\w.:?!=<>\[\]+*/-]+)`},
	".php": {comments: slashes, declares: `^\s*(?:(?:public|private|protected|static|final|abstract|readonly)\s+)*` +
		`(?:function\s+&?|class\s+|interface\s+|trait\s+|enum\s+)(\w+)`},
	".sh": shellLanguage, ".bash": shellLanguage, ".zsh": shellLanguage,
	".sql": {comments: dashes, declares: `(?i)^\s*((?:create|alter)\s+(?:or\s+replace\s+)?` +
		`(?:unique\s+|temp\s+|temporary\s+|materialized\s+)?` +
		`(?:table|view|index|function|procedure|trigger|type|schema|sequence|policy|extension)\s+` +
		`(?:if\s+(?:not\s+)?exists\s+)?[\w."\[\]` + "`" + `]+)`},
	".lua": {comments: dashes, declares: `^\s*(?:local\s+)?function\s+([\w.:]+)`},
	".pl":  {comments: hashes, declares: `^\s*(?:sub|package)\s+([\w:]+)`},
	".r":   {comments: hashes, declares: `^\s*([\w.]+)\s*(?:<-|=)\s*function\b`},
	".ex":  elixirLanguage, ".exs": elixirLanguage,
	".ps1":  {comments: append(hashes, [2]string{"<#", "#>"}), declares: `(?i)^\s*(?:function|class|filter)\s+([\w:-]+)`},
	".yaml": yamlLanguage, ".yml": yamlLanguage, ".toml": tableLanguage, ".ini": tableLanguage, ".cfg": tableLanguage,
	".conf": tableLanguage, ".properties": tableLanguage,
	".css": styleLanguage, ".scss": styleLanguage, ".less": styleLanguage,
	".proto": {comments: slashes, declares: `^\s*((?:message|service|enum|rpc)\s+\w+)`},
	".tf": {comments: append(slashes, hashes...), declares: `^(` +
		`(?:resource|data|module|variable|output|provider|locals|terraform)\b(?:\s+"[^"]+")*)`},
}

// CodeEndings returns the endings of files that are read as source code.
func CodeEndings() []string { return slices.Sorted(maps.Keys(languages)) }

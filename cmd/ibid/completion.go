package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: ${enum}."`
}

// completeCmd is what the scripts of completionCmd ask on each press of Tab.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:"all"`
}

// The shells ask the program itself, so that a script never grows old. Each
// line of the reply is a word and, behind a tab, what it is for. No reply
// leaves the word to the shell, which completes file names.
func completionScript(shell string) string {
	switch shell {
	case "bash":
		return `_ibid() {
	local line
	COMPREPLY=()
	while IFS= read -r line; do
		COMPREPLY+=("${line%%$'\t'*}")
	done < <(ibid complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _ibid ibid
`
	case "zsh":
		return `#compdef ibid
_ibid() {
	local -a replies
	local line
	while IFS= read -r line; do
		replies+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done < <(ibid complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
	if (( $#replies )); then _describe ibid replies; else _files; fi
}
if [ "$funcstack[1]" = _ibid ]; then _ibid "$@"; else compdef _ibid ibid; fi
`
	default:
		return `function __ibid_complete
	set -l words (commandline -opc) (commandline -ct)
	set -l replies (ibid complete -- $words[2..-1] 2>/dev/null)
	if test (count $replies) -gt 0
		printf '%s\n' $replies
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c ibid -f -a '(__ibid_complete)'
`
	}
}

// Run prints the script that a shell reads to complete Ibid's words.
func (c *completionCmd) Run(s surroundings) error {
	_, err := io.WriteString(s.stdout, completionScript(c.Shell))
	return err
}

// Run prints what the last of the words may become.
func (c *completeCmd) Run(k *kong.Context, s surroundings) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, line := range completions(k.Model.Node, words) {
		if _, err := fmt.Fprintln(s.stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// completions gives what the last word may become behind the others, as lines
// of a word, a tab and a few words about it; none where any text may stand.
func completions(node *kong.Node, words []string) []string {
	last := ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	// bash cuts --flag=value into three words.
	if last == "=" {
		last = ""
	}
	flags := slices.Clone(node.Flags)
	var value *kong.Flag // whose value the next word is
	arguments := 0
	for _, word := range words {
		name, _, whole := strings.Cut(word, "=")
		switch {
		case word == "=":
		case value != nil:
			value = nil
		case word == "--":
			return nil // only arguments follow
		case strings.HasPrefix(word, "-"):
			if f := flagNamed(flags, name); f != nil && !whole && !f.IsBool() && !f.IsCounter() {
				value = f
			}
		default:
			if i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
				node = node.Children[i]
				flags = append(flags, node.Flags...)
				arguments = 0
				continue
			}
			arguments++
		}
	}
	var lines []string
	add := func(word, help string) {
		if strings.HasPrefix(word, last) {
			help, _, _ = strings.Cut(help, "\n")
			lines = append(lines, word+"\t"+help)
		}
	}
	name, _, whole := strings.Cut(last, "=")
	switch {
	case value != nil:
		values(value.Value, "", add)
	case whole && strings.HasPrefix(last, "--"):
		if f := flagNamed(flags, name); f != nil {
			values(f.Value, name+"=", add)
		}
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			if !f.Hidden {
				add("--"+f.Name, f.Help)
			}
			if f.Tag != nil && f.Tag.Negatable != "" {
				add("--no-"+f.Name, "Not: "+f.Help)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				add(child.Name, child.Help)
			}
		}
		if arguments < len(node.Positional) {
			values(node.Positional[arguments], "", add)
		}
	}
	slices.Sort(lines)
	return lines
}

// values adds the values of an enumeration.
func values(v *kong.Value, prefix string, add func(word, help string)) {
	if v.Enum == "" {
		return
	}
	for _, word := range strings.Split(v.Enum, ",") {
		add(prefix+strings.TrimSpace(word), "")
	}
}

func flagNamed(flags []*kong.Flag, word string) *kong.Flag {
	for _, f := range flags {
		if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

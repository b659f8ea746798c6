package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: ${enum}."`
}

// Run prints the script of a shell. It asks 'ibid complete', so that it never
// becomes outdated; where that has no reply, the shell completes file names.
func (c *completionCmd) Run(s surroundings) error {
	script := `_ibid() {
	local word
	COMPREPLY=()
	while IFS= read -r word; do
		COMPREPLY+=("$word")
	done < <(ibid complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _ibid ibid
`
	switch c.Shell {
	case "zsh":
		script = "autoload -Uz bashcompinit && bashcompinit\n" + script
	case "fish":
		script = "complete -c ibid -a '(set -l words (commandline -opc) (commandline -ct); ibid complete -- $words[2..-1] 2>/dev/null)'\n"
	}
	_, err := io.WriteString(s.stdout, script)
	return err
}

// completeCmd is what the scripts call on each press of Tab.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:"all"`
}

// Run prints the completions of the last of the words.
func (c *completeCmd) Run(k *kong.Context, s surroundings) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, word := range completions(k.Model.Node, words) {
		if _, err := fmt.Fprintln(s.stdout, word); err != nil {
			return err
		}
	}
	return nil
}

// completions returns what the last word can become: commands, flags, or the
// values of a flag or an argument that has a fixed set of them.
func completions(node *kong.Node, words []string) (found []string) {
	last := ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	if last == "=" { // bash cuts --flag=value into three words
		last = ""
	}
	flags := slices.Clone(node.Flags)
	var value *kong.Value // that the next word sets
	arguments := 0
	for _, word := range words {
		if word == "=" {
			continue
		}
		if word == "--" {
			return nil
		}
		at := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		switch {
		case value != nil:
			value = nil
		case strings.HasPrefix(word, "-"):
			if f := flagNamed(flags, word); f != nil && !f.IsBool() {
				value = f.Value
			}
		case at >= 0:
			node = node.Children[at]
			flags = append(flags, node.Flags...)
		default:
			arguments++
		}
	}
	prefix := ""
	if name, _, isFlag := strings.Cut(last, "="); isFlag && value == nil {
		if f := flagNamed(flags, name); f != nil {
			value, prefix = f.Value, name+"="
		}
	}
	switch {
	case value != nil:
		found = valuesOf(value, prefix)
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			found = append(found, "--"+f.Name)
			if f.Tag != nil && f.Tag.Negatable != "" {
				found = append(found, "--no-"+f.Name)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				found = append(found, child.Name)
			}
		}
		if arguments < len(node.Positional) {
			found = append(found, valuesOf(node.Positional[arguments], "")...)
		}
	}
	found = slices.DeleteFunc(found, func(word string) bool { return !strings.HasPrefix(word, last) })
	slices.Sort(found)
	return found
}

func valuesOf(v *kong.Value, prefix string) (words []string) {
	if v.Enum != "" {
		for word := range strings.SplitSeq(v.Enum, ",") {
			words = append(words, prefix+strings.TrimSpace(word))
		}
	}
	return words
}

func flagNamed(flags []*kong.Flag, word string) *kong.Flag {
	for _, f := range flags {
		if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

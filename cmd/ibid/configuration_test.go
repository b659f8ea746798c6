package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

//go:generate go test . -run TestConfigurationPage -update

const configurationPage = "CONFIGURATION.md"

// CONFIGURATION.md is the command line's own definition, as a page.
func TestConfigurationPage(t *testing.T) {
	t.Setenv("HOME", "/home/you")
	none := func(string) string { return "" }
	data := defaultDataDir(none)
	var c cli
	parser, err := newParser(&c, none)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(configuration(parser.Model.Node), data, "~/.local/share/ibid")
	if *update {
		if err := os.WriteFile(configurationPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(configurationPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale (go generate ./cmd/ibid):\n%s", configurationPage, firstDifference(string(got), want))
	}
}

// A setting is a flag with the commands that take it.
type flagRow struct {
	group, flag, variable, value, help string
	commands                           []string
}

// configuration is the page of all flags below a command.
func configuration(root *kong.Node) string {
	var settings []*flagRow
	var commands strings.Builder
	var walk func(n *kong.Node, flags []*kong.Flag)
	walk = func(n *kong.Node, flags []*kong.Flag) {
		if n.Hidden {
			return
		}
		flags = append(slices.Clone(flags), n.Flags...)
		if len(n.Children) > 0 {
			for _, child := range n.Children {
				walk(child, flags)
			}
			return
		}
		name := strings.TrimPrefix(n.FullPath(), "ibid ")
		fmt.Fprintf(&commands, "| `%s` | %s |\n", cell(n.Summary()), cell(n.Help))
		for _, f := range flags {
			if f.Hidden || f.Name == "help" || f.Name == "version" {
				continue
			}
			s := describe(f)
			i := slices.IndexFunc(settings, func(o *flagRow) bool {
				return o.group == s.group && o.flag == s.flag && o.value == s.value && o.help == s.help
			})
			if i < 0 {
				settings, i = append(settings, s), len(settings)
			}
			settings[i].commands = append(settings[i].commands, name)
		}
	}
	walk(root, nil)

	var b strings.Builder
	b.WriteString("# Configuration\n\nMade from the command line's own definition by `go generate ./cmd/ibid`; a test fails when it is stale.\n\n" +
		"Every setting is a flag, and nearly every flag has an environment variable that gives its default; those of `keys make`, `copy` and the `--data` of `eval` have none. The flag wins. There is no configuration file. " +
		"A list of values is separated by commas. A switch is on with `true` in its variable, and off with `false`; those that are on unless told otherwise have a `--no-` form or take `=false`.\n\n" +
		"The key for a model's endpoint is no flag, because other users of a machine can read command lines: it comes from `OPENAI_API_KEY`, or from the file that `--api-key-file` names.\n\n" +
		"## Commands\n\n| command | what it does |\n|---|---|\n" + commands.String())
	var groups []string
	for _, s := range settings {
		if !slices.Contains(groups, s.group) {
			groups = append(groups, s.group)
		}
	}
	slices.Sort(groups)
	for _, group := range groups {
		title := group
		if title == "" {
			title = "Further flags"
		}
		fmt.Fprintf(&b, "\n## %s\n\n| flag | variable | default | what | of |\n|---|---|---|---|---|\n", title)
		for _, s := range settings {
			if s.group == group {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.flag, code(s.variable), code(s.value), cell(s.help), strings.Join(s.commands, ", "))
			}
		}
	}
	return b.String()
}

func describe(f *kong.Flag) *flagRow {
	s := &flagRow{flag: "--" + f.Name, variable: flagEnvironment(f.Name, f.Tag), value: f.Default, help: f.Help}
	if f.Group != nil {
		s.group = f.Group.Title
	}
	if f.Tag != nil && f.Tag.Negatable != "" {
		s.flag = "--[no-]" + f.Name
	} else if !f.IsBool() {
		s.flag += " " + strings.ToUpper(f.FormatPlaceHolder())
	}
	return s
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

// cell is text that may stand in a table, and is no link there.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "](", `]\(`).Replace(strings.Join(strings.Fields(s), " "))
}

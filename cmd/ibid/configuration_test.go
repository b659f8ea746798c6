package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"ibid/data/datatest"
)

//go:generate go test . -run TestConfigurationPage -update

const configurationPage = "CONFIGURATION.md"

// TestConfigurationPage checks that CONFIGURATION.md is generated from the definition of
// the command line.
func TestConfigurationPage(t *testing.T) {
	t.Setenv("HOME", "/home/you")
	none := func(string) string { return "" }
	data := defaultDataDir(none)
	var c cli
	parser, err := newParser(&c, none)
	must(t, err)
	want := strings.ReplaceAll(configuration(parser.Model.Node), data, "~/.local/share/ibid")
	datatest.Golden(t, configurationPage, want)
}

// A flagRow is a row for a flag, with the commands that have it.
type flagRow struct {
	group, flag, variable, value, help string
	commands                           []string
}

// configuration returns the page for all commands and flags below a command. Flags that
// several commands share are listed once for each set of commands.
func configuration(root *kong.Node) string {
	flags, commands := flagRows(root)
	var b strings.Builder
	b.WriteString("# Configuration\n\nGenerated from the definition of the command line by `go generate ./cmd/ibid`; a test fails when it " +
		"is out of date.\n\n" +
		"Every setting is a flag. The default of `--foo-bar` can be set by the environment variable `IBID_FOO_BAR`; the variables of other " +
		"names, and the flags without a variable (—), are listed. The flag wins. " +
		"Defaults follow a `=`. There is no configuration file. Separate the values of a list with commas. The variable of a switch is `true` " +
		"or `false`; a switch that is on by default has a `--no-` form.\n\n" +
		"The key of a model's endpoint is not a flag, because other users of a machine can read command lines: it is in `OPENAI_API_KEY`, " +
		"or in the file of `--api-key-file`.\n\n" +
		"## Commands\n\n| command | what it does |\n|---|---|\n" + commands)
	type list struct{ group, commands string }
	var lists []list
	rows := map[list]string{}
	for _, f := range flags {
		key := list{f.group, strings.Join(f.commands, ", ")}
		if rows[key] == "" {
			lists = append(lists, key)
		}
		rows[key] += f.row()
	}
	slices.SortStableFunc(lists, func(a, b list) int { return strings.Compare(a.group, b.group) })
	group := "none"
	for _, key := range lists {
		if key.group != group {
			group = key.group
			fmt.Fprintf(&b, "\n## %s\n", cmp.Or(group, "Command flags"))
		}
		fmt.Fprintf(&b, "\n%s:\n\n%s", key.commands, rows[key])
	}
	return b.String()
}

// flagRows collects the flags of the commands below a command, without repeats, and the
// rows of the table of commands.
func flagRows(root *kong.Node) (flags []*flagRow, commands string) {
	var walk func(n *kong.Node, inherited []*kong.Flag)
	walk = func(n *kong.Node, inherited []*kong.Flag) {
		if n.Hidden {
			return
		}
		all := append(slices.Clone(inherited), n.Flags...)
		for _, child := range n.Children {
			walk(child, all)
		}
		if len(n.Children) > 0 {
			return
		}
		name := strings.TrimPrefix(n.FullPath(), "ibid ")
		commands += fmt.Sprintf("| `%s` | %s |\n", strings.TrimSuffix(cell(n.Summary()), " [flags]"), cell(n.Help))
		for _, f := range all {
			if f.Hidden || f.Name == "help" || f.Name == "version" {
				continue
			}
			row := describe(f)
			i := slices.IndexFunc(flags, func(o *flagRow) bool {
				return o.group == row.group && o.flag == row.flag && o.value == row.value && o.help == row.help
			})
			if i < 0 {
				flags, i = append(flags, row), len(flags)
			}
			flags[i].commands = append(flags[i].commands, name)
		}
	}
	walk(root, nil)
	return flags, commands
}

func (f *flagRow) row() string {
	variable := ""
	if usual := variableOf(strings.Fields(strings.NewReplacer("--[no-]", "", "--", "").Replace(f.flag))[0], nil); f.variable == "" {
		variable = " (—)"
	} else if f.variable != usual || !strings.HasPrefix(usual, "IBID_") {
		variable = " (`" + f.variable + "`)"
	}
	if f.value != "" {
		variable += " = " + code(f.value)
	}
	return fmt.Sprintf("- `%s`%s: %s\n", f.flag, variable, cell(f.help))
}

func describe(f *kong.Flag) *flagRow {
	row := &flagRow{flag: "--" + f.Name, variable: variableOf(f.Name, f.Tag), value: f.Default, help: helpOf(f.Value)}
	if f.Group != nil {
		row.group = f.Group.Title
	}
	if f.Tag != nil && f.Tag.Negatable != "" {
		row.flag = "--[no-]" + f.Name
	} else if !f.IsBool() {
		row.flag += " " + strings.ToUpper(f.FormatPlaceHolder())
	}
	return row
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

// cell escapes text for a table cell, so that it does not become a link.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "](", `]\(`).Replace(strings.Join(strings.Fields(s), " "))
}

func TestIsNear(t *testing.T) {
	t.Parallel()
	for _, row := range datatest.Rows(t, "testdata/tables.txt", "near") {
		if got := isNear(row[0]); fmt.Sprint(got) != row[1] {
			t.Errorf("isNear(%q) = %t, want %s", row[0], got, row[1])
		}
	}
}

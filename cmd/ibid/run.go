package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"ibid/ingest"
)

// cli is the whole command line. A flag --foo-bar can be given by the
// environment variable IBID_FOO_BAR too; the flag wins.
type cli struct {
	Version kong.VersionFlag `help:"Print the version and stop."`

	Serve     serveCmd     `cmd:"" help:"Answer questions in a browser and over HTTP. Folders given here are ingested in the background."`
	Ask       askCmd       `cmd:"" help:"Answer one question on the terminal, with citations."`
	MCP       mcpCmd       `cmd:"" name:"mcp" help:"Answer programs that speak the Model Context Protocol on standard input and output."`
	Search    searchCmd    `cmd:"" help:"Show the passages found for a question, without an answer."`
	Summarize summarizeCmd `cmd:"" help:"Summarize a file, a folder or standard input with a model, cited by section and page."`
	Ingest    ingestCmd    `cmd:"" help:"Read folders into the data directory. A second run reads only what changed."`
	Keys      keysCmd      `cmd:"" help:"Make, list and revoke the keys that let people into a server."`
	Forget    forgetCmd    `cmd:"" help:"Remove an ingested folder and all its documents from the data directory."`
	Reembed   reembedCmd   `cmd:"" help:"Embed everything anew with the embedding model in use. An interrupted run goes on where it stopped."`
	Copy      copyCmd      `cmd:"" help:"Copy the library, or one collection, to another store: a data directory or a database. Nothing is embedded anew."`
	Verify    verifyCmd    `cmd:"" help:"Compare everything stored with its checksums, and change nothing. Exit code 4 when something is damaged."`
	Backup    backupCmd    `cmd:"" help:"Copy the library into one file, also while Ibid runs, and verify the copy."`
	Compact   compactCmd   `cmd:"" help:"Give the space of what was deleted back to the disk."`
	Doctor    doctorCmd    `cmd:"" help:"Say what is in use and what is wrong, with the next step. With --model, try the model's endpoint."`
	Eval      evalCmd      `cmd:"" help:"Measure Ibid on questions whose answers are known: the searches, the gate, the answers."`
	Cite      citeCmd      `cmd:"" help:"Turn the citation markers in any model's output into numbered sources: a filter from standard input to standard output."`

	Completion completionCmd `cmd:"" help:"Print what a shell needs to complete commands and flags: add 'source <(ibid completion bash)' to ~/.bashrc."`
	Complete   completeCmd   `cmd:"" hidden:""`
}

// surroundings are what a command has of the outside world.
type surroundings struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run carries out one command line. What a command shows goes to stdout,
// what it has to say about itself to stderr.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	var c cli
	var exited bool
	var help bytes.Buffer
	parser, err := newParser(&c, getenv,
		kong.Writers(&help, stderr),
		kong.Exit(func(int) { exited = true }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(surroundings{getenv, stdin, stdout, stderr}),
	)
	if err != nil {
		return fmt.Errorf("reading the command line's own definition: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	kctx, err := parser.Parse(args)
	if exited { // --help or --version
		_, err := stdout.Write(help.Bytes())
		return err
	}
	if err != nil {
		var parse *kong.ParseError
		command, hint := "", ""
		if errors.As(err, &parse) && parse.Context != nil {
			for _, word := range strings.Fields(parse.Context.Command()) {
				if strings.HasPrefix(word, "<") { // an argument
					break
				}
				command += word + " "
			}
			hint = hintOn(parse.Context.Selected(), err)
		}
		return usageError("%w%s (see 'ibid %s--help')", err, hint, command)
	}
	return kctx.Run()
}

// A hinter is a command that says more of an argument or a flag that is
// missing, by the name that the help has for it.
type hinter interface{ hints() map[string]string }

// hintOn is what a command has to say of what an error names.
func hintOn(command *kong.Node, err error) string {
	if command == nil || !command.Target.IsValid() {
		return ""
	}
	h, ok := command.Target.Interface().(hinter)
	if !ok {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(h.hints())) {
		if strings.Contains(err.Error(), name) {
			return ": " + h.hints()[name]
		}
	}
	return ""
}

// newParser makes what reads a command line into c.
func newParser(c *cli, getenv func(string) string, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append(options,
		kong.Name("ibid"),
		kong.Description("Ask a folder of documents. Answers carry numbered citations that open the exact passage; what the documents do not say, Ibid does not say."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"version": built(), "data": defaultDataDir(getenv), "stores": exampleStores(), "default_collection": ingest.DefaultCollection},
		patience(),
		kong.ValueFormatter(helpWithEnv),
		kong.Resolvers(environment(getenv)),
	)...)
}

// environmentName is the variable that gives a flag its default.
func environmentName(flag string) string {
	switch flag {
	case "help", "version":
		return ""
	case "base-url":
		return "OPENAI_BASE_URL"
	}
	return "IBID_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// flagEnvironment is the variable of a flag; a flag with the tag "noenv" has none.
func flagEnvironment(name string, tag *kong.Tag) string {
	if tag != nil && tag.Has("noenv") {
		return ""
	}
	return environmentName(name)
}

func environment(getenv func(string) string) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		name := flagEnvironment(flag.Name, flag.Tag)
		if name == "" {
			return nil, nil
		}
		if v := getenv(name); v != "" {
			return v, nil
		}
		return nil, nil
	})
}

func helpWithEnv(value *kong.Value) string {
	if value.Flag == nil {
		return value.Help
	}
	help := strings.TrimSuffix(value.Help, ".")
	if value.Default != "" {
		help += "; default " + value.Default
	}
	if name := flagEnvironment(value.Flag.Name, value.Tag); name != "" {
		help += " ($" + name + ")"
	}
	return help + "."
}

// defaultDataDir is where the data directory is unless --data says otherwise:
// the folder in which each system keeps a user's application data; empty when
// there is none.
func defaultDataDir(getenv func(string) string) string {
	home, err := os.UserHomeDir()
	if err != nil && getenv("XDG_DATA_HOME") == "" && getenv("LOCALAPPDATA") == "" {
		return ""
	}
	switch runtime.GOOS {
	case "windows":
		if dir := getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "ibid")
		}
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "ibid")
	}
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ibid")
	}
	return filepath.Join(home, ".local", "share", "ibid")
}

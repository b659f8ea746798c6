package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ibid/answer/openai/openaitest"
	"ibid/cite"
	"ibid/data/datatest"
	"ibid/ingest/site"
)

var must = datatest.Must

// TestMain lets the test binary act as the program: as the reader process of a dangerous
// format, and as the command "ibid" of the scripts.
func TestMain(m *testing.M) {
	if code, child := site.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); child {
		os.Exit(code)
	}
	testscript.Main(waitingTests{m}, map[string]func(){
		"ibid":       func() { os.Exit(realMain(os.Args[1:])) },
		"ibid-relay": func() { os.Exit(runRelay(os.Args[1], os.Stdout)) },
		"ibid-shell": func() { os.Exit(runShell(os.Stdin, os.Stdout)) },
	})
}

// waitingTests runs more tests in parallel than the machine has processors, since most of
// them wait for servers and processes.
type waitingTests struct{ *testing.M }

func (m waitingTests) Run() int {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := parallel.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	defer func() {
		if chromiumProcess.close != nil {
			chromiumProcess.close()
		}
	}()
	return m.M.Run()
}

// TestScripts runs the scripts in testdata/script, each in an empty folder with its data
// directory. $SCRIPTED is the address of a model that keeps every passage and answers with
// the line of the first author in its prompt, if any.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	must(t, err)
	runScripts(t, scripts, nil)
}

// TestScriptsOnServers runs the scripts that don't use the files of a data directory on
// each kind of store on a server. The scripts of served run only here.
func TestScriptsOnServers(t *testing.T) {
	t.Parallel()
	served, err := filepath.Glob("testdata/script/served/*.txtar")
	must(t, err)
	scripts := slices.Clone(served)
	for _, name := range []string{"ask", "ingest", "keys", "original", "prompts", "sections", "summarize"} {
		scripts = append(scripts, "testdata/script/"+name+".txtar")
	}
	stores := servedStores(t)
	if len(stores) == 0 {
		t.Skip("no server to test with")
	}
	for name, fresh := range stores {
		variables := func(index string) func(env *testscript.Env) {
			return func(env *testscript.Env) {
				env.Setenv("IBID_STORE", fresh(env.T().(testing.TB)))
				env.Setenv("IBID_INDEX", index)
			}
		}
		t.Run(name, func(t *testing.T) { runScripts(t, scripts, variables("")) })
		if cluster := os.Getenv("IBID_TEST_WEAVIATE"); cluster != "" {
			t.Run(name+" and Weaviate", func(t *testing.T) { runScripts(t, served, variables(cluster)) })
		}
	}
}

// scriptedReplies are the replies of the scripted models with other names.
var scriptedReplies = map[string]openaitest.Reply{
	"opens":     {Text: "The chart room opens at nine.[1]"},
	"elephants": {Text: "The chart room opens at nine and closes at five [1]. Elephants may come in on Sundays [1]."},
	"cut":       {Text: "The chart room opens at nine and closes at five [1]. And then", Finish: "length"},
}

// rerankUnlessGone reranks for every model except the one named "gone".
func rerankUnlessGone(r openaitest.Request) (reply openaitest.Reply) {
	if r.Model == "gone" {
		reply.Fault = openaitest.NoModel
	}
	return reply
}

// runScripts runs scripts; served sets the variables of a store on a server, if any.
func runScripts(t *testing.T, scripts []string, served func(env *testscript.Env)) {
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "runs": runs, "serve": serveIn, "stops": stopIn,
			"http": requestIn, "let": letIn, "site": siteIn},
		Condition: func(what string) (bool, error) {
			if what != "served" { // by a store on a server
				return false, fmt.Errorf("unknown condition %q", what)
			}
			return served != nil, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("IBID_DATA", env.WorkDir+"/.data")
			if served != nil {
				served(env)
			}
			env.Setenv("IBID_NO_SELF_TEST", "true")
			env.Setenv("LIBRARY", moduleRoot(t)+"/data/library")
			author := regexp.MustCompile(`(?m)^Author: .*`)
			server := httptest.NewServer(&openaitest.Handler{Rerank: rerankUnlessGone, Reply: openaitest.Rules(
				openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}},
				openaitest.Rule{Func: func(r openaitest.Request) openaitest.Reply {
					if reply, known := scriptedReplies[r.Model]; known {
						return reply
					}
					return openaitest.Reply{Text: author.FindString(r.User) + " [1]"}
				}},
			)})
			env.Defer(server.Close)
			env.Setenv("SCRIPTED", server.URL+"/v1")
			env.Values["test"], env.Values["servers"] = env.T().(testing.TB), map[string]running{}
			return startShell(env)
		},
	})
}

// runs runs a command line that must succeed, or fail with !: runs ibid ARG…
func runs(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || args[0] != "ibid" {
		ts.Fatalf("usage: runs ibid ARG…")
	}
	if code := runIn(ts, args[1:]); (code == exitDone) == neg {
		ts.Fatalf("exit code %d", code)
	}
}

// exits runs a command line that must end with an exit code: exits CODE ibid ARG…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "ibid" {
		ts.Fatalf("usage: exits CODE ibid ARG…")
	}
	if code, want := runIn(ts, args[2:]), args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// serveIn starts servers, sets the variable of each name to the server's address, and waits
// until the folders are read: serve NAME,… ARG…. Several servers have separate data
// directories.
func serveIn(ts *testscript.TestScript, _ bool, args []string) {
	t, values, names := ts.Value("test").(testing.TB), programVariables(ts), strings.Split(args[0], ",")
	for _, name := range names {
		words := args[1:]
		if len(names) > 1 {
			words = append([]string{"--data", ts.MkAbs(name)}, words...)
		}
		server := startWith(t, func(name string) string { return values[name] }, words...)
		ts.Defer(server.stop)
		ts.Value("servers").(map[string]running)[name] = server
		ts.Setenv(name, server.url)
	}
	for _, name := range names {
		ready(t, ts.Getenv(name))
	}
}

// stopIn stops a server and prints its log: stops NAME
func stopIn(ts *testscript.TestScript, _ bool, args []string) {
	server := ts.Value("servers").(map[string]running)[args[0]]
	server.stop()
	fmt.Fprint(ts.Stdout(), server.log)
}

// requestIn sends a request with the key $KEY and prints the reply. It repeats the request
// until the reply matches one expression, or no longer matches another: http STATUS METHOD
// URL [-until REGEXP] [-gone REGEXP] [-header 'NAME: VALUE'] [BODY|@FILE]
func requestIn(ts *testscript.TestScript, _ bool, args []string) {
	until, gone := regexp.MustCompile(""), regexp.MustCompile(`\A\z.`)
	headers := []string{"Content-Type: application/json"}
	words := args[3:]
	for ; len(words) > 1 && strings.HasPrefix(words[0], "-"); words = words[2:] {
		switch words[0] {
		case "-until":
			until = regexp.MustCompile(words[1])
		case "-gone":
			gone = regexp.MustCompile(words[1])
		default:
			headers = append(headers, words[1])
		}
	}
	t, body := ts.Value("test").(testing.TB), strings.Join(words, " ")
	if name, isFile := strings.CutPrefix(body, "@"); isFile {
		body = ts.ReadFile(name)
	}
	eventually(t, strings.Join(args, " "), func() bool {
		resp := asked(t, args[1], args[2], ts.Getenv("KEY"), body, headers...)
		reply, err := io.ReadAll(resp.Body)
		ts.Check(errors.Join(err, resp.Body.Close()))
		if !until.Match(reply) || gone.Match(reply) {
			return false
		}
		fmt.Fprintf(ts.Stdout(), "%s", reply)
		if strconv.Itoa(resp.StatusCode) != args[0] {
			ts.Fatalf("status = %s, want %s: %s", resp.Status, args[0], reply)
		}
		return true
	})
}

// letIn sets a variable to the first group of an expression in the last output: let NAME
// REGEXP
func letIn(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("the output doesn't match %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// siteIn serves a folder as a web site and sets a variable to its address: site NAME FOLDER
func siteIn(ts *testscript.TestScript, _ bool, args []string) {
	files := http.FileServer(http.Dir(ts.MkAbs(args[1])))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Modified-Since") // a file may change twice within a second
		files.ServeHTTP(w, r)
	}))
	ts.Defer(site.Close)
	ts.Setenv(args[0], site.URL)
}

// ibid runs one command line in this process.
func ibid(t testing.TB, data string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out bytes.Buffer
	var errs lockedBuffer
	code = exitCode(run(t.Context(), args, variables(data), strings.NewReader(""), &out, &errs), &errs)
	return out.String(), errs.String(), code
}

// mustRun is ibid for a command that must succeed.
func mustRun(t testing.TB, data string, args ...string) (stdout string) {
	t.Helper()
	stdout, stderr, code := ibid(t, data, args...)
	if code != exitDone {
		t.Fatalf("ibid %q: exit code %d: %s%s", args, code, stdout, stderr)
	}
	return stdout
}

// printed is mustRun for a command that prints JSON, decoded.
func printed[T any](t testing.TB, data string, args ...string) T {
	t.Helper()
	return decoded[T](t, []byte(mustRun(t, data, args...)))
}

// ingested writes files to a folder, ingests it, and returns the data directory.
func ingested(t testing.TB, files map[string]string) (data string) {
	t.Helper()
	data, folder := t.TempDir(), t.TempDir()
	writeFiles(t, folder, files)
	mustRun(t, data, "ingest", folder)
	return data
}

// variables returns the environment of a command that runs in this process.
func variables(data string) func(string) string {
	return func(name string) string {
		switch name {
		case "IBID_DATA":
			return data
		case "IBID_NO_SELF_TEST":
			return "true" // tests count the calls to their model
		}
		return ""
	}
}

// command returns the program as a separate process with a clean environment. TestMain has
// put it on the PATH.
func command(ctx context.Context, data string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ibid", args...)
	cmd.Env = append(os.Environ(), "IBID_DATA="+data, "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "IBID_MODEL=",
		"IBID_STORE=", "IBID_STORE_PASSWORD=", "IBID_NO_SELF_TEST=true")
	return cmd
}

// A lockedBuffer is a buffer that goroutines may write and read concurrently.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A running is a server that a test started.
type running struct {
	url  string
	pid  int           // 0 if it runs in this process
	log  *lockedBuffer // its standard error
	stop func()        // stops the server, waits for it, and checks its exit code
}

// serve starts a server and returns its address. It stops when the test ends.
func serve(t *testing.T, data string, args ...string) (url string) {
	t.Helper()
	return start(t, data, args...).url
}

// start starts a server in this process. It stops when the test ends.
func start(t testing.TB, data string, args ...string) running {
	t.Helper()
	return startWith(t, variables(data), args...)
}

func startWith(t testing.TB, getenv func(string) string, args ...string) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	log := &lockedBuffer{}
	ended := make(chan int, 1)
	go func() {
		err := run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), getenv, strings.NewReader(""), in, log)
		if ctx.Err() == nil {
			_ = in.CloseWithError(err)
		}
		_ = in.Close()
		ended <- exitCode(err, log)
	}()
	server := running{log: log, stop: sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != exitDone {
			t.Errorf("the server's exit code is %d\n%s", code, log)
		}
	})}
	t.Cleanup(server.stop)
	server.url = addressIn(t, bufio.NewReader(out))
	return server
}

// startProcess starts a server as a separate process. It stops when the test ends.
func startProcess(t *testing.T, data string, args ...string) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := command(ctx, data, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	log := &lockedBuffer{}
	cmd.Stderr = log
	url := listening(t, cmd)
	server := running{url: url, pid: cmd.Process.Pid, log: log, stop: sync.OnceFunc(func() {
		cancel()
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitDone {
			t.Errorf("the server ended with %v\n%s", err, log)
		}
	})}
	t.Cleanup(server.stop)
	return server
}

// listening starts a server process, which the caller must stop, and returns its address.
func listening(t *testing.T, cmd *exec.Cmd) (url string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return addressIn(t, bufio.NewReader(out))
}

// addressIn reads the address from the first line of a server's output.
func addressIn(t testing.TB, out *bufio.Reader) (url string) {
	t.Helper()
	line, err := out.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the server's first line is %q: %v", line, err)
	}
	return url
}

// ready waits until the first sync is finished.
func ready(t testing.TB, url string) {
	t.Helper()
	eventually(t, "the first sync", func() bool {
		resp, err := http.Get(url + "/readyz")
		must(t, err)
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// eventually repeats a check until it succeeds. The limit of five minutes only keeps a test
// from hanging.
func eventually(t testing.TB, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for !check() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited five minutes for %s", what)
		}
	}
}

func ask(t *testing.T, url, question string) cite.Answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"question": question})
	must(t, err)
	return decoded[cite.Answer](t, fetch(t, "POST", url+"/api/ask", "application/json", string(body), http.StatusOK))
}

// decoded returns the decoded value of a JSON text.
func decoded[T any](t testing.TB, text []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// documents returns the ids of the documents of a server.
func documents(t *testing.T, url string) map[string]bool {
	t.Helper()
	list := decoded[struct {
		Documents []struct{ Document string }
	}](t, fetch(t, "GET", url+"/api/documents", "", "", http.StatusOK))
	ids := map[string]bool{}
	for _, d := range list.Documents {
		ids[d.Document] = true
	}
	return ids
}

// A shellCommand is a command line for a shell, and a shellReply its output and exit code.
type (
	shellCommand struct {
		Dir  string
		Args []string
		Env  map[string]string
	}
	shellReply struct {
		Stdout, Stderr string
		Code           int
	}
)

// A shell is a process that runs the command lines of a script, since a process for each
// would be slow.
type shell struct {
	in  *json.Encoder
	out *json.Decoder
}

// startShell starts the shell of a script; it ends with the script.
func startShell(env *testscript.Env) error {
	cmd := exec.Command("ibid-shell")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "IBID_") || strings.HasPrefix(v, "OPENAI_") })
	in, badIn := cmd.StdinPipe()
	out, badOut := cmd.StdoutPipe()
	if err := errors.Join(badIn, badOut, cmd.Start()); err != nil {
		return err
	}
	env.Defer(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	env.Values["shell"] = shell{json.NewEncoder(in), json.NewDecoder(out)}
	return nil
}

// runShell is the main function of a shell.
func runShell(in io.Reader, out io.Writer) int {
	commands, replies := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var c shellCommand
		if err := commands.Decode(&c); err != nil {
			return exitDone // the script has ended
		}
		if err := errors.Join(os.Chdir(c.Dir), os.Setenv("HOME", c.Env["HOME"])); err != nil {
			return exitFailed
		}
		var stdout, stderr bytes.Buffer
		getenv := func(name string) string { return c.Env[name] }
		code := exitCode(run(context.Background(), c.Args, getenv, strings.NewReader(""), &stdout, &stderr), &stderr)
		if err := replies.Encode(shellReply{stdout.String(), stderr.String(), code}); err != nil {
			return exitFailed
		}
	}
}

// programVariables returns the variables of a script that are passed on to the program.
func programVariables(ts *testscript.TestScript) map[string]string {
	values := map[string]string{}
	for name := range strings.FieldsSeq("HOME XDG_DATA_HOME LOCALAPPDATA IBID_DATA IBID_STORE IBID_STORE_PASSWORD IBID_STORE_WAIT " +
		"IBID_INDEX IBID_NO_SELF_TEST OPENAI_BASE_URL") {
		values[name] = ts.Getenv(name)
	}
	return values
}

// runIn runs a command line of a script and returns the exit code.
func runIn(ts *testscript.TestScript, args []string) int {
	c := shellCommand{Dir: ts.MkAbs("."), Args: args, Env: programVariables(ts)}
	sh := ts.Value("shell").(shell)
	var reply shellReply
	ts.Check(errors.Join(sh.in.Encode(c), sh.out.Decode(&reply)))
	fmt.Fprint(ts.Stdout(), reply.Stdout)
	fmt.Fprint(ts.Stderr(), reply.Stderr)
	return reply.Code
}

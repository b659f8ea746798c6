package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"ibid/retrieve/state/statetest"
)

// storeServer is the host name of stores on the pages.
const storeServer = "db.example.org"

// TestPagesStores runs the commands of the pages about stores on servers in their
// order, on the sample library. The prelude substitutes the servers of the tests.
// A served or copied library must answer, with citations.
func TestPagesStores(t *testing.T) {
	t.Parallel()
	server := os.Getenv(statetest.Env)
	if server == "" {
		t.Skipf("%s is not set: '.ci/postgres DIR' starts a server and prints what to set", statetest.Env)
	}
	address, err := url.Parse(statetest.Database(t, server, "library"))
	must(t, err)
	const question, answer = "Where can I leave my car and what does it cost?", "costs 4 euros a day for everybody else.[1]"
	script := &strings.Builder{}
	type check struct{ at, command string }
	var checks []check
	fmt.Fprintln(script, "ibid ingest data/library")
	kinds := make(map[string]bool)
	for _, page := range pages {
		for _, b := range blocksOf(t, page) {
			for i, line := range strings.Split(b.text, "\n") {
				if b.kind != "sh" || !strings.Contains(line, storeServer) {
					continue
				}
				ask := "ibid ask '" + question + "'"
				command, _, _ := strings.Cut(line, " #")
				switch words := strings.Fields(command); words[1] {
				case "serve":
					ask = `curl -s http://127.0.0.1:8080/api/ask -d '{"question":"` + question + `"}'`
					kinds["serve "+strings.SplitN(words[3], ":", 2)[0]] = true
				case "copy":
					to := words[5]
					if strings.Contains(to, "://") {
						ask += " --store " + to
					} else {
						ask += " --data " + to
					}
					kinds["copy "+strings.SplitN(to, ":", 2)[0]] = true
				default:
					t.Fatalf("%s:%d: this test cannot check %s", page, b.line+i, command)
				}
				fmt.Fprintf(script, "%s\nprintf '\\001'\n%s\nprintf '\\001'\n", line, ask)
				checks = append(checks, check{fmt.Sprintf("%s:%d", page, b.line+i), command})
			}
		}
	}
	for _, kind := range []string{"serve postgres", "copy postgres", "copy ~/ibid-copy"} {
		if !kinds[kind] {
			t.Errorf("no page shows %s: %v", kind, kinds)
		}
	}
	out := typeInto(t, script.String(), "POSTGRES="+address.User.String()+"@"+address.Host)
	sections := strings.Split(out, "\x01")
	if len(sections) != 2*len(checks)+1 {
		t.Fatalf("%d commands ended, of %d:\n%s", len(sections)/2, len(checks), last(out, 4000))
	}
	for i, c := range checks {
		if !strings.Contains(sections[2*i+1], answer) {
			t.Errorf("%s: after\n%s\n%s\nthe answer is\n%s", c.at, c.command, sections[2*i], sections[2*i+1])
		}
	}
}

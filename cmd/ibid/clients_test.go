package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// clientPrograms call every method of the clients. The pages' examples are run too.
var clientPrograms = map[string]string{
	"py": `
import time
from ibid import Ibid, IbidError
ibid = Ibid("SERVER", timeout=60)
change = ibid.upload("winter sports.md", "# Winter\n\nThe ice rink opens in December.\n", tags=["ice", "snow"], author="Ada")
print(change["document"], change["action"], ibid.label(change["document"], date="2024-12", author="")["action"])
print([d["meta"]["tags"] + d["meta"]["given"] for d in ibid.documents() if d["document"] == change["document"]])
print([p["document"] for p in ibid.search("When does the ice rink open?", top_k=1)])
print(sum(1 for _ in ibid.documents(page=7)) == sum(1 for _ in ibid.documents()), [c["collection"] for c in ibid.collections()])
run = ibid._json("POST", "/api/runs", {"question": "When does the ice rink open?"})["id"]
kinds = [e.kind for e in ibid.follow(run)]
print(kinds[0], kinds[-1], kinds.count("done"), ibid.run(run)["answer"]["sources"][0]["state"])
ibid.rate(run, 1, "right")
print(ibid.cite("Open in winter [2].", [{"text": "Closed."}, {"text": "Open in winter."}])["text"])
print(*[a["answer"]["answered"] if "answer" in a else a["error"]["code"] for a in ibid.batch(["When does the ice rink open?", {"question": ""}])])
ibid.delete(change["document"])
for event in ibid.stream("What does a swinging mooring cost?"):
    break  # stops the answer
for call in (lambda: ibid.ask(""), lambda: ibid.summarize(change["document"]), lambda: Ibid("http://127.0.0.1:9").ask("x")):
    try:
        call()
    except IbidError as err:
        print(err.status, err.code)
`,
	"js": `
import { Ibid, IbidError } from "ibid-client";
const ibid = new Ibid("SERVER");
const change = await ibid.upload("winter sports.md", "# Winter\n\nThe ice rink opens in December.\n", { tags: ["ice", "snow"], author: "Ada" });
console.log(change.document, change.action, (await ibid.label(change.document, { date: "2024-12", author: "" })).action);
for await (const d of ibid.documents()) if (d.document === change.document) console.log(d.meta.tags + d.meta.given);
console.log((await ibid.search("When does the ice rink open?", { top_k: 1 })).map((p) => p.document).join());
const count = async (page) => { let n = 0; for await (const _ of ibid.documents(page)) n++; return n; };
console.log((await count(7)) === (await count()), (await ibid.collections()).map((c) => c.collection).join());
const { id } = await (await fetch("SERVER/api/runs", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ question: "When does the ice rink open?" }) })).json();
const kinds = [];
for await (const { kind } of ibid.follow(id)) kinds.push(kind);
console.log(kinds[0], kinds.at(-1), kinds.filter((k) => k === "done").length, (await ibid.run(id)).answer.sources[0].state);
await ibid.rate(id, 1, "right");
console.log((await ibid.cite("Open in winter [2].", [{ text: "Closed." }, { text: "Open in winter." }])).text);
console.log((await ibid.batch(["When does the ice rink open?", { question: "" }])).map((a) => a.error?.code ?? a.answer.answered).join(" "));
await ibid.delete(change.document);
for await (const _ of ibid.stream("What does a swinging mooring cost?")) break;
for (const call of [() => ibid.ask(""), () => ibid.summarize({ document: change.document }), () => new Ibid("http://127.0.0.1:9").ask("x")]) {
  await call().catch((err) => { if (!(err instanceof IbidError)) throw err; console.log(err.status, err.code); });
}
`,
}

const clientOutput = `uploads/winter sports.md added updated
ice, snowdate, tags
uploads/winter sports.md
true default
retrieved done 1 unchanged
Open in winter [1].
true empty_question
400 empty_question
404 document_not_found
0 unreachable
`

// The clients do what their pages say, through a proxy that cuts every other stream of events.
func TestClients(t *testing.T) {
	t.Parallel()
	server := serve(t, t.TempDir(), filepath.Join(moduleRoot(t), "data", "library"))
	ready(t, server)
	proxy, cuts := cuttingProxy(t, server)
	for kind, test := range map[string]struct{ language, program, file string }{
		"py": {"python", "python3", "program.py"}, "js": {"js", "node", "program.mjs"},
	} {
		t.Run(kind, func(t *testing.T) {
			if _, err := exec.LookPath(test.program); err != nil {
				t.Skipf("%s is not here", test.program)
			}
			client := filepath.Join(moduleRoot(t), "web", "clients", kind)
			dir := t.TempDir()
			modules := filepath.Join(dir, "node_modules")
			must(t, errors.Join(os.Mkdir(modules, 0o755), os.Symlink(client, filepath.Join(modules, "ibid-client"))))
			run := func(program string) string {
				file := filepath.Join(dir, test.file)
				must(t, os.WriteFile(file, []byte(program), 0o644))
				cmd := exec.CommandContext(t.Context(), test.program, file)
				cmd.Env = append(os.Environ(), "PYTHONPATH="+client, "PYTHONDONTWRITEBYTECODE=1")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				return string(out)
			}
			page := "web/clients/" + kind + "/README.md"
			blocks := blocksOf(t, page)
			for i, b := range blocks {
				if b.kind != test.language {
					continue
				}
				if got, want := run(strings.ReplaceAll(b.text, "http://127.0.0.1:8080", proxy)), blocks[i+1].text; got != want {
					t.Errorf("%s prints\n%s\nand the page says\n%s", page, got, want)
				}
			}
			got := run(strings.ReplaceAll(clientPrograms[kind], "SERVER", proxy))
			if got = strings.NewReplacer("['", "", "']", "", "True", "true").Replace(got); got != clientOutput {
				t.Errorf("got\n%s\nwant\n%s", got, clientOutput)
			}
		})
	}
	if cuts.Load() == 0 {
		t.Error("no stream was cut")
	}
}

// cuttingProxy forwards requests to a server, and cuts every other stream of events
// after 500 bytes.
func cuttingProxy(t *testing.T, server string) (address string, cuts *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(server)
	must(t, err)
	cuts = new(atomic.Int64)
	var streams atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method == http.MethodGet && strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") && streams.Add(1)%2 == 1 {
			r.Body = &cutBody{ReadCloser: r.Body, left: 500, cuts: cuts}
		}
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL, cuts
}

// A cutBody ends with an error after some bytes.
type cutBody struct {
	io.ReadCloser
	left int
	cuts *atomic.Int64
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.cuts.Add(1)
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
)

// A readingProgram prints a JSON object per line.
type readingProgram struct {
	cmd    *exec.Cmd
	lines  *bufio.Reader
	stderr bytes.Buffer
}

func startReading(t *testing.T, data string, args ...string) *readingProgram {
	t.Helper()
	p := &readingProgram{cmd: command(t.Context(), data, append([]string{"ingest", "--json"}, args...)...)}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	must(t, err)
	p.lines = bufio.NewReader(out)
	return p
}

// A line is a change, or the total.
type line struct {
	ingest.Change
	Total *tally `json:"total"`
}

// next reads a line; ok is false at the end.
func (p *readingProgram) next(t *testing.T) (l line, ok bool) {
	t.Helper()
	text, err := p.lines.ReadBytes('\n')
	if err == io.EOF && len(text) == 0 {
		return l, false
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		t.Fatalf("%v: %q\n%s", err, text, p.stderr.String())
	}
	return l, true
}

// end waits for the program and gives its exit code.
func (p *readingProgram) end(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func TestServeWatches(t *testing.T) {
	t.Parallel()
	folder, data := t.TempDir(), t.TempDir()
	root := filepath.Base(folder)
	writeFiles(t, folder, map[string]string{"a.md": "# Ferry\n\nIt leaves at nine.", "b.md": "# Crane\n\nIt lifts boats."})
	url := serve(t, data, folder)
	ready(t, url)
	writeFiles(t, folder, map[string]string{"c.md": "# Lamp\n\nThe lamp on the quay is lit at dusk."})
	must(t, os.Remove(filepath.Join(folder, "b.md")))
	eventually(t, "the new file, and the end of the old one", func() bool {
		d := documents(t, url)
		return d[root+"/c.md"] && !d[root+"/b.md"]
	})
	if a := ask(t, url, "When is the lamp on the quay lit?"); !a.Answered || a.Sources[0].Document != root+"/c.md" {
		t.Errorf("%+v", a)
	}
}

// A file of a folder is read again by the server that reads the folder, and by no other;
// what does not belong to the folder is not.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "club")
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	inside, err := archive.Create("inside.md")
	must(t, err)
	_, err = inside.Write([]byte("# Inside\n\nPacked."))
	must(t, errors.Join(err, archive.Close()))
	writeFiles(t, folder, map[string]string{"a.md": "# Ferry\n\nIt leaves at nine.",
		"gone.md": "# Gone\n\nSoon.", "torn.txt": "%PDF-1.7 not a text",
		"packed.zip": packed.String(), ".ibidignore": "secret*\n", "secret.md": "# Secret", "out/b.md": "# Out", ".hidden/c.md": "# Hidden"})
	must(t, os.Symlink(".hidden", filepath.Join(folder, "linked")))
	reads := serve(t, t.TempDir(), "--no-watch", "--exclude", "out", folder)
	ready(t, reads)
	writeFiles(t, folder, map[string]string{"a.md": "# Ferry\n\nIt leaves at ten.", "torn.txt": "It is whole."})
	must(t, os.Remove(filepath.Join(folder, "gone.md")))
	answers := t.TempDir()
	if out, err := command(t.Context(), answers, "ingest", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tt := range []struct {
		method, name, body string
		status             int
		want               string
	}{
		{"POST", "a.md", "", 200, `"updated"`}, {"POST", "packed.zip/inside.md", "", 200, `"updated"`}, {"POST", "torn.txt", "", 200, `"added"`},
		{"POST", "gone.md", "", 404, "document_not_found"}, {"POST", "secret.md", "", 404, "document_not_found"},
		{"POST", "out/b.md", "", 404, "document_not_found"}, {"POST", ".hidden/c.md", "", 404, "document_not_found"},
		{"POST", "linked/c.md", "", 404, "document_not_found"}, {"POST", "..%2Fx.md", "", 404, "document_not_found"},
		{"DELETE", "a.md", "", 403, "not_an_upload"}, {"PATCH", "a.md", `{"tags":["x"]}`, 403, "not_an_upload"},
	} {
		if got := string(fetch(t, tt.method, reads+"/api/documents/club/"+tt.name, "", tt.body, tt.status)); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s", tt.method, tt.name, got)
		}
	}
	if a := ask(t, reads, "When does the ferry leave?"); !strings.Contains(a.Text, "ten") {
		t.Errorf("%+v", a)
	}
	list := decoded[struct{ Troubles []ingest.Change }](t, fetch(t, "GET", reads+"/api/documents", "", "", 200))
	if len(list.Troubles) != 1 || list.Troubles[0].Path != "linked" {
		t.Errorf("not read: %+v", list.Troubles)
	}
	if got := string(fetch(t, "POST", serve(t, answers)+"/api/documents/club/a.md", "", "", 422)); !strings.Contains(got, "only answers") {
		t.Error(got)
	}
}

// crowd makes a folder of n files of many kinds, and returns the expected outcome
// of each.
func crowd(t *testing.T, n int) (folder string, want map[string]ingest.Action) {
	t.Helper()
	folder = t.TempDir()
	files := make(map[string]string, n)
	want = make(map[string]ingest.Action, n)
	for i := range n {
		name, action := fmt.Sprintf("%02d/%d/", i%97, i%7), ingest.Added
		text := fmt.Sprintf("# Note %d\n\nOn day %d the harbour master counted %d boats.\n", i, i, i%31)
		switch i % 20 {
		case 13:
			name, text, action = name+fmt.Sprintf("empty%d.md", i), "", ingest.Skipped
		case 14:
			name, action = name+fmt.Sprintf("unread%d.xyz", i), ingest.Skipped
		case 15:
			name, text, action = name+fmt.Sprintf("lying%d.txt", i), "%PDF-1.7 not a text", ingest.Failed
		case 16:
			name, text = name+fmt.Sprintf("table%d.csv", i), fmt.Sprintf("Boat,Berth\nFulmar %d,A%d\n", i, i)
		case 17:
			name = name + fmt.Sprintf("ünïcödé 図 %d.txt", i)
		case 18:
			name = name + strings.Repeat("long", 55) + fmt.Sprintf("%d.txt", i)
		case 19:
			name, text = name+fmt.Sprintf("page%d.html", i), "<h1>Page</h1><p>"+text
		default:
			name += fmt.Sprintf("note%d.md", i)
		}
		files[name], want[name] = text, action
	}
	writeFiles(t, folder, files)
	return folder, want
}

// Every file of a large folder is listed once. An interrupted run resumes: the
// files it listed are stored.
func TestInterruptedIngestGoesOn(t *testing.T) {
	t.Parallel()
	n := datatest.Cases(t, 5_000)
	folder, want := crowd(t, n)
	data := t.TempDir()
	stored := map[string]bool{}
	for round, by := range []os.Signal{os.Interrupt, syscall.SIGKILL, os.Interrupt, nil} {
		p := startReading(t, data, folder)
		seen, added := map[string]ingest.Action{}, 0
		var total *tally
		for {
			l, ok := p.next(t)
			if !ok {
				break
			}
			if total = l.Total; total != nil {
				break
			}
			if seen[l.Path] != "" {
				t.Errorf("%s is listed twice", l.Path)
			}
			seen[l.Path] = l.Action
			action := want[l.Path]
			if stored[l.Path] {
				action = ingest.Unchanged
			}
			if l.Action != action && !(round == 2 && l.Action == ingest.Unchanged && action == ingest.Added) {
				t.Errorf("round %d: %s is %s, want %s: %s", round, l.Path, l.Action, action, l.Reason)
			}
			if l.Action == ingest.Unchanged {
				stored[l.Path] = true // it was killed before it listed it
			}
			if l.Action == ingest.Added {
				stored[l.Path] = true
				if added++; by != nil && added == n/20 {
					must(t, p.cmd.Process.Signal(by))
				}
			}
		}
		code := p.end(t)
		switch {
		case by == nil:
			if code != exitPartial || total == nil || len(seen) != len(want) || total.Seen != n ||
				total.Added+total.Updated+total.Unchanged+total.Renamed+total.Skipped+total.Failed != n || total.Removed != 0 {
				t.Errorf("exit code %d, %d of %d files told of, %+v\n%s", code, len(seen), n, total, p.stderr.String())
			}
		case total != nil:
			t.Errorf("round %d: it was done before it was interrupted: %+v", round, total)
		case by == os.Interrupt && (code != exitFailed || !strings.Contains(p.stderr.String(), "the next run resumes there")):
			t.Errorf("round %d: exit code %d\n%s", round, code, p.stderr.String())
		}
	}
	if n := len(documentsIn(t, data)); n != len(stored) && n != len(stored)+1 {
		t.Errorf("%d documents are stored, %d were told of", n, len(stored))
	}
}

// documentsIn returns the ids of the stored documents.
func documentsIn(t *testing.T, data string) map[string]bool {
	t.Helper()
	return documents(t, serve(t, data))
}

// TestCollections makes, renames and deletes collections of uploads.
func TestCollections(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	folder := t.TempDir()
	writeFiles(t, folder, hours)
	all := makeKey(t, data, "all", "--scope", "write")
	some := makeKey(t, data, "some", "--scope", "write", "--collection", "trips")
	two := makeKey(t, data, "two", "--scope", "write", "--collection", "harbour", "--collection", "trips")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "The club opens at noon.") }))
	t.Cleanup(site.Close)
	url := serve(t, data, "--auth", "on", "--fetch-private", folder) + "/api/"
	for _, step := range []struct {
		method, path, key, body string
		status                  int
	}{
		{"POST", "collections", all, `{"collection":"trips"}`, 201},
		{"POST", "collections", some, `{"collection":"other"}`, 403},
		{"POST", "collections", all, `{"collection":"../x"}`, 400},
		{"POST", "documents?name=ferry.md", some, "The ferry to Norderney leaves at nine.", 201},
		{"PATCH", "collections/trips", some, `{"collection":"travel"}`, 403},
		{"PATCH", "collections/default", all, `{"collection":"travel"}`, 404},
		{"PATCH", "collections/trips", all, `{"collection":"default"}`, 409},
		{"PATCH", "collections/trips", all, `{"collection":"travel"}`, 200},
		{"PATCH", "collections/trips", all, `{"collection":"travel"}`, 404},
		{"GET", "documents/trips/ferry.md", some, "", 200}, // the key follows
		{"DELETE", "documents/trips/ferry.md", some, "", 204},
		{"POST", "documents?name=bus.md", some, "The bus leaves at ten.", 201},
		{"POST", "documents?name=lines/train.md&collection=trips", all, "The train leaves at eleven.", 201},
		{"GET", "documents/trips-2/lines/train.md", all, "", 200},
		{"GET", "documents/trips-2/lines/train.md", some, "", 404},
		{"DELETE", "collections/travel", some, "", 403},
		{"DELETE", "collections/travel", all, "", 204},
		{"GET", "documents", some, "", 401}, // it was for this collection alone
		{"POST", "collections", all, `{"collection":"travel"}`, 201},
		{"GET", "documents", some, "", 401},
		{"GET", "documents", two, "", 200}, // it was for another one too
		{"POST", "documents?name=boat.md&collection=travel", two, "The boat leaves at one.", 403},
		{"DELETE", "collections/travel", all, "", 204},
		{"DELETE", "collections/travel", all, "", 404},
		{"DELETE", "collections/default", all, "", 404},
		{"POST", "documents?url=" + site.URL + "&collection=trips", two, "", 403},
		{"POST", "documents?url=" + site.URL + "&collection=a/b", all, "", 400},
		{"POST", "documents?url=" + site.URL + "&collection=trips", all, "", 202},
		{"POST", "documents?url=" + site.URL, all, "", 202},
		{"POST", "documents?url=" + site.URL + "&collection=other", all, "", 409},
		{"DELETE", "collections/trips", all, "", 404}, // it has a site
		{"GET", "documents/trips/bus.md", all, "", 404},
		{"GET", "documents/trips-2/lines/train.md", all, "", 200},
	} {
		if got := statusOf(t, step.method, url+step.path, step.key, step.body); got != step.status {
			t.Errorf("%s %s: status %d, want %d", step.method, step.path, got, step.status)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "collections", "trips")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the deleted folder: %v", err)
	}
	listed := func(url string) string {
		resp := asked(t, "GET", url+"collections", all, "")
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		return string(body)
	}
	copied := t.TempDir()
	mustRun(t, "", "copy", "--from", data, "--to", copied)
	url = serve(t, copied, "--auth", "on") + "/api/"
	if got := listed(url); !strings.Contains(got, `{"root":"trips-2","documents":1,"uploads":true}`) {
		t.Errorf("in the copy: %s", got)
	}
	if got := statusOf(t, "DELETE", url+"documents/trips-2/lines/train.md", all, ""); got != http.StatusNoContent {
		t.Errorf("deleting in the copy: status %d", got)
	}
	for place, want := range map[string]error{data: nil, copied: fs.ErrNotExist} {
		if _, err := os.Stat(filepath.Join(place, "collections", "trips-2", "lines", "train.md")); !errors.Is(err, want) {
			t.Errorf("the file in %s: %v", place, err)
		}
	}
}

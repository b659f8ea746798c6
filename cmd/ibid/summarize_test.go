package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// logbook writes a folder whose summary takes a call for each entry, and returns
// the flags for that.
func logbook(t *testing.T, entries int) (folder string, flags []string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "logbook")
	files := map[string]string{}
	for f := range 2 {
		var b strings.Builder
		fmt.Fprintf(&b, "# Log %d\n\n", f+1)
		for i := range entries / 2 {
			n := f*entries/2 + i + 1
			fmt.Fprintf(&b, "## Day %d\n\n%s\n\n", n,
				strings.Repeat(fmt.Sprintf("On day %d the crew made %d miles and saw nothing but water. ", n, 10+n), 12))
		}
		files[fmt.Sprintf("log%d.md", f+1)] = b.String()
	}
	writeFiles(t, folder, files)
	return folder, []string{"--model", "scripted", "--step-tokens", "300", "--context-tokens", "2048"}
}

var evidenceLabel = regexp.MustCompile(`(?m)^\[(\d+)\] |\[(\d+)\]\.`)

// miles is a scripted model whose replies depend on all of the prompt but its
// system part, and cite the first thing they are shown.
func miles(r openaitest.Request) openaitest.Reply {
	label := ""
	if m := evidenceLabel.FindStringSubmatch(r.User); m != nil {
		label = "[" + m[1] + m[2] + "]"
	}
	return openaitest.Reply{
		Text: fmt.Sprintf("The crew made %x miles %s.", sha256.Sum256([]byte(r.User)), label),
		// Not counted: the random marks of the fences would make a difference.
		PromptTokens: 2000,
	}
}

// A summary streams with numbered citations by section, and lists its steps.
func TestSummarize(t *testing.T) {
	t.Parallel()
	folder, flags := logbook(t, 6)
	h := &openaitest.Handler{Reply: miles}
	flags = append(flags, "--base-url", openaitest.Start(t, h))
	data := t.TempDir()

	out, errs, code := ibid(t, data, append([]string{"summarize", "--json", folder}, flags...)...)
	var sum summary
	if err := json.Unmarshal([]byte(out), &sum); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if !strings.HasPrefix(sum.Text, "The crew made ") || len(sum.Sources) != 1 || sum.Sources[0].Title != "Log 1 › Day 1" ||
		len(sum.Citations) != 1 {
		t.Errorf("got %+v", sum.Answer)
	}
	if len(sum.Steps) != 7 || len(sum.Drafts) != 6 || sum.Usage.Calls != 7 || sum.Usage.Looked != 6 {
		t.Errorf("%d steps, %d drafts, usage %+v", len(sum.Steps), len(sum.Drafts), sum.Usage)
	}
	roles := map[string]int{}
	for _, x := range h.Exchanges() {
		roles[x.Role]++
	}
	if fmt.Sprint(roles) != "map[combine:1 map:6]" {
		t.Errorf("calls %v", roles)
	}
	// A finished run is deleted.
	out, errs, code = ibid(t, data, "summarize", "--resume", sum.Run)
	if code != 1 || !strings.Contains(errs, "there is no unfinished run") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}

	out, errs, code = ibid(t, data, append([]string{"summarize", "--intermediate-steps", "--strategy", "refine", folder}, flags...)...)
	if code != 0 || !strings.HasPrefix(out, "The crew made ") || !strings.Contains(out, "\n 6. refine of 1 passage: its reply was used\n") ||
		!strings.Contains(out, "\ndraft of step 5:\nThe crew made ") || !strings.Contains(errs, "ibid: run ") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}

	// Standard input, as one call.
	cmd := command(t.Context(), data, append([]string{"summarize", "-"}, flags...)...)
	cmd.Stdin = strings.NewReader("The crew made land.")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(b), "The crew made ") || !strings.Contains(string(b), "[1] standard input") {
		t.Errorf("%v: %s%s", err, b, stderr.String())
	}
	if last := h.Exchanges()[len(h.Exchanges())-1]; last.Role != "answer" || !strings.Contains(last.User, "The crew made land.") {
		t.Errorf("the last call is %s of %s", last.Role, last.User)
	}
}

// A run that is killed at any of its calls resumes there: no completed call is
// repeated, and the summary is identical.
func TestSummarizeKilled(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"refine", "map-reduce"} {
		t.Run(strategy, func(t *testing.T) {
			entries := 30
			if strategy == "map-reduce" {
				entries = 28 // and calls that collapse and combine
			}
			folder, flags := logbook(t, entries)
			flags = append([]string{"summarize", "--json", "--strategy", strategy, "--parallel", "1", folder}, flags...)
			want := &killer{at: -1, answer: miles}
			url := openaitest.Start(t, &openaitest.Handler{Reply: want.reply})
			out := mustRun(t, t.TempDir(), append(flags, "--base-url", url)...)
			calls := len(want.disarm())
			if calls < 30 {
				t.Fatalf("only %d calls", calls)
			}
			var all []int
			for at := range calls {
				all = append(all, at)
			}
			for _, at := range datatest.Pick(t, all) {
				killAt(t, at, flags, out, calls)
			}
		})
	}
}

// killAt kills a run when its call at (0-based) arrives, and resumes it.
func killAt(t *testing.T, at int, flags []string, want string, calls int) {
	t.Helper()
	data := t.TempDir()
	k := &killer{at: at, answer: miles}
	url := openaitest.Start(t, &openaitest.Handler{Reply: k.reply})
	cmd := command(context.Background(), data, append(flags, "--base-url", url)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	k.start(t, cmd)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("killed at call %d, it ended with %v: %s%s", at+1, err, out.String(), errs.String())
	}
	id, ok := strings.CutPrefix(strings.TrimSpace(errs.String()), "ibid: run ")
	if !ok || out.Len() > 0 {
		t.Fatalf("it said %s%s", out.String(), errs.String())
	}
	before := k.disarm()
	got, stderr, code := ibid(t, data, "summarize", "--json", "--resume", id, "--parallel", "1")
	if code != 0 {
		t.Fatalf("resumed at call %d: exit code %d: %s%s", at+1, code, got, stderr)
	}
	after := k.disarm()
	if n := len(after); n != calls-at {
		t.Errorf("killed at call %d of %d: %d calls were made after it", at+1, calls, n)
	}
	ended := map[string]bool{}
	for _, p := range before[:at] { // the last one was killed
		ended[p] = true
	}
	for _, p := range after {
		if ended[p] {
			t.Errorf("killed at call %d: a call that had ended was made again", at+1)
		}
	}
	// Everything but the run's id and time is the same.
	if a, b := withoutRun(t, got), withoutRun(t, want); a != b {
		t.Errorf("killed at call %d:\n%s\nwant\n%s", at+1, a, b)
	}
}

func withoutRun(t *testing.T, out string) string {
	t.Helper()
	var s summary
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if !s.Answered || s.Incomplete || s.Run == "" {
		t.Errorf("not a whole summary: %s", out)
	}
	s.Run, s.Usage.Took = "", 0
	b, err := json.Marshal(s)
	must(t, err)
	return string(b)
}

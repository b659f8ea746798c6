package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/cite"
)

// writeLogbook writes a folder whose summary needs a call for each entry, and returns the flags
// for it.
func writeLogbook(t *testing.T, entries int) (folder string, flags []string) {
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

// replyWithMiles is a scripted model whose replies depend on the whole prompt except its system
// part, and cite the first label in it.
func replyWithMiles(r openaitest.Request) openaitest.Reply {
	label := ""
	if m := evidenceLabel.FindStringSubmatch(r.User); m != nil {
		label = "[" + m[1] + m[2] + "]"
	}
	return openaitest.Reply{
		Text: fmt.Sprintf("The crew made %x miles %s.", sha256.Sum256([]byte(r.User)), label),
		// Without the random marks of the fences, which differ from run to run.
		PromptTokens: 2000,
	}
}

// TestSummarize checks that a summary streams with citations numbered by section, and lists
// its steps.
func TestSummarize(t *testing.T) {
	t.Parallel()
	folder, flags := writeLogbook(t, 6)
	h := &openaitest.Handler{Reply: replyWithMiles}
	flags = append(flags, "--base-url", openaitest.Start(t, h))
	data := t.TempDir()

	sum := printed[cite.Answer](t, data, append([]string{"summarize", "--json", folder}, flags...)...)
	if !strings.HasPrefix(sum.Text, "The crew made ") || len(sum.Sources) != 1 || sum.Sources[0].Title != "Log 1 › Day 1" ||
		len(sum.Citations) != 1 {
		t.Errorf("summary = %+v", sum)
	}
	if len(sum.Steps) != 7 || len(sum.Drafts) != 6 || sum.Usage.Calls != 7 || sum.Usage.Looked != 6 {
		t.Errorf("%d steps, %d drafts, usage = %+v; want 7, 6, and 7 calls for 6 passages", len(sum.Steps), len(sum.Drafts), sum.Usage)
	}
	roles := map[string]int{}
	for _, x := range h.Exchanges() {
		roles[x.Role]++
	}
	if fmt.Sprint(roles) != "map[combine:1 map:6]" {
		t.Errorf("calls by role = %v, want map[combine:1 map:6]", roles)
	}
	out, errs, code := ibid(t, data, append([]string{"summarize", "--intermediate-steps", "--strategy", "refine", folder}, flags...)...)
	if code != 0 || !strings.HasPrefix(out, "The crew made ") ||
		!strings.Contains(out, "\n 6. improved with 1 passage: its reply was used\n") ||
		!strings.Contains(out, "\nThe draft of step 5:\nThe crew made ") {
		t.Errorf("exit code = %d: %s%s", code, out, errs)
	}

	// A summary of standard input, in one call.
	cmd := command(t.Context(), data, append([]string{"summarize", "-"}, flags...)...)
	cmd.Stdin = strings.NewReader("The crew made land.")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(b), "The crew made ") || !strings.Contains(string(b), "[1] standard input") {
		t.Errorf("summary of standard input: %v: %s%s", err, b, stderr.String())
	}
	if last := h.Exchanges()[len(h.Exchanges())-1]; last.Role != "answer" || !strings.Contains(last.User, "The crew made land.") {
		t.Errorf("last call has the role %s and the prompt %s", last.Role, last.User)
	}
}

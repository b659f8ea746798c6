package main

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
)

// voyage writes a library of days at sea, one passage each, and ingests it, into
// the store that the arguments name if not into the data directory.
func voyage(t *testing.T, data string, store ...string) {
	t.Helper()
	folder := t.TempDir() + "/voyage"
	files := map[string]string{}
	for n := 1; n <= 14; n++ {
		files[fmt.Sprintf("day%d.md", n)] = fmt.Sprintf("# Day %d\n\n%s", n,
			strings.Repeat(fmt.Sprintf("On day %d the crew made %d miles under sail. ", n, 10+n), 12))
	}
	writeFiles(t, folder, files)
	mustRun(t, data, append([]string{"ingest", folder}, store...)...)
}

// crew is a scripted model whose replies depend on the whole prompt. Replies of
// which the first line is enough are long.
func crew(r openaitest.Request) openaitest.Reply {
	day := dayShown.FindString(r.User)
	tail := strings.Repeat("\nand so on and on", 40)
	sum := sha256.Sum256([]byte(r.User))
	switch {
	case r.Role == "judge" && day == "day 7":
		return openaitest.Reply{Text: "hard to say" + tail} // and asked again
	case r.Role == "judge" && sum[0]%4 == 0:
		return openaitest.Reply{Text: "no\nit is about " + day + tail}
	case r.Role == "judge":
		return openaitest.Reply{Text: "yes" + tail}
	case r.Role == "refine" && sum[0]%4 == 0:
		return openaitest.Reply{Text: "No answer" + tail}
	}
	reply := miles(r)
	if r.Role == "rerank" {
		reply.Text += fmt.Sprintf("\nScore: %d", sum[0])
	}
	return reply
}

var dayShown = regexp.MustCompile(`day \d+`)

package web

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCiteStream sends each piece of a text after the reply to the previous one.
func TestCiteStream(t *testing.T) {
	server := httptest.NewServer(newHandler(t, nil))
	defer server.Close()
	body, text := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/api/cite", body)
	must(t, err)
	r.Header.Set("Content-Type", "text/event-stream")
	r.Header.Set("Accept", "text/event-stream")
	write := func(s string) {
		if _, err := io.WriteString(text, s); err != nil {
			t.Error(err)
		}
	}
	go write("data: {\"documents\":[{\"source\":\"a\"}],\"text\":\"Yes [1]\"}\n\ndata: {\"text\":\". No\"}\n\n")
	reply, err := http.DefaultClient.Do(r)
	must(t, err)
	defer reply.Body.Close()
	lines := bufio.NewScanner(reply.Body)
	var got []string
	for lines.Scan() {
		kind, ok := strings.CutPrefix(lines.Text(), "event: ")
		if !ok {
			continue
		}
		lines.Scan()
		got = append(got, kind+" "+strings.TrimPrefix(lines.Text(), "data: "))
		if len(got) == 3 {
			write("data: {\"text\":\" [1].\"}\n\n")
			if err := text.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	all := strings.Join(got, "\n")
	if !strings.HasPrefix(all, "text {\"text\":\"Yes\"}\ncited {\"number\":1,\"source\":\"a\"") || lines.Err() != nil ||
		!strings.Contains(all, `done {"text":"Yes [1]. No [1].","list":"\n\n- [1] a\n"`) {
		t.Errorf("events after %v:\n%s", lines.Err(), all)
	}
}

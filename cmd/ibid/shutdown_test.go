package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// TestStreamsEnd stops a server in the middle of many streams, on a machine whose
// processors others take: every stream that has begun has an end.
func TestStreamsEnd(t *testing.T) {
	datatest.CampaignOnly(t)
	const readers = 200
	model := openaitest.Start(t, &openaitest.Handler{PerToken: 50 * time.Millisecond,
		Reply: func(r openaitest.Request) openaitest.Reply {
			return openaitest.Reply{Text: countedOut(askedRoom(r), 2000)}
		}})
	server := startProcess(t, rooms(t, 500), "--model", "m", "--base-url", model, "--gate", "score", "--no-self-test")
	ready(t, server.url)
	compete(t)
	var begun, ended, whole atomic.Int32
	var mu sync.Mutex
	var torn []string
	var reading sync.WaitGroup
	for i := range readers {
		reading.Go(func() {
			body := fmt.Sprintf(`{"model":"ibid","stream":true,"messages":[{"role":"user","content":"When does chart room %d open?"}]}`, i)
			resp, err := http.Post(server.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				return
			}
			defer resp.Body.Close()
			lines, last, first := bufio.NewScanner(resp.Body), "", true
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				if lines.Text() == "" {
					continue
				}
				if last = lines.Text(); first {
					first = false
					begun.Add(1)
				}
			}
			switch {
			case last == "data: [DONE]" && lines.Err() == nil:
				whole.Add(1)
			case !first:
				mu.Lock()
				torn = append(torn, fmt.Sprintf("%v after %.300q", lines.Err(), last))
				mu.Unlock()
			}
			ended.Add(1)
		})
	}
	eventually(t, "the streams", func() bool { return begun.Load() >= readers*9/10 })
	server.stop()
	reading.Wait()
	t.Logf("figure: %d streams begun, %d with an end, %d torn", begun.Load(), whole.Load(), len(torn))
	if len(torn) > 0 {
		t.Errorf("%s\n%s", strings.Join(torn, "\n"), server.log)
	}
}

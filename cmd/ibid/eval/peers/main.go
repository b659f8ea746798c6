// Command peers serves the model with which Ibid and its peers are compared: an
// OpenAI-compatible server whose replies follow from the prompt alone, with fixed
// delays, and which records each call. It is a module of its own, so that
// building Ibid does not build it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/ingest"
	"ibid/retrieve/embed"
)

func main() {
	questions := flag.String("questions", "", "`FILE` of questions with their answers, one JSON object per line")
	first := flag.Duration("first-token", 100*time.Millisecond, "time to the first token of a reply")
	per := flag.Duration("per-token", 5*time.Millisecond, "time for each further token")
	vectors := flag.Duration("vectors", 20*time.Millisecond, "time of a request for vectors")
	flag.Parse()
	if err := serve(*questions, *first, *per, *vectors); err != nil {
		log.Fatal(err)
	}
}

func serve(questions string, first, per, vectors time.Duration) error {
	table, err := readQuestions(questions)
	if err != nil {
		return fmt.Errorf("reading the questions: %w", err)
	}
	model, err := embed.New()
	if err != nil {
		return fmt.Errorf("reading the built-in vectors: %w", err)
	}
	w := &writer{questions: table, written: map[string][]part{}}
	l := &callLog{replies: map[int]reply{}, calls: []call{}}
	l.idle = sync.NewCond(&l.mu)
	http.Handle("/v1/", &openaitest.Handler{
		Model: "scripted", FirstToken: first, PerToken: per,
		Reply: func(r openaitest.Request) openaitest.Reply {
			text, made := w.reply(parse(r.System, r.User))
			l.begin(r.N, reply{text, made})
			return openaitest.Reply{Text: text}
		},
		Embed: func(r openaitest.Request) openaitest.Reply {
			l.begin(r.N, reply{})
			return openaitest.Reply{FirstToken: vectors}
		},
		Vector: func(text string) []float32 {
			rows, err := model.Embed(context.Background(), []string{text})
			if err != nil {
				panic(err) // the model is in memory
			}
			return rows[0]
		},
		Done: l.end,
	})
	http.HandleFunc("POST /account", l.take)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, nil)
}

// A call is a request and its result, as table.py reads it.
type call struct {
	written
	Vectors   bool    `json:"vectors"` // for vectors, not for text
	TokensIn  int     `json:"tokens_in"`
	TokensOut int     `json:"tokens_out"`
	Start     float64 `json:"start"` // seconds since 1970
	End       float64 `json:"end"`
}

// A reply is the writer's; it is empty for vectors.
type reply struct {
	text string
	made written
}

// A callLog records calls.
type callLog struct {
	mu      sync.Mutex
	idle    *sync.Cond    // no call is in progress
	replies map[int]reply // of the calls in progress, by number
	calls   []call
}

func (l *callLog) begin(n int, r reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies[n] = r
}

func (l *callLog) end(x openaitest.Exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, begun := l.replies[x.N]
	if !begun {
		return
	}
	c := call{written: r.made, Vectors: len(x.Inputs) > 0, Start: seconds(x.Start), End: seconds(x.End)}
	for _, text := range append(x.Inputs, x.System, x.User) {
		c.TokensIn += ingest.CountTokens(text)
	}
	sent := openaitest.Split(r.text)
	c.TokensOut = ingest.CountTokens(strings.Join(sent[:min(x.Sent, len(sent))], ""))
	l.calls = append(l.calls, c)
	if delete(l.replies, x.N); len(l.replies) == 0 {
		l.idle.Broadcast()
	}
}

// take waits until no call is in progress, then writes and forgets the calls.
func (l *callLog) take(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.replies) > 0 {
		l.idle.Wait()
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(l.calls); err != nil {
		log.Print(err)
	}
	l.calls = []call{}
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

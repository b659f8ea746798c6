// Command peers serves the model with which Ibid and its peers are compared: an
// OpenAI-compatible server whose replies depend only on the prompt and come with
// fixed delays. It records each call. It is a separate module, so that building
// Ibid does not build it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/ingest"
	"ibid/retrieve/embed"
)

// The model's delays.
const (
	toFirstToken = 100 * time.Millisecond
	perToken     = 5 * time.Millisecond
	forVectors   = 20 * time.Millisecond
)

func main() {
	fast := flag.Bool("no-delays", false, "reply at once")
	flag.Parse()
	if err := serve(flag.Args(), *fast); err != nil {
		log.Fatal(err)
	}
}

// serve serves the model. command runs the writer, which makes its replies.
func serve(command []string, fast bool) error {
	w, err := startWriter(command)
	if err != nil {
		return fmt.Errorf("starting the writer: %w", err)
	}
	model, err := embed.New()
	if err != nil {
		return fmt.Errorf("reading the built-in vectors: %w", err)
	}
	l := &callLog{replies: map[int]reply{}}
	l.model = &openaitest.Handler{
		Model: "scripted", FirstToken: toFirstToken, PerToken: perToken,
		Reply: func(r openaitest.Request) openaitest.Reply {
			l.mu.Lock()
			defer l.mu.Unlock()
			made, err := w.reply(r.System, r.User)
			if err != nil {
				log.Fatal("asking the writer: ", err) // without its replies there is nothing to compare
			}
			l.replies[r.N] = made
			return openaitest.Reply{Text: made.Text}
		},
		Embed: func(openaitest.Request) openaitest.Reply { return openaitest.Reply{FirstToken: forVectors} },
		Vector: func(text string) []float32 {
			rows, err := model.Embed(context.Background(), []string{text})
			if err != nil {
				panic(err) // the model is in memory
			}
			return rows[0]
		},
	}
	if fast {
		l.model.FirstToken, l.model.PerToken = 0, 0
	}
	http.Handle("/v1/", l.model)
	http.HandleFunc("POST /account", l.take)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, nil)
}

// A writer is the process of writer.py. It is not safe for concurrent use.
type writer struct {
	to   *json.Encoder
	from *json.Decoder
}

func startWriter(command []string) (*writer, error) {
	p := exec.Command(command[0], command[1:]...)
	p.Stderr = os.Stderr
	to, err := p.StdinPipe()
	if err != nil {
		return nil, err
	}
	from, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &writer{json.NewEncoder(to), json.NewDecoder(from)}, p.Start()
}

// A reply is the writer's reply and its record of the call, in the form that table.py reads.
type reply struct {
	Text   string         `json:"text"`
	Record map[string]any `json:"record"`
}

func (w *writer) reply(system, user string) (r reply, err error) {
	if err := w.to.Encode(map[string]string{"system": system, "user": user}); err != nil {
		return r, err
	}
	err = w.from.Decode(&r)
	return r, err
}

// A callLog records calls.
type callLog struct {
	model *openaitest.Handler

	mu      sync.Mutex
	replies map[int]reply // by number of the call
	taken   int           // number of calls written by take
}

// take waits until no call is in progress, and writes the calls since the last time.
func (l *callLog) take(w http.ResponseWriter, _ *http.Request) {
	inProgress := func(x openaitest.Exchange) bool { return !x.Ended }
	all := l.model.Exchanges()
	for ; slices.ContainsFunc(all, inProgress); all = l.model.Exchanges() {
		time.Sleep(time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := []map[string]any{}
	for _, x := range all[l.taken:] {
		r, wrote := l.replies[x.N]
		if !wrote && x.Inputs == nil {
			continue // the list of models
		}
		in := 0
		for _, text := range append(x.Inputs, x.System, x.User) {
			in += ingest.CountTokens(text)
		}
		sent := openaitest.Split(r.Text)
		out := ingest.CountTokens(strings.Join(sent[:min(x.Sent, len(sent))], ""))
		call := map[string]any{"vectors": len(x.Inputs) > 0, "tokens_in": in, "tokens_out": out,
			"start": float64(x.Start.UnixMicro()) / 1e6, "end": float64(x.End.UnixMicro()) / 1e6}
		maps.Copy(call, r.Record)
		calls = append(calls, call)
	}
	l.taken = len(all)
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(calls); err != nil {
		log.Print(err)
	}
}

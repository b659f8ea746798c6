// Command peers is the model that stands behind Ibid and its peers when they
// are measured side by side: an OpenAI-compatible server whose replies follow
// from the prompt alone, with the same delays for everyone, and which keeps an
// account of what it was asked and what it wrote. It is a module of its own, so
// that who builds Ibid does not build it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/ingest"
	"ibid/retrieve/embed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	questions := flags.String("questions", "", "`FILE` of questions with their answers, one JSON object a line")
	first := flags.Duration("first-token", 100*time.Millisecond, "time to the first token of a reply")
	per := flags.Duration("per-token", 5*time.Millisecond, "time for each further token")
	vectors := flags.Duration("vectors", 20*time.Millisecond, "time for a request of vectors")
	if err := flags.Parse(args); err != nil {
		return err
	}
	table, err := readQuestions(*questions)
	if err != nil {
		return fmt.Errorf("reading the questions: %w", err)
	}
	model, err := embed.New()
	if err != nil {
		return fmt.Errorf("reading the built-in vectors: %w", err)
	}
	w := &writer{questions: table, written: map[string]composed{}}
	book := newAccount()
	handler := &openaitest.Handler{
		Model: "scripted", FirstToken: *first, PerToken: *per,
		Reply: func(r openaitest.Request) openaitest.Reply {
			text, said := w.reply(read(r.System, r.User))
			book.begin(r.N, &reply{text, said})
			return openaitest.Reply{Text: text}
		},
		Embed: func(r openaitest.Request) openaitest.Reply {
			book.begin(r.N, nil)
			return openaitest.Reply{FirstToken: *vectors}
		},
		Vector: func(text string) []float32 {
			rows, err := model.Embed(context.Background(), []string{text})
			if err != nil {
				panic(err) // it reads no file and waits for nothing
			}
			return rows[0]
		},
		Done: book.done,
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", handler)
	mux.HandleFunc("POST /account", book.give)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{Handler: mux}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A call is one request and what came of it.
type call struct {
	said
	Vectors   bool    `json:"vectors"` // asked for vectors, not for text
	TokensIn  int     `json:"tokens_in"`
	TokensOut int     `json:"tokens_out"`
	Start     float64 `json:"start"` // seconds since 1970
	End       float64 `json:"end"`
}

// An account keeps the calls since it was last given.
type account struct {
	mu    sync.Mutex
	idle  *sync.Cond // no call is under way
	begun map[int]*reply
	calls []call
}

// A reply is what the writer has said in a call, and the text that says it.
type reply struct {
	text string
	said said
}

func newAccount() *account {
	a := &account{begun: map[int]*reply{}}
	a.idle = sync.NewCond(&a.mu)
	return a
}

// begin opens the call of a request by its number; without a reply it is one
// for vectors.
func (a *account) begin(n int, r *reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun[n] = r
}

// done closes the call that begin opened.
func (a *account) done(x openaitest.Exchange) {
	a.mu.Lock()
	r, begun := a.begun[x.N]
	a.mu.Unlock()
	if !begun {
		return
	}
	c := call{Vectors: r == nil, Start: seconds(x.Start), End: seconds(x.End)}
	c.TokensIn = ingest.CountTokens(x.System) + ingest.CountTokens(x.User)
	for _, text := range x.Inputs {
		c.TokensIn += ingest.CountTokens(text)
	}
	if r != nil {
		c.said = r.said
		sent := openaitest.Split(r.text)
		c.TokensOut = ingest.CountTokens(strings.Join(sent[:min(x.Sent, len(sent))], ""))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, c)
	delete(a.begun, x.N)
	if len(a.begun) == 0 {
		a.idle.Broadcast()
	}
}

// give waits for the calls under way, writes those since it was last called,
// and forgets them.
func (a *account) give(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	for len(a.begun) > 0 {
		a.idle.Wait()
	}
	calls := a.calls
	a.calls = nil
	a.mu.Unlock()
	if calls == nil {
		calls = []call{}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(calls); err != nil {
		log.Print(err)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

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
	questions := flag.String("questions", "", "`FILE` of questions with their answers, one JSON object per line")
	var e errors
	flag.IntVar(&e.verdicts, "wrong", 1, "wrong verdicts in ten")
	flag.IntVar(&e.misled, "misled", 1, "of six off-topic sentences that resemble the question, those quoted")
	flag.BoolVar(&e.alike, "alike", false, "a verdict on a statement is as wrong when asked for again")
	flag.StringVar(&e.seed, "seed", "", "changes what it errs about")
	flag.Parse()
	if err := serve(*questions, e); err != nil {
		log.Fatal(err)
	}
}

func serve(questions string, e errors) error {
	table, err := readQuestions(questions)
	if err != nil {
		return fmt.Errorf("reading the questions: %w", err)
	}
	model, err := embed.New()
	if err != nil {
		return fmt.Errorf("reading the built-in vectors: %w", err)
	}
	w := &writer{questions: table, errors: e, written: map[string][]part{}}
	l := &callLog{replies: map[int]reply{}}
	l.model = &openaitest.Handler{
		Model: "scripted", FirstToken: toFirstToken, PerToken: perToken,
		Reply: func(r openaitest.Request) openaitest.Reply {
			text, made := w.reply(parse(r.System, r.User))
			l.mu.Lock()
			defer l.mu.Unlock()
			l.replies[r.N] = reply{text, made}
			return openaitest.Reply{Text: text}
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
	http.Handle("/v1/", l.model)
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

// A reply is the writer's.
type reply struct {
	text string
	made written
}

// A callLog records calls.
type callLog struct {
	model *openaitest.Handler

	mu      sync.Mutex
	replies map[int]reply // by the number of the call
	taken   int           // calls
}

// take waits until no call is in progress, and writes those since the last time.
func (l *callLog) take(w http.ResponseWriter, _ *http.Request) {
	inProgress := func(x openaitest.Exchange) bool { return !x.Ended }
	all := l.model.Exchanges()
	for ; slices.ContainsFunc(all, inProgress); all = l.model.Exchanges() {
		time.Sleep(time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := []call{}
	for _, x := range all[l.taken:] {
		r, wrote := l.replies[x.N]
		if !wrote && x.Inputs == nil {
			continue // the list of models
		}
		c := call{written: r.made, Vectors: len(x.Inputs) > 0, Start: seconds(x.Start), End: seconds(x.End)}
		for _, text := range append(x.Inputs, x.System, x.User) {
			c.TokensIn += ingest.CountTokens(text)
		}
		sent := openaitest.Split(r.text)
		c.TokensOut = ingest.CountTokens(strings.Join(sent[:min(x.Sent, len(sent))], ""))
		calls = append(calls, c)
	}
	l.taken = len(all)
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(calls); err != nil {
		log.Print(err)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

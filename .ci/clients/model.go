//go:build ignore

// The scripted model of the server that the clients ask: it judges by words, cites all
// passages, and writes characters of several bytes or UTF-16 units. It completes a question
// that refers to an earlier one from the conversation alone. GET /left returns how many of its
// streams were closed before their end.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"ibid/answer/openai/openaitest"
)

func main() {
	shown := regexp.MustCompile(`(?m)^\[(\d+)\]`)
	fits := func(words string) *regexp.Regexp { return regexp.MustCompile(words) }
	says := func(text string) openaitest.Reply { return openaitest.Reply{Text: text} }
	var left atomic.Int64
	h := &openaitest.Handler{Model: "scripted", Key: "sk-upstream",
		Done: func(x openaitest.Exchange) {
			if x.Gone && x.Stream {
				left.Add(1)
			}
		},
		Reply: openaitest.Rules(
			openaitest.Rule{Role: "condense", Prompt: fits(`(?s)user: When is the lantern lit\?.*Last message: And who puts it out\?`),
				Reply: says("Who puts out the lantern?")},
			openaitest.Rule{Role: "condense", Func: func(r openaitest.Request) openaitest.Reply {
				_, last, _ := strings.Cut(r.User, "Last message: ")
				last, _, _ = strings.Cut(last, "\n")
				return says(last)
			}},
			openaitest.Rule{Role: "judge", Func: func(r openaitest.Request) openaitest.Reply {
				about := "lantern is lit"
				if strings.Contains(r.User, "Who puts out the lantern?") {
					about = "puts out the lantern at dawn"
				}
				if strings.Contains(r.User, about) {
					return says("yes")
				}
				return says("no\nabout something else")
			}},
			openaitest.Rule{Role: "verify", Reply: says("yes")}, // at once, even if the answer is slow
			openaitest.Rule{Prompt: fits(`a title of two to five words`), Reply: says(`{"title": "Lanterns 🏮"}`)},
			openaitest.Rule{Prompt: fits(`three messages that the user may send next`), Reply: says(`{"follow_ups": ["And who puts it out?"]}`)},
			openaitest.Rule{Prompt: fits(`You choose the form`), Reply: says(`{"name": "final_result_Lighting"}`)},
			openaitest.Rule{Prompt: fits(`JSON`), Reply: says(`{"when": "at dusk"}`)},
			openaitest.Rule{Func: func(r openaitest.Request) openaitest.Reply {
				about, said := "The lantern is lit at dusk.", []string{"🏮", "灯り。", "Plain."}
				if strings.Contains(r.User, "Who puts out the lantern?") || strings.Contains(r.User, "And who puts it out?") {
					about, said = "The keeper puts out the lantern at dawn.", []string{"🌅"}
				}
				var b strings.Builder
				for i, m := range shown.FindAllStringSubmatch(r.User, -1) {
					fmt.Fprintf(&b, "%s %s[%s] ", said[i%len(said)], about, m[1])
				}
				reply := says(strings.TrimSpace(b.String()))
				if strings.Contains(r.User, "Tell me slowly") { // so that it can be stopped
					reply.PerToken = time.Second
				}
				return reply
			}},
		)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/v1\n", l.Addr())
	http.HandleFunc("GET /left", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, left.Load()) })
	http.Handle("/", h)
	log.Fatal(http.Serve(l, nil))
}

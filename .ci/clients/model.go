//go:build ignore

// The scripted model of the server that the clients ask: it judges by a word,
// cites all passages, and writes characters of several bytes or UTF-16 units.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"ibid/answer/openai/openaitest"
)

func main() {
	shown := regexp.MustCompile(`(?m)^\[(\d+)\]`)
	h := &openaitest.Handler{Model: "scripted", Key: "sk-upstream", Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Prompt: regexp.MustCompile(`lantern is lit`), Reply: openaitest.Reply{Text: "yes"}},
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "no\nabout something else"}},
		openaitest.Rule{Prompt: regexp.MustCompile(`^\s*(Give this chat|### Task:\nGenerate) a (concise )?title`), Reply: openaitest.Reply{Text: "Lanterns 🏮"}},
		openaitest.Rule{Func: func(r openaitest.Request) openaitest.Reply {
			if strings.Contains(r.System, "JSON schema") {
				return openaitest.Reply{Text: `{"when": "at dusk"}`}
			}
			var b strings.Builder
			for i, m := range shown.FindAllStringSubmatch(r.User, -1) {
				fmt.Fprintf(&b, "%s The lantern is lit at dusk.[%s] ", []string{"🏮", "灯り。", "Plain."}[i%3], m[1])
			}
			reply := openaitest.Reply{Text: strings.TrimSpace(b.String())}
			if strings.Contains(r.User, "Tell me slowly") { // for a page with a button that stops
				reply.PerToken = 400 * time.Millisecond
			}
			return reply
		}},
	)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/v1\n", l.Addr())
	log.Fatal(http.Serve(l, h))
}

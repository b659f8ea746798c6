package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/answer/openai"
)

// TestVerdict: what a server can do for a yes or no is found out by the first
// calls, and remembered.
func TestVerdict(t *testing.T) {
	const odds = `,"logprobs":{"content":[{"token":"No","top_logprobs":[{"token":"No","logprob":-0.36},{"token":" yes","logprob":-1.2}]}]}`
	for _, test := range []struct {
		name    string
		text    string
		odds    string
		refuses []string
		sent    string // the parameters of each request: odds, format, one token
		yes     []bool // whether Yes is known
	}{
		{name: "odds", text: "No", odds: odds, sent: "odds, odds one", yes: []bool{true, true}},
		{name: "other words are likelier", text: "Well", odds: strings.NewReplacer("-0.36", "-3", "-1.2", "-3").Replace(odds),
			sent: "odds, format, format", yes: []bool{false, false, false}},
		{name: "no odds come", text: "no", sent: "odds, format", yes: []bool{false, false}},
		{name: "odds are refused", text: "no", refuses: []string{"logprobs"}, sent: "odds, format, format", yes: []bool{false, false}},
		{name: "both are refused", text: "no", refuses: []string{"logprobs", "response_format"}, sent: "odds, format, , ", yes: []bool{false, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sent []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				var has []string
				for _, part := range [][2]string{{"odds", `"logprobs":true`}, {"format", `"response_format":`}, {"one", `"max_tokens":1,`}} {
					if strings.Contains(string(body), part[1]) {
						has = append(has, part[0])
					}
				}
				sent = append(sent, strings.Join(has, " "))
				for _, part := range test.refuses {
					if strings.Contains(string(body), `"`+part+`":`) {
						w.WriteHeader(http.StatusBadRequest)
						fmt.Fprintf(w, `{"error":{"message":"no %s here","param":%q}}`, part, part)
						return
					}
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}%s}]}\n\n", test.text, test.odds)
				fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			}))
			defer s.Close()
			c := newClient(t, openai.Options{BaseURL: s.URL, Retries: -1})
			for i, known := range test.yes {
				yes := 0.0
				for piece, err := range c.Complete(context.Background(), answer.Prompt{Role: answer.RoleVerify, User: "U", MaxTokens: 16, Verdict: true}) {
					must(t, err)
					yes = max(yes, piece.Yes)
				}
				if known != (yes > .25 && yes < .35) || !known && yes != 0 {
					t.Errorf("call %d: %g", i, yes)
				}
			}
			if got := strings.Join(sent, ", "); got != test.sent {
				t.Errorf("sent %q, want %q", got, test.sent)
			}
		})
	}
}

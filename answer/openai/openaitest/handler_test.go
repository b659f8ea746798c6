package openaitest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ibid/answer/openai/openaitest"
)

func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab é☕ \n\t[1].,"))).Draw(t, "text")
		tokens := openaitest.Split(text)
		if got := strings.Join(tokens, ""); got != text {
			t.Fatalf("%q together make %q", tokens, got)
		}
		for _, token := range tokens {
			if n := len([]rune(strings.TrimSpace(token))); n > 5 || token == "" {
				t.Fatalf("the token %q has %d letters", token, n)
			}
		}
	})
	if got := fmt.Sprintf("%q", openaitest.Split("High water stands at noon [1].")); got != `["High" " water" " stand" "s" " at" " noon" " [1]."]` {
		t.Error(got)
	}
}

func post(t *testing.T, client *http.Client, url, role, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Ibid-Role", role)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

func chat(system, user string, more string) string {
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%q},{"role":"user","content":%q}]%s}`, system, user, more)
}

func TestRules(t *testing.T) {
	h := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Prompt: regexp.MustCompile("tide"), Reply: openaitest.Reply{Text: "relevant"}},
		openaitest.Rule{Role: "judge", Times: 1, Reply: openaitest.Reply{Text: "off topic"}},
		openaitest.Rule{Role: "answer", Func: func(r openaitest.Request) openaitest.Reply {
			return openaitest.Reply{Text: r.System + "/" + r.User}
		}},
	)}
	url := openaitest.Start(t, h) + "/chat/completions"
	for _, c := range []struct {
		role, user string
		status     int
		want       string
	}{
		{"judge", "the tide", 200, `"content":"relevant"`},
		{"judge", "the moon", 200, `"content":"off topic"`},
		{"judge", "the moon", 500, "no rule fits"},
		{"judge", "the tide", 200, `"content":"relevant"`},
		{"answer", "the moon", 200, `"content":"S/the moon"`},
		{"refine", "the moon", 500, "no rule fits"},
	} {
		status, body := post(t, http.DefaultClient, url, c.role, chat("S", c.user, ""))
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.role, c.user, status, body)
		}
	}
	if x := h.Exchanges(); len(x) != 6 || x[4].Role != "answer" || x[4].User != "the moon" || x[4].N != 5 || !x[4].Ended || x[4].Gone {
		t.Errorf("recorded %+v", x)
	}
}

// TestLatency: tokens come exactly when the script says, and the usage counts them.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &openaitest.Handler{FirstToken: 300 * time.Millisecond, PerToken: 20 * time.Millisecond,
			Reply: openaitest.Sequence(openaitest.Reply{Text: "one two three"})}
		client := &http.Client{Transport: openaitest.Pipe(t, h)}
		start := time.Now()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, openaitest.PipeURL+"/chat/completions",
			strings.NewReader(chat("S", "U", `,"stream":true,"stream_options":{"include_usage":true}`)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var at []time.Duration
		var last string
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if strings.Contains(lines.Text(), `"content"`) {
				at = append(at, time.Since(start))
			}
			if strings.Contains(lines.Text(), `"usage"`) {
				last = lines.Text()
			}
		}
		if got := fmt.Sprint(at); got != "[300ms 320ms 340ms]" {
			t.Errorf("tokens came at %s", got)
		}
		if !strings.Contains(last, `"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}`) {
			t.Errorf("usage %s", last)
		}
		start = time.Now()
		post(t, client, openaitest.PipeURL+"/chat/completions", "", chat("S", "U", ""))
		if took := time.Since(start); took != 340*time.Millisecond {
			t.Errorf("the whole reply took %s", took)
		}
	})
}

func TestModelsAndKey(t *testing.T) {
	h := &openaitest.Handler{Model: "tiny", Key: "secret"}
	url := openaitest.Start(t, h) + "/models"
	for key, want := range map[string]int{"": 401, "wrong": 401, "secret": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want || (want == 200) != strings.Contains(string(body), `"id":"tiny"`) {
			t.Errorf("key %q: %d %s %v", key, resp.StatusCode, body, err)
		}
		resp.Body.Close()
	}
}

func TestVectors(t *testing.T) {
	cosine := func(a, b string) float64 {
		var sum float64
		for i, c := range openaitest.Vector(a, 256) {
			sum += float64(c) * float64(openaitest.Vector(b, 256)[i])
		}
		return sum
	}
	if c := cosine("The tide, at noon", "at NOON the tide"); math.Abs(c-1) > 1e-6 {
		t.Errorf("the same words have the cosine %f", c)
	}
	near, far := cosine("the tide at noon", "the tide at midnight"), cosine("the tide at noon", "books are lent for a month")
	if near < .6 || far > .3 {
		t.Errorf("near %f, far %f", near, far)
	}
	var body struct {
		Data []struct {
			Index     int
			Embedding []float32
		}
	}
	url := openaitest.Start(t, &openaitest.Handler{Dimensions: 8}) + "/embeddings"
	if _, got := post(t, http.DefaultClient, url, "embed", `{"model":"m","input":"one"}`); json.Unmarshal([]byte(got), &body) != nil || len(body.Data) != 1 || len(body.Data[0].Embedding) != 8 {
		t.Errorf("got %s", got)
	}
	length := func(text string) []float32 { return []float32{float32(len(text))} }
	url = openaitest.Start(t, &openaitest.Handler{Vector: length}) + "/embeddings"
	if _, got := post(t, http.DefaultClient, url, "embed", `{"model":"m","input":["one","three"]}`); json.Unmarshal([]byte(got), &body) != nil || len(body.Data) != 2 || body.Data[1].Embedding[0] != 5 {
		t.Errorf("vectors of one's own: got %s", got)
	}
}

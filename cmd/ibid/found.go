package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ibid/web"
)

// usualServers are the default addresses of model servers on this machine.
var usualServers = []web.ModelServer{
	{Name: "Ollama", BaseURL: "http://127.0.0.1:11434/v1"},
	{Name: "LM Studio", BaseURL: "http://127.0.0.1:1234/v1"},
	{Name: "llama.cpp", BaseURL: "http://127.0.0.1:8080/v1"},
	{Name: "vLLM", BaseURL: "http://127.0.0.1:8000/v1"},
}

// findModels asks the servers for their models, without a key, and returns the servers that
// have any. own is the address of this program.
func findModels(ctx context.Context, servers []web.ModelServer, own string) []web.ModelServer {
	// No proxy and no redirect: requests must not leave this machine.
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	found := slices.Clone(servers)
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			if s.BaseURL != "http://"+own+"/v1" {
				found[i].Models = listModels(ctx, client, s.BaseURL)
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(found, func(s web.ModelServer) bool { return len(s.Models) == 0 })
}

// notWriters matches names of models that embed or rank texts and cannot write.
var notWriters = regexp.MustCompile(`(?i)embed|minilm|rerank|\b(bge|e5|gte|bert)\b`)

// listModels returns the names of a server's models that can write.
func listModels(ctx context.Context, client *http.Client, baseURL string) (names []string) {
	var list struct{ Data []struct{ ID string } }
	if !getList(ctx, client, baseURL+"/models", &list) || len(list.Data) == 0 {
		return nil
	}
	var tags struct { // Ollama's list has more details
		Models []struct {
			Name    string
			Details struct{ Family string }
		}
	}
	getList(ctx, client, strings.TrimSuffix(baseURL, "/v1")+"/api/tags", &tags)
	families := map[string]string{}
	for _, m := range tags.Models {
		families[m.Name] = m.Details.Family
	}
	for _, m := range list.Data {
		another := m.ID == "ibid" || strings.HasPrefix(m.ID, "ibid/")
		if m.ID != "" && !another && !notWriters.MatchString(m.ID) && !notWriters.MatchString(families[m.ID]) {
			names = append(names, m.ID)
		}
	}
	return names
}

// getList reads JSON into list and reports whether it could: most of the servers do not run.
func getList(ctx context.Context, client *http.Client, url string, list any) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	reply, err := client.Do(r)
	if err != nil {
		return false
	}
	defer reply.Body.Close()
	return reply.StatusCode == http.StatusOK && json.NewDecoder(io.LimitReader(reply.Body, 1<<20)).Decode(list) == nil
}

// modelHint returns the command that uses the models of a server.
func modelHint(s web.ModelServer) string {
	return fmt.Sprintf("Found %s with %s: ibid serve --base-url %s --model %s",
		s.Name, countOf(len(s.Models), "model"), s.BaseURL, printable(s.Models[0]))
}

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
)

// A modelServer is a server of models on this machine.
type modelServer struct {
	name, address string
	models        []string
}

// usualServers are where servers of models listen unless they are told otherwise.
var usualServers = []modelServer{
	{name: "Ollama", address: "127.0.0.1:11434"},
	{name: "LM Studio", address: "127.0.0.1:1234"},
	{name: "llama.cpp", address: "127.0.0.1:8080"},
	{name: "vLLM", address: "127.0.0.1:8000"},
}

// findModels asks the servers which models they have, without a key, and returns
// those that have some. The server at own is this program.
func findModels(ctx context.Context, servers []modelServer, own string) []modelServer {
	// No proxy and no redirect: nothing outside this machine is asked.
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	found := slices.Clone(servers)
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			if s.address != own {
				found[i].models = listModels(ctx, client, s.address)
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(found, func(s modelServer) bool { return len(s.models) == 0 })
}

// notWriters finds the names of models that embed or rank texts and write none.
var notWriters = regexp.MustCompile(`(?i)embed|minilm|rerank|\b(bge|e5|gte|bert)\b`)

// listModels returns the names of the models that write, of the server at an address.
func listModels(ctx context.Context, client *http.Client, address string) (names []string) {
	var list struct{ Data []struct{ ID string } }
	if !getList(ctx, client, "http://"+address+"/v1/models", &list) || len(list.Data) == 0 {
		return nil
	}
	var tags struct { // Ollama says more
		Models []struct {
			Name    string
			Details struct{ Family string }
		}
	}
	getList(ctx, client, "http://"+address+"/api/tags", &tags)
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

// getList reads JSON into list, and reports whether there is some: most servers do not run.
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

// hint says how to use the models of a server.
func (s modelServer) hint() string {
	return fmt.Sprintf("Found %s with %s: ibid serve --base-url http://%s/v1 --model %s",
		s.name, counted(len(s.models), "model"), s.address, printable(s.models[0]))
}

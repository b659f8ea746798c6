package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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

// listModels returns the names of the models of the server at an address.
func listModels(ctx context.Context, client *http.Client, address string) (names []string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/models", nil)
	if err != nil {
		return nil
	}
	reply, err := client.Do(r)
	if err != nil {
		return nil // most servers do not run
	}
	defer reply.Body.Close()
	var list struct{ Data []struct{ ID string } }
	if reply.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(reply.Body, 1<<20)).Decode(&list) != nil {
		return nil
	}
	for _, m := range list.Data {
		if m.ID != "" && m.ID != "ibid" && !strings.HasPrefix(m.ID, "ibid/") { // another Ibid
			names = append(names, m.ID)
		}
	}
	return names
}

// hint says how to use the models of a server.
func (s modelServer) hint() string {
	return fmt.Sprintf("Found %s with %s: ibid serve --base-url http://%s/v1 --model %s",
		s.name, counted(len(s.models), "model"), s.address, printable(s.models[0]))
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	found := make([]modelServer, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			if s.address != own {
				s.models, _ = listModels(ctx, client, s.address) // most servers do not run
			}
			found[i] = s
		})
	}
	asking.Wait()
	var some []modelServer
	for _, s := range found {
		if len(s.models) > 0 {
			some = append(some, s)
		}
	}
	return some
}

// maxModelList is the longest list of models that is read, in bytes.
const maxModelList = 1 << 20

// listModels returns the names of the models of the server at an address.
func listModels(ctx context.Context, client *http.Client, address string) ([]string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/models", nil)
	if err != nil {
		return nil, err
	}
	reply, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", reply.Status)
	}
	if err := json.NewDecoder(io.LimitReader(reply.Body, maxModelList)).Decode(&list); err != nil {
		return nil, err
	}
	var names []string
	for _, m := range list.Data {
		if m.ID != "" && m.ID != "ibid" && !strings.HasPrefix(m.ID, "ibid/") { // another Ibid
			names = append(names, m.ID)
		}
	}
	return names, nil
}

// hint says how to use the models of a server.
func (s modelServer) hint() string {
	count := "1 model"
	if n := len(s.models); n > 1 {
		count = fmt.Sprintf("%d models", n)
	}
	return fmt.Sprintf("Found %s with %s: ibid serve --base-url http://%s/v1 --model %s", s.name, count, s.address, printable(s.models[0]))
}

package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ibid/answer/openai"
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
	found := slices.Clone(servers)
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			if s.BaseURL != "http://"+own+"/v1" {
				found[i].Models = listModels(ctx, s.BaseURL)
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(found, func(s web.ModelServer) bool { return len(s.Models) == 0 })
}

// notWriters matches names of models that embed or rank texts and cannot write.
var notWriters = regexp.MustCompile(`(?i)embed|minilm|rerank|paraphrase|\b(bge|e5|gte|bert)\b`)

// listModels returns the names of a server's models that can write, or nil if the server does not
// reply: most of the servers do not run. The request does not leave this machine, since loopback
// addresses have no proxy and redirects are not followed.
func listModels(ctx context.Context, baseURL string) []string {
	names, err := openai.Models(ctx, openai.Options{BaseURL: baseURL, Model: "any", Total: time.Second, Retries: -1})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return name == "" || name == "ibid" || strings.HasPrefix(name, "ibid/") || notWriters.MatchString(name)
	})
}

// modelHint returns the command that uses the models of a server.
func modelHint(s web.ModelServer) string {
	return fmt.Sprintf("Found %s with %s: ibid serve --base-url %s --model %s",
		s.Name, countOf(len(s.Models), "model"), s.BaseURL, printable(s.Models[0]))
}

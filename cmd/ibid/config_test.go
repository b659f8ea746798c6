package main

import "testing"

func TestIsNear(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"http://localhost:11434/v1":             true,
		"http://127.0.0.1:8000/v1":              true,
		"http://[::1]:8000/v1":                  true,
		"http://ollama:11434/v1":                true, // a neighbour in a container network
		"http://192.168.1.20/v1":                true,
		"http://box.local/v1":                   true,
		"http://host.docker.internal:11434/v1":  true,
		"https://api.openai.com/v1":             false,
		"https://203.0.113.7/v1":                false,
		"https://localhost.example.com/v1":      false,
		"https://user:secret@llm.example.com/v": false,
	} {
		if got := isNear(url); got != want {
			t.Errorf("%s: %t", url, got)
		}
	}
}

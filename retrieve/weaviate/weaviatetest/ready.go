package weaviatetest

import (
	"net/http"
	"time"
)

// ready asks a node whether it is.
func ready(address string) bool {
	client := http.Client{Timeout: 2 * time.Second}
	reply, err := client.Get("http://" + address + "/v1/.well-known/ready")
	if err != nil {
		return false
	}
	return reply.Body.Close() == nil && reply.StatusCode == http.StatusOK
}

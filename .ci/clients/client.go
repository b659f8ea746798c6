//go:build ignore

// Prints what go-openai gets, a line for each way of asking.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/sashabaranov/go-openai"
)

func main() {
	c := openai.DefaultConfig("none")
	c.BaseURL = os.Args[1] + "/v1"
	client, ctx := openai.NewClientWithConfig(c), context.Background()
	tell := func(how, text string) {
		// go-openai has neither annotations nor citations.
		b, err := json.Marshal(map[string]any{"client": "go-openai", "how": how, "text": text})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(b))
	}
	ask := openai.ChatCompletionRequest{Model: "ibid", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: os.Args[2]}}}
	whole, err := client.CreateChatCompletion(ctx, ask)
	if err != nil {
		log.Fatal(err)
	}
	tell("whole", whole.Choices[0].Message.Content)
	stream, err := client.CreateChatCompletionStream(ctx, ask)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	var text strings.Builder
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		for _, choice := range chunk.Choices {
			text.WriteString(choice.Delta.Content)
		}
	}
	tell("stream", text.String())
}

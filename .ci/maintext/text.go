// Text prints, as JSON, the text that Ibid reads of each file that is named on
// standard input, in their order.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"

	"ibid/ingest"
)

func main() {
	if code, ran := ingest.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
		os.Exit(code)
	}
	var texts []string
	reader := new(ingest.Reader)
	for names := bufio.NewScanner(os.Stdin); names.Scan(); {
		data, err := os.ReadFile(names.Text())
		if err != nil {
			log.Fatal(err)
		}
		text := ""
		if doc, err := reader.Read(context.Background(), "page.html", data); err == nil {
			text = doc.Text
		}
		texts = append(texts, text)
	}
	if err := json.NewEncoder(os.Stdout).Encode(texts); err != nil {
		log.Fatal(err)
	}
}

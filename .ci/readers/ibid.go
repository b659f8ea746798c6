//go:build ignore

// Reads the files that are named on the lines of standard input, and prints a JSON
// line with the text and headings of each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"

	"ibid/ingest"
)

func main() {
	if code, ran := ingest.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
		os.Exit(code)
	}
	r := new(ingest.Reader)
	out := json.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		text, headings := "", [][2]any{} // each heading with its offset
		data, err := os.ReadFile(in.Text())
		if err != nil {
			log.Fatal(err)
		}
		if doc, err := r.Read(context.Background(), in.Text(), data); err == nil { // otherwise the text is empty
			text = doc.Text
			if doc.Format == "mail" || doc.Format == "outlook" { // other readers return the header as text
				text = strings.Join([]string{doc.Meta["author"], doc.Meta["to"], doc.Meta["cc"], doc.Meta["date"], text}, "\n")
			}
			for _, s := range doc.Sections {
				headings = append(headings, [2]any{s.Heading, s.Start})
			}
		}
		if err := out.Encode(map[string]any{"path": in.Text(), "text": text, "headings": headings}); err != nil {
			log.Fatal(err)
		}
	}
	r.Close()
}

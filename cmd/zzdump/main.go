package main

import (
	"context"
	"fmt"
	"os"

	"ibid/ingest"
)

func main() {
	if code, ran := ingest.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
		os.Exit(code)
	}
	data, _ := os.ReadFile(os.Args[1])
	doc, err := new(ingest.Reader).Read(context.Background(), os.Args[1], data)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(os.Args) > 2 {
		fmt.Println("TITLE", doc.Title, doc.Meta, doc.Partial)
		for _, s := range doc.Sections {
			fmt.Println("SEC", s.Level, s.Heading)
		}
	}
	fmt.Println(doc.Text)
}

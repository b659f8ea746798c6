//go:build ignore

// Escaped prints, as JSON lines, the hostile and the honest texts of the tests as
// clients get them that render Markdown, for the renderers in markdown.mjs and
// markdown.py.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"

	"ibid/cite/rewrite"
)

func main() {
	hostile, err := filepath.Glob("web/testdata/injection/*.txt")
	if err != nil || len(hostile) == 0 {
		log.Fatal("run this in the root of the repository: ", err)
	}
	out := json.NewEncoder(os.Stdout)
	codePoint := regexp.MustCompile(`\{U\+([0-9A-F]+)\}`)
	for _, file := range append(hostile, "cite/rewrite/testdata/honest.txt") {
		a, err := txtar.ParseFile(file)
		if err != nil {
			log.Fatal(err)
		}
		for _, f := range a.Files {
			text := codePoint.ReplaceAllStringFunc(string(f.Data), func(s string) string {
				r, err := strconv.ParseInt(codePoint.FindStringSubmatch(s)[1], 16, 32)
				if err != nil {
					log.Fatal(err)
				}
				return string(rune(r))
			})
			name := fmt.Sprintf("%s: %s", filepath.Base(file), f.Name)
			for _, cited := range []string{text, "The pier§ is " + text + "§ shut."} {
				if err := out.Encode(map[string]string{"name": name, "markdown": escape(cited)}); err != nil {
					log.Fatal(err)
				}
			}
		}
	}
}

// escape escapes a text, with a link of Ibid's own for each "§".
func escape(text string) string {
	var e rewrite.Escaper
	var out []byte
	for i, part := range strings.Split(text, "§") {
		if i > 0 {
			out, _ = e.AppendNumber(out, []byte("[[1]](/documents/own)"))
		}
		out = e.Append(out, []byte(part))
	}
	return string(e.Close(out))
}

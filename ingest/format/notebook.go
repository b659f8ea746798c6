package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"ibid/ingest/charset"
	"strings"
)

// Limits of a cell's output, whose first lines say what it is.
const (
	maxOutputLines = 20
	maxOutputBytes = 2000
)

// A notebook has the fields of a Jupyter file (nbformat 4) that are read.
type notebook struct {
	Metadata struct {
		Title    string
		Authors  []struct{ Name string }
		Language struct{ Name string } `json:"language_info"`
	}
	Cells []notebookCell
}

type notebookCell struct {
	Type    string    `json:"cell_type"`
	Source  manyLines // of any cell
	Outputs []struct {
		Text  manyLines // printed output
		Error string    `json:"ename"`
		Value string    `json:"evalue"`
		Data  struct {
			Plain manyLines `json:"text/plain"`
		}
	}
}

// manyLines is a text of a notebook: a string or a list of lines.
type manyLines string

func (m *manyLines) UnmarshalJSON(data []byte) error {
	var lines []string
	if len(data) > 0 && data[0] == '[' {
		if err := json.Unmarshal(data, &lines); err != nil {
			return err
		}
		*m = manyLines(strings.Join(lines, ""))
		return nil
	}
	var whole string
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &whole); err != nil {
			return err
		}
	}
	*m = manyLines(whole)
	return nil
}

// Notebook reads a Jupyter notebook: Markdown, code, and the beginning of its
// output.
func Notebook(doc *Document, data []byte) error {
	src, err := charset.Decode(data, "")
	if err != nil {
		return err
	}
	var book notebook
	if err := json.Unmarshal([]byte(src), &book); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + strings.Count(src[:min(len(src), int(syntax.Offset))], "\n")
			return fmt.Errorf("line %d: it is not a valid notebook: %w", line, err)
		}
		return fmt.Errorf("it is not a valid notebook: %w", err)
	}
	if book.Cells == nil {
		return errors.New("it is not a notebook of format 4: it has no cells; open it in Jupyter and save it again")
	}
	doc.setMeta("title", book.Metadata.Title)
	var names []string
	for _, a := range book.Metadata.Authors {
		names = append(names, a.Name)
	}
	doc.setMeta("author", strings.Join(names, ", "))
	var b builder
	slugs := make(map[string]int)
	for _, c := range book.Cells {
		switch c.Type {
		case "markdown", "raw":
			markdownInto(&b, strings.ReplaceAll(string(c.Source), "\r\n", "\n"), slugs, false, -1)
		case "code":
			b.Code(string(c.Source))
			for _, o := range c.Outputs {
				b.Code(beginning(string(o.Text) + string(o.Data.Plain)))
				if o.Error != "" {
					b.Code(beginning(o.Error + ": " + o.Value))
				}
			}
		}
	}
	b.into(doc)
	doc.titleFromHeading(1)
	return nil
}

// beginning returns the first lines of an output.
func beginning(text string) string {
	lines := strings.SplitAfterN(text, "\n", maxOutputLines+1)
	first := strings.Join(lines[:min(len(lines), maxOutputLines)], "")
	if first = strings.ToValidUTF8(first[:min(len(first), maxOutputBytes)], ""); len(first) < len(text) {
		return strings.TrimRight(first, "\n") + "\n…"
	}
	return text
}

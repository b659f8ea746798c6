package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxOutput is the number of bytes read from a cell's output, enough to show what the output is.
const maxOutput = 2000

// A notebook has the fields of a Jupyter file (nbformat 4) that are read.
type notebook struct {
	Metadata struct {
		Title string
	}
	Cells []notebookCell
}

type notebookCell struct {
	Type    string      `json:"cell_type"`
	Source  stringLines // of any cell
	Outputs []struct {
		Text  stringLines // printed output
		Error string      `json:"ename"`
		Value string      `json:"evalue"`
		Data  struct {
			Plain stringLines `json:"text/plain"`
		}
	}
}

// stringLines is a text in a notebook: a string or a list of lines.
type stringLines string

func (m *stringLines) UnmarshalJSON(data []byte) error {
	var lines []string
	if err := json.Unmarshal(data, &lines); err == nil {
		*m = stringLines(strings.Join(lines, ""))
		return nil
	}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(m))
	}
	return nil // not text
}

// Notebook reads a Jupyter notebook: Markdown, code, and the beginning of its output.
func Notebook(doc *Document, src string) error {
	var book notebook
	if err := json.Unmarshal([]byte(src), &book); err != nil {
		return fmt.Errorf("it is not a valid notebook: %w", err)
	}
	if book.Cells == nil {
		return errors.New("it is not a notebook of format 4: it has no cells; open it in Jupyter and save it again")
	}
	doc.setMeta("title", book.Metadata.Title)
	var b builder
	slugs := make(map[string]int)
	for _, c := range book.Cells {
		switch c.Type {
		case "markdown", "raw":
			addMarkdown(&b, strings.ReplaceAll(string(c.Source), "\r\n", "\n"), slugs, -1)
		case "code":
			b.Code(string(c.Source))
			for _, o := range c.Outputs {
				b.Code(truncateOutput(string(o.Text) + string(o.Data.Plain)))
				if o.Error != "" {
					b.Code(truncateOutput(o.Error + ": " + o.Value))
				}
			}
		}
	}
	b.moveTo(doc)
	doc.titleFromHeading(1)
	return nil
}

// truncateOutput returns the first part of an output.
func truncateOutput(text string) string {
	if len(text) <= maxOutput {
		return text
	}
	return strings.ToValidUTF8(text[:maxOutput], "") + "\n…"
}

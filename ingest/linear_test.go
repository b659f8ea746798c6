package ingest

import (
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest/child"
)

// TestLinearTime reads, splits and counts hostile texts. Those of any markup are read as each format
// of text.
func TestLinearTime(t *testing.T) {
	type hostileText struct{ ending, unit string }
	var texts []hostileText
	endings := []string{".mdx"} // Markdown, but read differently
	for _, f := range formats {
		if f.readText != nil {
			endings = append(endings, f.endings[0])
		}
	}
	const file = "testdata/hostile.txt"
	for _, row := range datatest.Rows(t, file, "any markup") {
		for _, ending := range endings {
			texts = append(texts, hostileText{ending, row[1]})
		}
	}
	for _, row := range datatest.Rows(t, file, "endings") {
		for _, unit := range row[1:] {
			texts = append(texts, hostileText{row[0], unit})
		}
	}
	for _, text := range datatest.Pick(t, texts) {
		linear(t, text.unit+" as "+text.ending, text.unit, func(data string) {
			doc, err := new(Reader).Read(t.Context(), "a"+text.ending, []byte(data))
			if err != nil {
				if strings.Contains(err.Error(), "crashed") {
					t.Errorf("%s of %q: %v", text.ending, text.unit, err)
				}
				return
			}
			checkDocument(t, doc)
			Split(doc)
			if len(doc.Text) > 40*len(data) {
				t.Errorf("%s of %q: %d KB are read as %d KB of text", text.ending, text.unit, len(data)>>10, len(doc.Text)>>10)
			}
		})
	}
	for _, row := range datatest.Pick(t, datatest.Rows(t, file, "tokens")) {
		linear(t, "counting "+row[0], row[1], func(data string) { CountTokens(data) })
	}
}

// linear fails the test unless the processor time of do is proportional to the size of its data.
func linear(t *testing.T, name, unit string, do func(data string)) {
	t.Helper()
	datatest.Linear(t, child.ProcessorTime, name, func(size int) { do(strings.Repeat(unit, size/len(unit))) })
}

package ingest

import (
	"fmt"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// The repetition of long column names and of spanning cells is bounded.
func TestNamesOfColumnsAreBounded(t *testing.T) {
	datatest.CampaignOnly(t)
	const columns, rows = 4000, 200
	name := func(i int) string { return fmt.Sprintf("%d %s", i, strings.Repeat("n", 190)) }
	var table, page strings.Builder
	page.WriteString("<table><tr>")
	for i := range columns {
		table.WriteString(name(i) + ",")
		page.WriteString("<td rowspan=9999999 colspan=2>" + name(i))
	}
	table.WriteString(strings.Repeat("\n"+strings.Repeat("x,", columns), rows))
	page.WriteString(strings.Repeat("<tr><td>x", rows))
	for name, content := range map[string]string{"a.csv": table.String(), "a.html": page.String()} {
		doc, err := new(Reader).Read(t.Context(), name, []byte(content))
		must(t, err)
		if len(doc.Text) > 128<<20+3*len(content) {
			t.Errorf("%s: %d MB of %d MB", name, len(doc.Text)>>20, len(content)>>20)
		}
		if strings.HasSuffix(name, ".csv") && doc.Partial == "" {
			t.Error("names were left out without a word")
		}
	}
	page.Reset()
	page.WriteString("<table><tr><th>" + strings.Repeat("mast ", 20<<10) + "<th>boom" +
		strings.Repeat("<tr><td>oak<td>pine", 10_000) + "</table>")
	doc, err := new(Reader).Read(t.Context(), "a.html", []byte(page.String()))
	must(t, err)
	if len(doc.Text) > 3*page.Len() {
		t.Errorf("%d MB of %d KB", len(doc.Text)>>20, page.Len()>>10)
	}
}

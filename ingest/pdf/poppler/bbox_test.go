package poppler

import (
	"strings"
	"testing"

	"ibid/ingest/pdf"
)

const page = `<!DOCTYPE html><html><head>
<title>Berths &amp; rates</title>
<meta name="Author" content="The &quot;office&quot;"/>
<meta name="CreationDate" content="2024-03-31T16:39:25-07"/>
</head><body><doc>
  <page width="612.0" height="792.0">
    <flow><block xMin="80" yMin="78" xMax="529" yMax="115">
        <line xMin="80" yMin="78" xMax="529" yMax="95">
          <word xMin="80.5" yMin="78.0" xMax="173.8" yMax="95.0">High</word>
          <word xMin="178.3" yMin="78.0" xMax="276.3" yMax="95.0">water &lt;now&gt;</word>
        </line>
        <line xMin="80" yMin="100" xMax="529" yMax="117">
          <word xMin="80.5" yMin="100.0" xMax="173.8" yMax="117.0">comes</word>
          <word xMin="x" yMin="100.0" xMax="173.8" yMax="117.0">broken</word>
          <word xMin="500" yMin="100.0" xMax="510" yMax="200.0">upwards</word>
        </line>
    </block></flow>
  </page>
  <page width="612.0" height="792.0">
  </page>
  <page width="612.0" height="792.0">
          <word xMin="80.5" yMin="78.0" xMax="173.8" yMax="95.0">cut`

func TestParse(t *testing.T) {
	s, err := Parse([]byte(page))
	if err != nil {
		t.Fatal(err)
	}
	if s.Title != "Berths & rates" || s.Author != `The "office"` || s.Date != "2024-03-31" {
		t.Errorf("%+v", s)
	}
	var pages []pdf.Drawn
	for p := range s.Pages {
		pages = append(pages, p)
	}
	if len(pages) != 3 || pages[0].Err != nil || pages[1].Err != nil || pages[2].Err == nil {
		t.Fatalf("%d pages: %+v", len(pages), pages)
	}
	var text strings.Builder
	for _, g := range pages[0].Glyphs {
		if g.Begins {
			text.WriteString("/")
		}
		text.WriteString(g.Text)
	}
	if got := text.String(); got != "/High water <now>/comesupwards" {
		t.Errorf("%q", got)
	}
	first, last := pages[0].Glyphs[0], pages[0].Glyphs[len(pages[0].Glyphs)-1]
	if first.X0 != 80.5 || first.X1 != 173.8 || first.Size != 17 || first.Turn != 0 || first.Y >= 0 {
		t.Errorf("%+v", first)
	}
	if last.Turn != 1 || last.Size != 10 {
		t.Errorf("%+v", last)
	}
	if _, err := Parse([]byte("Syntax Error: no document")); err == nil {
		t.Error("nothing was parsed")
	}
}

// Any output can be laid out.
func FuzzParse(f *testing.F) {
	f.Add([]byte(page))
	f.Fuzz(func(t *testing.T, out []byte) {
		s, err := Parse(out)
		if err != nil {
			return
		}
		if _, err := pdf.Lay(s); err != nil && err.Error() == "" {
			t.Fatal("an error without a message")
		}
	})
}

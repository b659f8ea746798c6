package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// TestLocate finds a quote by its hash alone and by its words, after its document changed.
func TestLocate(t *testing.T) {
	const quote = "The mooring fee is 240 crowns a season."
	const text = "Moorings\n\n" + quote + " It is due on 1 April.\n"
	at := strings.Index(text, quote)
	for _, c := range []struct {
		name, text        string
		byHash, byWords   quoteState
		markedBy, markedW string
	}{
		{"the same", text, quoteUnchanged, quoteUnchanged, quote, quote},
		{"changed after it", text + "More.", quoteUnchanged, quoteUnchanged, quote, quote},
		{"longer before it", "New words.\n" + text, quoteMoved, quoteMoved, quote, quote},
		{"shorter before it", text[4:], quoteMoved, quoteMoved, quote, quote},
		{"twice", strings.Repeat("Boats. ", 9) + quote + strings.Repeat(" Boats.", 99) + quote, quoteMoved, quoteMoved, quote, quote},
		{"another fee", strings.Replace(text, "240", "260", 1), quoteChanged, quoteChanged, "", "The mooring fee is 260 crowns a season"},
		{"other words", "Dogs are welcome on the pier.", quoteChanged, quoteGone, "", ""},
		{"no text", "", quoteChanged, quoteGone, "", ""},
	} {
		d := &ingest.Document{Text: c.text}
		for _, words := range []string{"", quote} {
			want, marked := c.byHash, c.markedBy
			if words != "" {
				want, marked = c.byWords, c.markedW
			}
			r, state := quoteRefOf("", quote).locate(d, textRange{Start: at, End: at + len(quote)}, words)
			if state != want || d.Text[r.Start:r.End] != marked {
				t.Errorf("%s, words %q: state = %s, marked %q", c.name, words, state, d.Text[r.Start:r.End])
			}
		}
	}
	if _, state := (quoteRef{}).locate(&ingest.Document{Text: text}, textRange{Start: 1, End: 4}, ""); state != "" {
		t.Errorf("link without a hash: state = %s, want none", state)
	}
}

// TestLocateNearest checks that the nearest of several places is found, and that a text in
// which every byte may begin the quote takes bounded time.
func TestLocateNearest(t *testing.T) {
	const quote = "No dogs."
	text := strings.Repeat(quote+strings.Repeat(" x", 40)+" ", 5)
	step := len(text) / 5
	for _, words := range []string{"", quote} {
		for old, want := range map[int]int{1: 0, step - 3: step, step + 9: step, step + 60: 2 * step, len(text) + 99: 4 * step} {
			r, state := quoteRefOf("", quote).locate(&ingest.Document{Text: text}, textRange{Start: old, End: old + len(quote)}, words)
			if r.Start != want || state != quoteMoved {
				t.Errorf("words %q, from %d: found at %d, %s", words, old, r.Start, state)
			}
		}
		hostile := &ingest.Document{Text: strings.Repeat(",", 1<<20)}
		for _, n := range []int{1, 300, 64 << 10} {
			if words != "" {
				words = strings.Repeat(",", n-1) + "."
			}
			if _, state := quoteRefOf("", "x").locate(hostile, textRange{Start: 1 << 19, End: 1<<19 + n}, words); state == quoteMoved {
				t.Errorf("%d bytes: state = %s", n, state)
			}
		}
	}
}

func FuzzLocate(f *testing.F) {
	f.Add("The fee is 240.", "240", 3)
	f.Add("図書館は月曜日に", "月曜", 0)
	f.Fuzz(func(t *testing.T, text, words string, at int) {
		at = min(max(at, 0), 1<<20)
		for _, known := range []string{"", words} {
			r, state := quoteRefOf("", words).locate(&ingest.Document{Text: text}, textRange{Start: at, End: at + len(words)}, known)
			if r.Start < 0 || r.End < r.Start || state != "" && r.End > len(text) {
				t.Fatalf("range %d to %d of %d bytes", r.Start, r.End, len(text))
			}
			if exact := state == quoteUnchanged || state == quoteMoved; exact && text[r.Start:r.End] != words ||
				!exact && known != "" && strings.Contains(text, words) {
				t.Fatalf("state = %s for %q", state, text[r.Start:r.End])
			}
		}
	})
}

// TestQuoteStates opens a link and a record after the document was edited, renamed
// and deleted.
func TestQuoteStates(t *testing.T) {
	was := newShelf()
	p := was.passage("club/handbook/mooring.md", "The mooring fee is 240 crowns a season.")
	link, _ := strings.CutSuffix(strings.TrimPrefix(QuoteLink("", p, p.Start, p.End), "/documents/"), "#quote")
	recorded, err := json.Marshal(map[string]any{
		"sources": []cite.Source{{Number: 1, Document: p.Document,
			Passages: []cite.SourcePassage{{ID: p.ID, Start: p.Start, End: p.End, Quote: p.Text}}}},
		"citations": []cite.Citation{{Document: p.Document, Digest: p.Digest, Quote: p.Text}},
	})
	must(t, err)
	var others shelf
	packed := (&packer{}).pack([]event{{kind: "done", data: recorded, id: eventID(time.Time{}, 1)}})
	for _, c := range []struct {
		name          string
		change        func(*ingest.Document)
		page, records quoteState
	}{
		{"the same", func(*ingest.Document) {}, quoteUnchanged, quoteUnchanged},
		{"edited before", func(d *ingest.Document) { d.Digest, d.Text = "new", "Prices\n"+d.Text }, quoteMoved, quoteMoved},
		{"edited", func(d *ingest.Document) { d.Digest, d.Text = "new", strings.ReplaceAll(d.Text, "240", "260") }, quoteChanged, quoteChanged},
		{"renamed", func(d *ingest.Document) { d.ID, d.Path = "club/fees.md", "fees.md" }, quoteMoved, quoteMoved},
		{"renamed after it was edited", func(d *ingest.Document) {
			d.ID, d.Digest, d.Text = "club/fees.md", "new", strings.ReplaceAll(d.Text, "240", "260")
			d.Meta = map[string]string{ingest.FormerKey: "club/prices.md//" + p.Document}
		}, quoteChanged, quoteChanged},
		{"renamed, and another file has the name", func(d *ingest.Document) {
			other := *d
			other.Digest, other.Text = "other", "Prices are on the board."
			others = append(others, &other)
			d.ID, d.Meta = "club/fees.md", map[string]string{ingest.FormerKey: d.ID}
		}, quoteMoved, quoteMoved},
		{"deleted", nil, quoteGone, quoteGone},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := shelf{}
			others = nil
			for _, d := range newShelf() {
				switch copied := *d; {
				case d.ID != p.Document:
					copied.Digest = fmt.Sprintf("%064x", len(now)) // one file for each case
					now = append(now, &copied)
				case c.change != nil:
					c.change(&copied)
					now = append(now, &copied)
				}
			}
			now = append(now, others...)
			l := newLedger()
			l.records["mine"] = retrieve.Record{ID: "mine", Ended: time.Date(2026, 5, 12, 0, 0, 0, 0, time.UTC), Events: packed}
			l.records["other"] = retrieve.Record{ID: "other", By: "key", Events: packed}
			h := newHandler(t, func(o *Options) { o.Library, o.Ledger = now, l })
			for run, cited := range map[string]string{"mine": "2026-05-12", "other": "", "none": ""} {
				if c.page != quoteChanged {
					break
				}
				x := into[shownDocument](t, call(h, "GET", "/api/documents/"+link+"&run="+run, ""), 200)
				if x.Cited != cited || (x.Was == p.Text) != (cited != "") || cited != "" && x.Start != p.Start {
					t.Errorf("link, with the record %s: was %q, cited %q, at %d", run, x.Was, x.Cited, x.Start)
				}
				page := call(h, "GET", "/documents/"+link+"&run="+run, "").Body.String()
				if strings.Contains(page, "240 crowns") != (cited != "") || !strings.Contains(page, "260 crowns") {
					t.Errorf("page, with the record %s:\n%s", run, page)
				}
			}
			run := "&run=mine"
			if c.change == nil {
				wantProblem(t, call(h, "GET", "/api/documents/"+link, ""), http.StatusNotFound, "document_not_found")
				if page := call(h, "GET", "/documents/"+link+run, ""); page.Code != 200 || !strings.Contains(page.Body.String(), p.Text) {
					t.Errorf("page of a deleted document: %d %s", page.Code, page.Body)
				}
			} else {
				run = ""
			}
			if w := call(h, "GET", "/api/documents/"+link+run, ""); w.Code != 200 {
				t.Errorf("link: %d %s", w.Code, w.Body)
			} else if x := into[shownDocument](t, w, 200); x.State != c.page || x.Missing != (c.page == quoteChanged || c.page == quoteGone) {
				t.Errorf("link: state = %q, missing = %v", x.State, x.Missing)
			}
			a, err := decodeStored[cite.Answer](recorded)
			must(t, err)
			must(t, (&renames{catalog: &catalog{Library: now}}).setStates(t.Context(), &a))
			if s := a.Sources[0]; s.State != string(c.records) || (s.Now == "club/fees.md") != strings.HasPrefix(c.name, "renamed") {
				t.Errorf("record = %+v", a)
			}
		})
	}
}

// TestForgetAnswers deletes uploads with and without the answers that quote them.
func TestForgetAnswers(t *testing.T) {
	l := newLedger()
	h := newHandler(t, func(o *Options) { o.Ledger, o.UploadFolders = l, oneFolder{Uploads: uploadFolder(t)} })
	for query, kept := range map[string]bool{"?answers=keep": true, "": false} {
		l.records["r"] = retrieve.Record{ID: "r", Documents: []string{"uploads/a.txt"}}
		wantProblem(t, call(h, "DELETE", "/api/documents/uploads/a.txt"+query, ""), http.StatusNotFound, "document_not_found")
		if _, ok := l.records["r"]; ok != kept {
			t.Errorf("%q: answer kept = %v", query, ok)
		}
	}
}

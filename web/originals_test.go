package web

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"ibid/ingest"
)

// files are originals by document; a missing one is no longer in its folder.
type files map[string]string

func (f files) Original(_ context.Context, d *ingest.Document) ([]byte, error) {
	data, ok := f[d.ID]
	if !ok {
		return nil, fs.ErrNotExist
	}
	switch data {
	case "changed":
		return nil, ingest.ErrChanged
	case "elsewhere":
		return nil, ingest.ErrElsewhere
	}
	return []byte(data), nil
}

func (f files) Here(_ context.Context, d *ingest.Document) bool { return f[d.ID] != "elsewhere" }

// TestOriginalElsewhere checks a document whose file is on another server: its
// text is shown, with a note.
func TestOriginalElsewhere(t *testing.T) {
	h := newHandler(t, func(o *Options) { o.Originals = files{"club/guide.pdf": "elsewhere"} })
	get := func(path string) string {
		w := call(h, "GET", path, "")
		return fmt.Sprint(w.Code, " ", w.Body)
	}
	page := get("/documents/club/guide.pdf?start=69&end=73")
	if !strings.HasPrefix(page, "200 ") || !strings.Contains(page, "the file is on another server") || strings.Contains(page, "original=1") ||
		!strings.Contains(page, "<mark") {
		t.Errorf("the page is %s", page)
	}
	if got := get("/api/documents/club/guide.pdf"); !strings.HasPrefix(got, "200 ") || strings.Contains(got, "original") {
		t.Errorf("the document is %s", got)
	}
	if got := get("/documents/club/guide.pdf?original=1"); !strings.HasPrefix(got, "404 ") || !strings.Contains(got, "original_not_found") ||
		!strings.Contains(got, "not on this server") {
		t.Errorf("its original is %s", got)
	}
}

// TestOriginals checks that a PDF is shown with its own policy, and other files
// are downloaded.
func TestOriginals(t *testing.T) {
	h := newHandler(t, func(o *Options) {
		o.Originals = files{"club/guide.pdf": "%PDF-1.4 the guide", "club/handbook/mooring.md": "<script>", "club/odd/empty.txt": "changed"}
	})
	for _, test := range []struct {
		path                                   string
		status                                 int
		contentType, disposition, policy, body string
	}{
		{"/documents/club/guide.pdf?original=1", 200, "application/pdf", `inline; filename=guide.pdf`, originalPolicy, "%PDF-1.4 the guide"},
		{"/documents/club/handbook/mooring.md?original=1", 200, "application/octet-stream", `attachment; filename=mooring.md`,
			contentSecurityPolicy, "<script>"},
		{"/documents/club/odd/empty.txt?original=1", 404, "application/problem+json", "", contentSecurityPolicy, "original_changed"},
		{Link("", newShelf()[2].ID, 0, 0) + "?original=1", 404, "application/problem+json", "", contentSecurityPolicy, "original_not_found"},
		{"/documents/club/none?original=1", 404, "application/problem+json", "", contentSecurityPolicy, "document_not_found"},
	} {
		w := call(h, "GET", test.path, "")
		head := w.Result().Header
		if w.Code != test.status || head.Get("Content-Type") != test.contentType || head.Get("Content-Disposition") != test.disposition ||
			head.Get("Content-Security-Policy") != test.policy || head.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(w.Body.String(), test.body) {
			t.Errorf("%s: %d %v %s", test.path, w.Code, head, w.Body)
		}
	}
	for path, want := range map[string]string{"/api/documents": `"original":"`, "/documents": `href="`} {
		got := call(h, "GET", path+"/club/guide.pdf?start=69&end=73", "").Body.String()
		if want += `/documents/club/guide.pdf?original=1#page=2"`; !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// TestDrawn checks that a drawn page that a browser has is not drawn again.
func TestDrawn(t *testing.T) {
	h := newHandler(t, func(o *Options) { o.Drawer = printed{} })
	const path = "/documents/club/guide.pdf?drawn=1&width=100"
	first := call(h, "GET", path, "")
	if first.Code != 200 || first.Header().Get("Content-Type") != "image/png" {
		t.Errorf("%d %v", first.Code, first.Header())
	}
	if again := call(h, "GET", path, "", "If-None-Match", first.Header().Get("ETag")); again.Code != 304 {
		t.Errorf("again: %d", again.Code)
	}
	if other := call(h, "GET", path+"0", "", "If-None-Match", first.Header().Get("ETag")); other.Code != 200 {
		t.Errorf("of another width: %d", other.Code)
	}
}

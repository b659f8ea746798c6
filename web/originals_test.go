package web

import (
	"context"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"strings"
	"testing"

	"ibid/ingest"
)

// files are originals by document; a missing one is not in its folder any more.
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

// TestOriginalElsewhere: a document whose file is with another server says so,
// and its text is shown as any other's.
func TestOriginalElsewhere(t *testing.T) {
	h := newHandler(t, func(o *Options) { o.Originals = files{"club/guide.pdf": "elsewhere"} })
	get := func(path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1:8080"+path, nil))
		return fmt.Sprint(w.Code, " ", w.Body)
	}
	page := get("/documents/club/guide.pdf?start=69&end=73")
	if !strings.HasPrefix(page, "200 ") || !strings.Contains(page, "the file is on another server") || strings.Contains(page, "original=1") || !strings.Contains(page, "<mark") {
		t.Errorf("the page is %s", page)
	}
	if got := get("/api/documents/club/guide.pdf"); !strings.HasPrefix(got, "200 ") || strings.Contains(got, "original") {
		t.Errorf("the document is %s", got)
	}
	if got := get("/documents/club/guide.pdf?original=1"); !strings.HasPrefix(got, "404 ") || !strings.Contains(got, "original_not_found") || !strings.Contains(got, "not on this server") {
		t.Errorf("its original is %s", got)
	}
}

// TestOriginals: a PDF is shown under a policy of its own, and nothing else is.
func TestOriginals(t *testing.T) {
	h := newHandler(t, func(o *Options) {
		o.Originals = files{"club/guide.pdf": "%PDF-1.4 the guide", "club/handbook/mooring.md": "<script>", "club/odd/empty.txt": "changed"}
	})
	get := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "http://127.0.0.1:8080"+path, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, test := range []struct {
		path                                   string
		status                                 int
		contentType, disposition, policy, body string
	}{
		{"/documents/club/guide.pdf?original=1", 200, "application/pdf", `inline; filename=guide.pdf`, originalPolicy, "%PDF-1.4 the guide"},
		{"/documents/club/handbook/mooring.md?original=1", 200, "application/octet-stream", `attachment; filename=mooring.md`, contentSecurityPolicy, "<script>"},
		{"/documents/club/odd/empty.txt?original=1", 404, "application/problem+json", "", contentSecurityPolicy, "original_changed"},
		{Link("", newShelf()[2].ID, 0, 0) + "?original=1", 404, "application/problem+json", "", contentSecurityPolicy, "original_not_found"},
		{"/documents/club/none?original=1", 404, "application/problem+json", "", contentSecurityPolicy, "document_not_found"},
	} {
		w := get(test.path)
		head := w.Result().Header
		if w.Code != test.status || head.Get("Content-Type") != test.contentType || head.Get("Content-Disposition") != test.disposition ||
			head.Get("Content-Security-Policy") != test.policy || head.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(w.Body.String(), test.body) {
			t.Errorf("%s: %d %v %s", test.path, w.Code, head, w.Body)
		}
	}
	if got := get("/api/documents/club/guide.pdf?start=69&end=73").Body.String(); !strings.Contains(got, `"original":"/documents/club/guide.pdf?original=1#page=2"`) {
		t.Errorf("the link to the original is not in %s", got)
	}
	if got := get("/documents/club/guide.pdf?start=69&end=73").Body.String(); !strings.Contains(got, `href="/documents/club/guide.pdf?original=1#page=2"`) {
		t.Errorf("the link to the original is not in %s", got)
	}
}

package web

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ibid/ingest"
)

// digests is a sink that stores documents by id.
type digests map[string]*ingest.Document

func (d digests) Known(_ context.Context, root ingest.Root) (map[string]ingest.Stored, error) {
	known := map[string]ingest.Stored{}
	for _, doc := range d {
		known[doc.Path] = ingest.Stored{Digest: doc.Digest, Meta: doc.Meta}
	}
	return known, nil
}
func (d digests) Replace(_ context.Context, doc *ingest.Document, _ []ingest.Chunk) error {
	d[doc.ID] = doc
	return nil
}
func (d digests) Rename(context.Context, string, *ingest.Document) error { return nil }
func (d digests) Delete(_ context.Context, id string) error {
	delete(d, id)
	return nil
}

func TestUploads(t *testing.T) {
	stored, uploads := digests{}, uploadFolder(t)
	uploads.MaxBytes, uploads.Syncer.Sink = 1000, stored
	e := newHandler(t, func(o *Options) { o.UploadFolders = oneFolder{Uploads: uploads} })

	const (
		formKind = "multipart/form-data; boundary=b"
		note     = "--b\r\nContent-Disposition: form-data; name=note\r\n\r\nnot a file\r\n"
		report   = "--b\r\nContent-Disposition: form-data; name=file; filename=report.md\r\n\r\n# Report\r\n"
		end      = "--b--\r\n"
	)
	for _, tt := range []struct {
		name, method, path, kind, body string
		status                         int
		want                           string // the action or the problem's code
	}{
		{"raw", "POST", "/api/documents?name=a.md", "text/markdown", "# A\n\nFirst.", 201, "added"},
		{"again", "POST", "/api/documents?name=a.md", "", "# A\n\nSecond.", 200, "updated"},
		{"form", "POST", "/api/documents", formKind, note + report + end, 201, "added"},
		{"form of two files", "POST", "/api/documents", formKind, report + report + end, 400, "one_file"},
		{"form without a file", "POST", "/api/documents", formKind, note + end, 400, "no_file"},
		{"torn form", "POST", "/api/documents", formKind, note, 400, "no_file"},
		{"collection", "POST", "/api/documents?name=a.md&collection=default", "", "# A\n\nSecond.", 200, "unchanged"},
		{"no name", "POST", "/api/documents", "text/plain", "A", 400, "no_name"},
		{"bad name", "POST", "/api/documents?name=..", "", "A", 400, "bad_name"},
		{"in a folder", "POST", "/api/documents?name=proj%2Fa%2FREADME.md", "", "# A", 201, "added"},
		{"in another", "POST", "/api/documents?name=proj/b/README.md", "", "# B", 201, "added"},
		{"a file as a folder", "POST", "/api/documents?name=a.md/b.md", "", "A", 400, "bad_name"},
		{"outside", "POST", "/api/documents?name=../b.md", "", "A", 400, "bad_name"},
		{"delete a folder", "DELETE", "/api/documents/uploads/proj/a", "", "", 404, "document_not_found"},
		{"delete in a folder", "DELETE", "/api/documents/uploads/proj/a/README.md", "", "", 204, ""},
		{"too large", "POST", "/api/documents?name=b.md", "", strings.Repeat("a ", 1000), 413, "file_too_large"},
		{"unknown format", "POST", "/api/documents?name=b.exe", "", "A", 415, "unsupported_format"},
		{"unreadable", "POST", "/api/documents?name=b.md", "", "%PDF-1.4", 422, "unreadable_file"},
		{"another site", "POST", "/api/documents?name=b.md", "cross", "B.", 403, "cross_origin"},
		{"reread", "POST", "/api/documents/uploads/a.md", "", "", 200, "updated"},
		{"reread nothing", "POST", "/api/documents/uploads/z.md", "", "", 404, "document_not_found"},
		{"reread a folder's", "POST", "/api/documents/club/guide.pdf", "", "", 403, "not_an_upload"},
		{"label", "PATCH", "/api/documents/uploads/a.md", "", `{"tags":["x","y z"],"date":"2024-03"}`, 200, "updated"},
		{"unknown label", "PATCH", "/api/documents/uploads/a.md", "", `{"tag":["x"]}`, 400, "unknown_member"},
		{"no tag", "PATCH", "/api/documents/uploads/a.md", "", `{"tags":["x, y"]}`, 400, "bad_label"},
		{"no date", "PATCH", "/api/documents/uploads/a.md", "", `{"date":"March"}`, 400, "wrong_date"},
		{"long author", "POST", "/api/documents?name=a.md&author=" + strings.Repeat("x", maxLabel+1), "", "A", 400, "bad_label"},
		{"delete a root", "DELETE", "/api/documents/uploads/", "", "", 403, "not_an_upload"},
		{"label a folder's", "PATCH", "/api/documents/club/guide.pdf", "", `{}`, 403, "not_an_upload"},
		{"delete a folder's", "DELETE", "/api/documents/club/guide.pdf", "", "", 403, "not_an_upload"},
		{"delete outside", "DELETE", "/api/documents/uploads/..%2F..%2Fx", "", "", 404, "document_not_found"},
		{"delete by another site", "DELETE", "/api/documents/uploads/a.md", "cross", "", 403, "cross_origin"},
		{"delete", "DELETE", "/api/documents/uploads/a.md", "", "", 204, ""},
		{"delete again", "DELETE", "/api/documents/uploads/a.md", "", "", 404, "document_not_found"},
	} {
		header := []string{"Content-Type", tt.kind}
		if tt.kind == "cross" {
			header = []string{"Sec-Fetch-Site", "cross-site"}
		}
		w := call(e, tt.method, tt.path, tt.body, header...)
		var got struct{ Action, Code, Document, Detail string }
		if w.Body.Len() > 0 {
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Errorf("%s: %v: %s", tt.name, err, w.Body)
			}
		}
		if w.Code != tt.status || got.Action+got.Code != tt.want || w.Code >= 400 && got.Detail == "" {
			t.Errorf("%s: %d %s, want %d %s", tt.name, w.Code, w.Body, tt.status, tt.want)
		}
		if w.Code == 201 && w.Header().Get("Location") != Link("", got.Document, 0, 0) {
			t.Errorf("%s: Location is %q", tt.name, w.Header().Get("Location"))
		}
	}
	if len(stored) != 2 || stored["uploads/report.md"].Text == "" || stored["uploads/proj/b/README.md"] == nil {
		t.Errorf("stored %v", stored)
	}
	if w := call(newHandler(t, nil), "POST", "/api/documents?name=a.md", "A"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("without uploads: %d", w.Code)
	}
}

// TestUploadBrokenOff checks that an incomplete upload leaves no file.
func TestUploadBrokenOff(t *testing.T) {
	ended := make(chan error, 1)
	uploads := uploadFolder(t)
	e := newHandler(t, func(o *Options) { o.UploadFolders = oneFolder{Uploads: uploads} })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.ServeHTTP(w, r)
		ended <- nil
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err == nil {
		_, err = conn.Write([]byte("POST /api/documents?name=a.md HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nHalf of a file"))
	}
	if err == nil {
		err = conn.Close()
	}
	must(t, err)
	<-ended
	f, err := uploads.Dir.Open(".")
	must(t, err)
	defer f.Close()
	if names, err := f.Readdirnames(-1); err != nil || len(names) > 0 {
		t.Errorf("left %q, %v", names, err)
	}
}

package web

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
)

// digests is a sink that stores documents by id.
type digests map[string]*ingest.Document

func (d digests) StoredDocuments(_ context.Context, root ingest.Root) (map[string]ingest.Stored, error) {
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

	for _, tt := range datatest.Lines[struct {
		Name, Method, Path, Kind, Body string
		Status                         int
		Want                           string // the action or the problem's code
	}](t, "testdata/rows/uploads.jsonl") {
		header := []string{"Content-Type", tt.Kind}
		if tt.Kind == "cross" {
			header = []string{"Sec-Fetch-Site", "cross-site"}
		}
		w := call(e, tt.Method, tt.Path, tt.Body, header...)
		var got struct{ Action, Code, Document, Detail string }
		if w.Body.Len() > 0 {
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Errorf("%s: reply is not JSON: %v: %s", tt.Name, err, w.Body)
			}
		}
		if w.Code != tt.Status || got.Action+got.Code != tt.Want || w.Code >= 400 && got.Detail == "" {
			t.Errorf("%s: %d %s, want %d %s", tt.Name, w.Code, w.Body, tt.Status, tt.Want)
		}
		if w.Code == 201 && w.Header().Get("Location") != Link("", got.Document, 0, 0) {
			t.Errorf("%s: Location = %q", tt.Name, w.Header().Get("Location"))
		}
	}
	if len(stored) != 2 || stored["uploads/report.md"].Text == "" || stored["uploads/proj/b/README.md"] == nil {
		t.Errorf("stored = %v", stored)
	}
	if w := call(newHandler(t, nil), "POST", "/api/documents?name=a.md", "A"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("without uploads: status = %d, want 405", w.Code)
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
		t.Errorf("files left: %q, %v", names, err)
	}
}

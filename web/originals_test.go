package web

import (
	"context"
	"io/fs"
	"testing"

	"ibid/ingest"
)

// files are originals by document; a missing one was deleted from its folder.
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

func (f files) IsLocal(_ context.Context, d *ingest.Document) bool { return f[d.ID] != "elsewhere" }

// TestDrawn checks that a drawn page that the browser has cached is not drawn again.
func TestDrawn(t *testing.T) {
	h := newHandler(t, func(o *Options) { o.Drawer = printed{} })
	const path = "/documents/club/guide.pdf?drawn=1&width=100"
	first := call(h, "GET", path, "")
	if first.Code != 200 || first.Header().Get("Content-Type") != "image/png" {
		t.Errorf("first request: %d %v", first.Code, first.Header())
	}
	if again := call(h, "GET", path, "", "If-None-Match", first.Header().Get("ETag")); again.Code != 304 {
		t.Errorf("with the ETag: status = %d, want 304", again.Code)
	}
	if other := call(h, "GET", path+"0", "", "If-None-Match", first.Header().Get("ETag")); other.Code != 200 {
		t.Errorf("another width with the ETag: status = %d, want 200", other.Code)
	}
}

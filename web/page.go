package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

//go:embed static templates
var embedded embed.FS

// staticRoute is where the files of the page are served.
const staticRoute = "/static/*"

// A file is one static file with its entity tag.
type file struct {
	body, packed []byte // packed by gzip
	contentType  string
	tag          string
}

// loadFiles reads the static files by name. They are served from memory, by
// exact name, so that no path of a request is ever joined to a folder.
func loadFiles() (map[string]file, error) {
	entries, err := fs.ReadDir(embedded, "static")
	if err != nil {
		return nil, fmt.Errorf("reading the static files: %w", err)
	}
	files := map[string]file{}
	for _, e := range entries {
		body, err := embedded.ReadFile("static/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the static file %s: %w", e.Name(), err)
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(body); err != nil {
			return nil, fmt.Errorf("packing the static file %s: %w", e.Name(), err)
		}
		if err := w.Close(); err != nil {
			return nil, fmt.Errorf("packing the static file %s: %w", e.Name(), err)
		}
		files[e.Name()] = file{body: body, packed: packed.Bytes(), contentType: contentType(e.Name()), tag: fmt.Sprintf(`"%x"`, sha256.Sum256(body))[:18] + `"`}
	}
	return files, nil
}

// contentType does not ask the system's table of types, which differs from machine to machine.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func (s *server) static(c echo.Context) error {
	f, ok := s.files[c.Param("*")]
	if !ok {
		return echo.ErrNotFound
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, f.contentType)
	body, tag := f.body, f.tag
	h.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
	if takesGzip(c.Request()) {
		// Another body has another tag.
		body, tag = f.packed, strings.TrimSuffix(f.tag, `"`)+`z"`
		h.Set(echo.HeaderContentEncoding, "gzip")
	}
	h.Set("ETag", tag)
	// Asked for again each time, and answered with 304: modules never mix two versions.
	h.Set(echo.HeaderCacheControl, "no-cache")
	if err := setWriteDeadline(c.Response(), time.Now().Add(replyTimeout)); err != nil {
		return fmt.Errorf("bounding the reply: %w", err)
	}
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(body))
	return nil
}

// takesGzip says whether a client takes gzip for the whole of a file.
func takesGzip(r *http.Request) bool {
	if r.Header.Get("Range") != "" {
		return false
	}
	for _, coding := range strings.Split(r.Header.Get(echo.HeaderAcceptEncoding), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.TrimLeft(strings.TrimSpace(weight), "q=0.") != "" || weight == ""
		}
	}
	return false
}

// pages holds the templates, each with the frame around it.
type pages struct{ byName map[string]*template.Template }

func loadPages() (*pages, error) {
	p := &pages{byName: map[string]*template.Template{}}
	for _, name := range []string{"home", "viewer", "documents", "docs", "problem", "key"} {
		t, err := template.New("frame.html").Funcs(template.FuncMap{"link": Link, "size": size, "sentence": sentence}).
			ParseFS(embedded, "templates/frame.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the page %s: %w", name, err)
		}
		p.byName[name] = t
	}
	return p, nil
}

// A frame is what every page has.
type frame struct {
	Heading string // of the page; empty on the home page
	Prefix  string // path that addresses begin with, without a slash at its end
	Version string
	Keys    bool // they guard the server
}

type homePage struct {
	frame
	Kept  bool // answers, which can then be shared and rated
	Keyed bool // keys guard the server
	// Modules are those that the page's own imports, to be fetched at once.
	Modules []string
}

type viewerPage struct {
	frame
	excerpt
	Link  string // of this document, without a place
	Drawn []drawnLink
	// Original is the link to the file, empty without; Elsewhere says that the
	// file is with another server.
	Original  string
	Elsewhere bool
}

type documentsPage struct {
	frame
	listing
	Next string // query of the page with the documents that follow; empty on the last
	// MayChange says that who asks may add documents, and delete those added.
	MayChange bool
}

type problemPage struct {
	frame
	Problem *Problem
}

func (s *server) frame(heading string) frame {
	return frame{Heading: heading, Prefix: s.prefix(), Version: strings.TrimPrefix(s.Version, "ibid "), Keys: s.keys != nil}
}

// page renders a page whole before it sends it, so that an error is never half a page.
func (s *server) page(c echo.Context, status int, name string, data any) error {
	var b bytes.Buffer
	if err := s.pages.byName[name].Execute(&b, data); err != nil {
		return fmt.Errorf("rendering the page %s: %w", name, err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return send(c, status, echo.MIMETextHTMLCharsetUTF8, b.Bytes())
}

// size is a number of bytes for people.
func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e3), ".0") + " kB"
	default:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + " MB"
	}
}

// sentence makes an error's words a sentence for people.
func sentence(words string) string {
	first, n := utf8.DecodeRuneInString(words)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(words[n:], ".") + "."
}

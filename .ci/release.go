//go:build ignore

// Command release builds a release of the commit that is checked out:
//
//	go run .ci/release.go [-targets linux/amd64,…] v1.2.3 FOLDER
//
// For each system an archive of the static binary, with PDFium in it, of the README
// with every page and picture that it leads to, the sample library, and what else
// goes with it; and a list of all that is inside (SBOM, CycloneDX 1.5); then the
// sums of all these files. The same commit, version and Go give the same bytes,
// in whatever folder and whenever. It needs git, npm and the modules' proxy.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"ibid/ingest/pdf/pdfium"
)

func main() {
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "systems to build for")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run .ci/release.go [-targets linux/amd64,…] v1.2.3 FOLDER")
		os.Exit(2)
	}
	if err := release(flag.Arg(0), flag.Arg(1), strings.Split(*targets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A source is a clean clone of the commit to be released.
type source struct {
	folder   string
	version  string    // the tag, v1.2.3
	revision string    // of the commit
	at       time.Time // of the commit: that of every file
}

func release(version, folder string, targets []string) (err error) {
	if !regexp.MustCompile(`^v[01]\.\d+\.\d+(-[0-9A-Za-z.]+)?$`).MatchString(version) {
		return fmt.Errorf("%s is no version such as v1.2.3", version)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if old, err := os.ReadDir(folder); err != nil || len(old) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty", folder))
	}
	work, err := os.MkdirTemp("", "ibid-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	src, err := clone(version, filepath.Join(work, "source"))
	if err != nil {
		return err
	}
	fmt.Printf("%s of %s, %s\n", src.version, src.revision, runtime.Version())
	if _, err := src.run(nil, "go", "generate", "./ingest/pdf"); err != nil {
		return err
	}
	beside, err := src.beside(work)
	if err != nil {
		return err
	}
	var made []string
	for _, target := range targets {
		names, err := src.build(target, work, folder, beside)
		if err != nil {
			return fmt.Errorf("building for %s: %w", target, err)
		}
		made = append(made, names...)
	}
	return sums(folder, made)
}

// clone makes a clean copy of the commit that is checked out, with the tag.
func clone(version, folder string) (source, error) {
	src := source{folder: ".", version: version}
	top, err := src.run(nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return src, err
	}
	if changed, err := src.run(nil, "git", "status", "--porcelain"); err != nil {
		return src, err
	} else if changed != "" {
		fmt.Fprintln(os.Stderr, "release: what is not committed is not in it")
	}
	if src.revision, err = src.run(nil, "git", "rev-parse", "HEAD"); err != nil {
		return src, err
	}
	if _, err := src.run(nil, "git", "clone", "-q", "--no-checkout", top, folder); err != nil {
		return src, err
	}
	src.folder = folder
	if _, err := src.run(nil, "git", "-c", "advice.detachedHead=false", "checkout", "-q", src.revision); err != nil {
		return src, err
	}
	// Between releases, to try this, the tag is the clone's alone.
	if known, err := src.run(nil, "git", "tag", "--list", version); err != nil {
		return src, err
	} else if known == "" {
		fmt.Fprintf(os.Stderr, "release: %s is not tagged here yet: git tag %s\n", version, version)
		if _, err := src.run(nil, "git", "tag", version); err != nil {
			return src, err
		}
	}
	if tagged, err := src.run(nil, "git", "rev-list", "-n1", version); err != nil {
		return src, err
	} else if tagged != src.revision {
		return src, fmt.Errorf("%s is the tag of another commit, %s: check that out", version, tagged)
	}
	at, err := src.run(nil, "git", "show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return src, err
	}
	src.at, err = time.Parse(time.RFC3339, at)
	return src, err
}

// run runs a program in the source's folder, with nothing in its environment
// that changes what Go builds, and gives what it prints.
func (s source) run(env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = s.folder
	c.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GODEBUG=", "GOFIPS140=off", "CGO_ENABLED=0")
	c.Env = append(c.Env, env...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// The build is told by these flags alone.
var flags = []string{"build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-tags=pdfium"}

// A file of an archive.
type file struct {
	name string // in the archive's folder, with slashes
	data []byte
	mode fs.FileMode
}

// beside gives the files that go with every binary.
func (s source) beside(work string) ([]file, error) {
	library, err := s.run(nil, "git", "ls-files", "data/library")
	if err != nil {
		return nil, err
	}
	// What the README's commands are about.
	names, err := s.linked(append(strings.Fields(library), "README.md", "LICENSE", "NOTICE", "data/README.md", "data/questions.jsonl"))
	if err != nil {
		return nil, err
	}
	from := map[string]string{
		"licenses/PDFium/LICENSE":   "ingest/pdf/pdfium/pdfium.LICENSE.pdfium.txt",
		"licenses/EmbedPDF/LICENSE": "ingest/pdf/pdfium/pdfium.LICENSE.txt",
	}
	for _, name := range names {
		from[name] = name
	}
	var files []file
	for name, from := range from {
		data, err := os.ReadFile(filepath.Join(s.folder, filepath.FromSlash(from)))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, data, 0o644})
	}
	here := filepath.Join(work, "ibid-here")
	if _, err := s.run(nil, "go", append(flags, "-o", here, "./cmd/ibid")...); err != nil {
		return nil, err
	}
	for shell, name := range map[string]string{"bash": "ibid.bash", "zsh": "_ibid", "fish": "ibid.fish"} {
		script, err := s.run(nil, here, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completions/" + name, []byte(script + "\n"), 0o644})
	}
	return files, nil
}

// linked gives the names of files, and of those that their pages link to, and so
// on: pages, pictures, units. Links to folders and Go files are about the source,
// which is not in an archive.
func (s source) linked(names []string) ([]string, error) {
	known := make(map[string]bool)
	for _, name := range names {
		known[name] = true
	}
	for i := 0; i < len(names); i++ {
		page := names[i]
		// The pages of the library are documents to ask, and not about Ibid.
		if path.Ext(page) != ".md" || strings.HasPrefix(page, "data/library/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.folder, filepath.FromSlash(page)))
		if err != nil {
			return nil, err
		}
		for _, link := range links(data) {
			to, err := url.Parse(link)
			if err != nil {
				return nil, fmt.Errorf("%s links to %s: %w", page, link, err)
			}
			if to.IsAbs() || to.Host != "" || to.Path == "" {
				continue
			}
			name := path.Join(path.Dir(page), to.Path)
			if !filepath.IsLocal(filepath.FromSlash(name)) {
				return nil, fmt.Errorf("%s links to %s, which is outside of this folder", page, link)
			}
			info, err := os.Stat(filepath.Join(s.folder, filepath.FromSlash(name)))
			if err != nil {
				return nil, fmt.Errorf("%s links to %s: %w", page, link, err)
			}
			if known[name] || info.IsDir() || path.Ext(name) == ".go" {
				continue
			}
			known[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// links gives where the links and the pictures of a page lead.
func links(page []byte) (to []string) {
	attribute := regexp.MustCompile(`(?:href|src|srcset)="([^" ]+)"`)
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	html := func(lines *text.Segments) {
		for _, m := range attribute.FindAllSubmatch(lines.Value(page), -1) {
			to = append(to, string(m[1]))
		}
	}
	// The visitor gives no error.
	_ = ast.Walk(parser.Parse(text.NewReader(page)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to = append(to, string(n.Destination))
		case *ast.Image:
			to = append(to, string(n.Destination))
		case *ast.HTMLBlock:
			html(n.Lines())
		case *ast.RawHTML:
			html(n.Segments)
		}
		return ast.WalkContinue, nil
	})
	return to
}

// licences gives the licences of the modules in a binary, and Go's own.
func (s source) licences(info *buildinfo.BuildInfo) ([]file, error) {
	root, err := s.run(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	folders := map[string]string{"go": root}
	list := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}
	for _, m := range info.Deps {
		list = append(list, m.Path)
	}
	listed, err := s.run(nil, "go", list...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(listed) {
		module, folder, _ := strings.Cut(strings.TrimSpace(line), "\t")
		folders[module] = folder
	}
	own := regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|notice|patents|authors)[-.\w]*$`)
	var files []file
	for module, folder := range folders {
		found := 0
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() || !own.MatchString(e.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				return nil, err
			}
			files = append(files, file{"licenses/" + module + "/" + e.Name(), data, 0o644})
			found++
		}
		if found == 0 {
			return nil, fmt.Errorf("%s has no licence in %s", module, folder)
		}
	}
	return files, nil
}

// build makes the archive and the list of one system, and gives their names.
func (s source) build(target, work, folder string, beside []file) ([]string, error) {
	system, arch, ok := strings.Cut(target, "/")
	if !ok {
		return nil, fmt.Errorf("a target is SYSTEM/ARCHITECTURE")
	}
	program := "ibid"
	if system == "windows" {
		program += ".exe"
	}
	start := time.Now()
	out := filepath.Join(work, "ibid-"+system+"-"+arch)
	if _, err := s.run([]string{"GOOS=" + system, "GOARCH=" + arch}, "go", append(flags, "-o", out, "./cmd/ibid")...); err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, err
	}
	if err := s.check(info); err != nil {
		return nil, err
	}
	licences, err := s.licences(info)
	if err != nil {
		return nil, err
	}
	files := append(slices.Clone(beside), licences...)
	files = append(files, file{program, binary, 0o755})
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })

	name := "ibid-" + s.version + "-" + system + "-" + arch
	list, err := s.list(info, target, binary)
	if err != nil {
		return nil, err
	}
	archive, pack := name+".tar.gz", s.tarball
	if system == "windows" {
		archive, pack = name+".zip", s.zipped
	}
	packed, err := pack(name, files)
	if err != nil {
		return nil, err
	}
	for n, data := range map[string][]byte{archive: packed, name + ".cdx.json": list} {
		if err := os.WriteFile(filepath.Join(folder, n), data, 0o644); err != nil {
			return nil, err
		}
	}
	fmt.Printf("%s, %.1f MB, %d modules, %.0f s\n", archive, float64(len(packed))/1e6, len(info.Deps), time.Since(start).Seconds())
	return []string{archive, name + ".cdx.json"}, nil
}

// check holds a binary against what it should say of itself.
func (s source) check(info *buildinfo.BuildInfo) error {
	for key, want := range map[string]string{"vcs.revision": s.revision, "vcs.modified": "false", "CGO_ENABLED": "0", "-tags": "pdfium", "-trimpath": "true"} {
		if got := setting(info, key); got != want {
			return fmt.Errorf("the binary's %s is %q, and not %q", key, got, want)
		}
	}
	if info.Main.Version != s.version {
		return fmt.Errorf("the binary says that it is %s, and not %s", info.Main.Version, s.version)
	}
	return nil
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func (s source) tarball(folder string, files []file) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + f.name, Size: int64(len(f.data)), Mode: int64(f.mode), ModTime: s.at.UTC(), Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s source) zipped(folder string, files []file) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: s.at.UTC()}
		h.SetMode(f.mode)
		e, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := e.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// The list of what is inside, in the form of CycloneDX 1.5.
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Scope      string     `json:"scope,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []licence  `json:"licenses,omitempty"`
		PURL       string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	licence struct {
		Expression string `json:"expression"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// list tells what a binary says is linked into it, with the licences that NOTICE
// names, and what it embeds.
func (s source) list(info *buildinfo.BuildInfo, target string, binary []byte) ([]byte, error) {
	notice, err := os.ReadFile(filepath.Join(s.folder, "NOTICE"))
	if err != nil {
		return nil, err
	}
	named := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^  (\S+) ([^,\n]+)`).FindAllStringSubmatch(string(notice), -1) {
		named[m[1]] = strings.ReplaceAll(m[2], " and ", " AND ")
	}
	system, arch, _ := strings.Cut(target, "/")
	about := component{Type: "application", Name: "ibid", Version: s.version, Licenses: []licence{{"Apache-2.0"}},
		PURL:   "pkg:golang/ibid@" + s.version + "?type=module&goos=" + system + "&goarch=" + arch,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(binary))}},
	}
	about.Ref = about.PURL
	for _, v := range info.Settings {
		about.Properties = append(about.Properties, property{"go:build:" + v.Key, v.Value})
	}
	slices.SortFunc(about.Properties, func(a, b property) int { return cmp.Compare(a.Name, b.Name) })
	parts := []component{{Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go") + "?type=module", Licenses: []licence{{"BSD-3-Clause"}}}}
	code := pdfium.Builds()[0]
	if fetched, err := os.ReadFile(filepath.Join(s.folder, "ingest/pdf/pdfium", pdfium.FileName)); err != nil {
		return nil, err
	} else if sum := fmt.Sprintf("%x", sha256.Sum256(fetched)); sum != code.SHA256 {
		return nil, fmt.Errorf("%s that was fetched has the sum %s, and not %s", code.Package, sum, code.SHA256)
	}
	at := strings.LastIndex(code.Package, "@")
	parts = append(parts, component{Type: "library", Name: code.Package[:at], Version: code.Package[at+1:], PURL: "pkg:npm/" + strings.Replace(code.Package, "@", "%40", 1),
		Licenses: []licence{{"MIT AND BSD-3-Clause"}}, Properties: []property{{"pdfium.wasm:sha256", code.SHA256}}})
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("%s is replaced", m.Path)
		}
		if named[m.Path] == "" {
			return nil, fmt.Errorf("NOTICE does not name %s: go test ./cmd/ibid -run Notice -update", m.Path)
		}
		parts = append(parts, component{Type: "library", Name: m.Path, Version: m.Version, Scope: "required", PURL: "pkg:golang/" + m.Path + "@" + m.Version + "?type=module",
			Licenses: []licence{{named[m.Path]}}, Properties: []property{{"go:sum", m.Sum}}})
	}
	on := dependency{Ref: about.Ref}
	for i := range parts {
		parts[i].Ref = parts[i].PURL
		on.DependsOn = append(on.DependsOn, parts[i].Ref)
	}
	list, err := json.MarshalIndent(bom{"CycloneDX", "1.5", 1, metadata{s.at.UTC().Format(time.RFC3339), about}, parts, []dependency{on}}, "", "  ")
	return append(list, '\n'), err
}

// sums writes the sums of the files, for 'sha256sum --check'.
func sums(folder string, names []string) error {
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		f, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", h.Sum(nil), name)
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(b.String()), 0o644)
}

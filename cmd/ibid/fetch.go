package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"ibid/ingest/archive"
)

// maxDownload limits the bytes of a download, and of the files unpacked from it.
const maxDownload = 1 << 30

// stalled is the time without data after which a download fails.
const stalled = time.Minute

// fetchable parses an address that a part may be fetched from: with https, or on this machine.
func fetchable(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err == nil && (u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname()))) {
		err = fmt.Errorf("%s: only https addresses are supported, and http addresses of this machine", u.Redacted())
	}
	return u, err
}

// fetchFile downloads a file to a folder, named by the last part of its path. It uses the proxy
// in HTTPS_PROXY.
func fetchFile(ctx context.Context, address, folder string, progress func(done, total int)) error {
	from, err := fetchable(address)
	if err != nil {
		return err
	}
	name := path.Base(from.Path)
	if !filepath.IsLocal(name) || name == "." {
		return fmt.Errorf("%s does not name a file", from.Redacted())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(stalled, func() { cancel(fmt.Errorf("no data arrived for %s", stalled)) })
	defer timer.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{CheckRedirect: func(to *http.Request, via []*http.Request) error {
		if len(via) > 9 {
			return errors.New("too many redirects")
		}
		_, err := fetchable(to.URL.String())
		return err
	}}
	reply, err := client.Do(request)
	if err == nil {
		defer func() { _ = reply.Body.Close() }() // only read
		if reply.StatusCode != http.StatusOK {
			err = errors.New(reply.Status)
		} else if reply.ContentLength > maxDownload {
			err = fmt.Errorf("it has %s; the limit is %s", megabytes(reply.ContentLength), megabytes(maxDownload))
		}
	}
	if err == nil {
		err = writeDownload(filepath.Join(folder, name), reply.Body, func(n int64) {
			timer.Reset(stalled)
			progress(int(n), int(max(0, reply.ContentLength)))
		})
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if of := (*url.Error)(nil); errors.As(err, &of) {
			err = of.Err // without repeating the address
		}
		return fmt.Errorf("fetching %s: %w", from.Redacted(), err)
	}
	return nil
}

// writeDownload writes at most maxDownload bytes of a stream to a file.
func writeDownload(to string, from io.Reader, progress func(n int64)) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	n := int64(0)
	for err == nil && n <= maxDownload {
		var more int64
		more, err = io.CopyN(out, from, 1<<18)
		n += more
		progress(n)
	}
	if n > maxDownload {
		err = fmt.Errorf("it has more than %s", megabytes(maxDownload))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, out.Close())
}

// A finder finds files by name in a folder, in an archive, and in archives inside it.
type finder struct {
	patterns []string // "*" matches any beginning
	limits   archive.Limits
	found    map[string][]byte // contents by wanted name
}

// packageLimits are the limits of packages. A package may have other archives inside it.
func packageLimits() archive.Limits {
	return archive.Limits{Entries: 10_000, Bytes: maxDownload, SmallBytes: maxDownload, FileBytes: maxDownload, Depth: 2}
}

// findFiles finds the files in a folder, without subfolders, or in a file.
func (f *finder) findFiles(from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.addFile(from)
	}
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if e.Type().IsRegular() {
			err = errors.Join(err, f.addFile(filepath.Join(from, e.Name())))
		}
	}
	return err
}

// matchName returns the wanted name that a file matches, or "" if it matches none or another
// file already has it.
func (f *finder) matchName(name string) string {
	for _, want := range f.patterns {
		if matches, _ := path.Match(want, path.Base(name)); matches && f.found[want] == nil {
			return want
		}
	}
	return ""
}

// addFile reads a wanted file, or the wanted files of an archive.
func (f *finder) addFile(file string) error {
	name := filepath.Base(file)
	want := f.matchName(name)
	if ext := path.Ext(name); ext == ".whl" || ext == ".jar" {
		name += ".zip"
	}
	if want == "" && !archive.Is(name) {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if want != "" {
		f.found[want] = data
		return nil
	}
	no := func(string) bool { return false }
	entries, err := archive.List(name, data, f.limits, archive.Holder{Is: no}, no)
	var contents map[string][]byte
	if err == nil {
		paths := make([]string, len(entries))
		for i, e := range entries {
			paths[i] = e.Path
		}
		paths = slices.DeleteFunc(paths, func(p string) bool { return f.matchName(p) == "" })
		contents, err = archive.Read(name, data, f.limits, archive.Holder{Is: no}, paths)
	}
	for p, content := range contents {
		if want := f.matchName(p); want != "" {
			f.found[want] = content
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return nil
}

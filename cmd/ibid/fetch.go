package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"
)

// maxDownload limits the bytes of a download, and of the files unpacked from it.
const maxDownload = 1 << 30

// stalled is the time without data after which a download fails.
const stalled = time.Minute

// fetchable parses an address that a part may be fetched from: with https, or on this machine.
func fetchable(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err == nil && (u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname()))) {
		err = fmt.Errorf("%s is fetched by https alone, or by http from this machine", u.Redacted())
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
		return fmt.Errorf("%s names no file", from.Redacted())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(stalled, func() { cancel(fmt.Errorf("nothing came for %s", stalled)) })
	defer timer.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{CheckRedirect: func(to *http.Request, via []*http.Request) error {
		if len(via) > 9 {
			return errors.New("it leads from one address to another")
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
			err = fmt.Errorf("it has %s, and the limit is %s", megabytes(reply.ContentLength), megabytes(maxDownload))
		}
	}
	if err == nil {
		_, err = writeLimited(filepath.Join(folder, name), reply.Body, maxDownload, func(n int64) {
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

// writeLimited writes at most limit bytes of a stream to a file and returns their number.
func writeLimited(to string, from io.Reader, limit int64, progress func(n int64)) (n int64, err error) {
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	for err == nil && n <= limit {
		var more int64
		more, err = io.CopyN(out, from, 1<<18)
		n += more
		progress(n)
	}
	if n > limit {
		err = fmt.Errorf("it has more than %s", megabytes(limit))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, errors.Join(err, out.Close())
}

// A finder finds files by name in a folder, in an archive, and in archives inside it. It
// unpacks a limited number of bytes.
type finder struct {
	patterns []string // "*" matches any beginning
	scratch  string
	left     int64             // bytes that may still be unpacked
	found    map[string]string // paths by wanted name

	unpacked int // number of files
}

// findFiles finds the files in a folder, without subfolders, or in a file.
func (f *finder) findFiles(from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.addFile(filepath.Base(from), from, 2)
	}
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if e.Type().IsRegular() {
			err = errors.Join(err, f.addFile(e.Name(), filepath.Join(from, e.Name()), 2))
		}
	}
	return err
}

// matchName returns the wanted name that a file matches, or "" if it matches none or another
// file already has it.
func (f *finder) matchName(name string) string {
	for _, want := range f.patterns {
		if matches, _ := path.Match(want, path.Base(name)); matches && f.found[want] == "" {
			return want
		}
	}
	return ""
}

// addFile keeps a wanted file, or unpacks the wanted files of an archive and, to the given
// depth, of archives inside it.
func (f *finder) addFile(name, at string, depth int) error {
	if use := f.matchName(name); use != "" {
		f.found[use] = at
		return nil
	}
	each := map[string]func(string, func(string, io.Reader) error) error{
		".whl": eachZipped, ".zip": eachZipped, ".jar": eachZipped, ".tgz": eachTarred, ".gz": eachTarred}
	open := each[path.Ext(name)]
	if open == nil || depth == 0 {
		return nil
	}
	err := open(at, func(name string, from io.Reader) error {
		if f.matchName(name) == "" && (depth == 1 || each[path.Ext(name)] == nil) {
			return nil
		}
		f.unpacked++
		to := filepath.Join(f.scratch, fmt.Sprintf("unpacked-%d", f.unpacked))
		n, err := writeLimited(to, from, f.left, func(int64) {})
		if f.left -= n; err != nil {
			return fmt.Errorf("unpacking %s: %w", name, err)
		}
		return f.addFile(name, to, depth-1)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func eachZipped(at string, do func(string, io.Reader) error) error {
	archive, err := zip.OpenReader(at)
	if err != nil {
		return err
	}
	defer archive.Close() // only read
	for _, entry := range archive.File {
		from, err := entry.Open()
		if err == nil {
			err = errors.Join(do(entry.Name, from), from.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func eachTarred(at string, do func(string, io.Reader) error) error {
	file, err := os.Open(at)
	if err != nil {
		return err
	}
	defer file.Close() // only read
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	archive := tar.NewReader(io.LimitReader(plain, maxDownload))
	for {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && entry.Typeflag == tar.TypeReg {
			err = do(entry.Name, archive)
		}
		if err != nil {
			return err
		}
	}
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"ibid/retrieve/embed/encoder"
	"ibid/web"
)

// A partsPanel gets optional parts while a server runs, one at a time: those that
// 'ibid setup' knows, whose weights have known digests.
type partsPanel struct {
	srv *server

	mu      sync.Mutex
	getting string // name of the part
	folder  string // that it is downloaded to
	failed  map[string]string
}

func partsOf(srv *server) *partsPanel { return &partsPanel{srv: srv, failed: map[string]string{}} }

func (p *partsPanel) show() []web.Part {
	p.mu.Lock()
	defer p.mu.Unlock()
	var parts []web.Part
	for _, name := range []string{encoder.English, encoder.EnglishLarge, encoder.Multilingual} {
		known, _ := encoder.Known(name)
		part := web.Part{Name: name, Model: known.Name, Licence: known.Licence, Languages: len(known.Languages), Bytes: known.Bytes,
			State: "missing", Detail: p.failed[name]}
		switch used := p.srv.lib.encoder; {
		case p.getting == name:
			part.State, part.Done = "getting", min(treeBytes(p.folder), known.Bytes)
		case used != nil && used.Name == known.Name:
			part.State = "used"
		case isReady(p.srv.Data, name):
			part.State = "ready"
		case part.Detail != "":
			part.State = "failed"
		}
		parts = append(parts, part)
	}
	return parts
}

// isReady reports whether a part is there for the next start.
func isReady(data, name string) bool {
	m, _ := openPart(data, name) // errors are logged at the start
	return m != nil && m.Close() == nil
}

// treeBytes returns the size of the files in a folder and those below it, as far as they
// can be read.
func treeBytes(folder string) (bytes int64) {
	_ = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// begin begins to get a part.
func (p *partsPanel) begin(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := encoder.Known(name)
	switch {
	case !known:
		return web.BadSetting("part", "there is no part %.40q: get english, english-large or multilingual", name)
	case p.getting != "":
		return web.UnavailablePart("%s is being got: wait until it is here", p.getting)
	case p.srv.EmbedModel != "":
		return web.UnavailablePart("no encoder is used with --embed-model")
	case !encoder.Fast():
		return web.UnavailablePart("this processor is too slow for an encoder")
	case p.srv.Data == "" || p.srv.background == nil:
		return web.UnavailablePart("there is no data directory: name one with --data")
	}
	p.getting = name
	delete(p.failed, name)
	p.srv.background(func(ctx context.Context) { p.get(ctx, name) })
	return nil
}

func (p *partsPanel) get(ctx context.Context, name string) {
	var said bytes.Buffer
	c := setupCmd{Data: p.srv.Data, Yes: true, watch: func(folder string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.folder = folder
	}}
	err := c.get(ctx, name, surroundings{getenv: p.srv.getenv, stdin: strings.NewReader(""), stdout: new(bytes.Buffer), stderr: &said})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.getting, p.folder = "", ""
	if err == nil {
		p.srv.logger.Info("part got: searches use it after the next start", "part", name)
		return
	}
	p.failed[name] = lastLine(said.String(), err)
	if !errors.Is(err, context.Canceled) {
		p.srv.logger.Warn("part not got", "part", name, "error", err)
	}
}

func lastLine(said string, err error) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return oneLine(cmp.Or(lines[len(lines)-1], err.Error()), 300)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"ibid/retrieve/embed/encoder"
	"ibid/web"
)

// A partsPanel installs optional parts while a server runs, one at a time. They are the parts
// of 'ibid setup', whose weights have known digests.
type partsPanel struct {
	srv *server

	mu      sync.Mutex
	getting string // name of the part being installed
	folder  string // download folder
	failed  map[string]string
}

func (p *partsPanel) list() []web.Part {
	p.mu.Lock()
	defer p.mu.Unlock()
	var parts []web.Part
	for _, name := range partNames {
		known, err := partOf(name)
		if err != nil {
			continue // all names are known
		}
		part := web.Part{Name: name, Model: known.title, Licence: known.licence, Languages: known.languages, Bytes: known.pkg.bytes,
			State: "missing", Detail: p.failed[name]}
		switch {
		case p.getting == name:
			part.State, part.Done = "getting", min(treeBytes(p.folder), known.pkg.bytes)
		case p.isUsed(known):
			part.State = "used"
			if known.name != pdfiumPart {
				part.Encoded, part.Chunks = p.srv.lib.encodedChunks()
			}
		case isReady(p.srv.Data, known):
			part.State = "ready"
		case part.Detail != "":
			part.State = "failed"
		}
		parts = append(parts, part)
	}
	return parts
}

// isUsed reports whether the server is using a part.
func (p *partsPanel) isUsed(known optional) bool {
	if known.name == pdfiumPart {
		from, _ := p.srv.lib.reader.PDFium()
		return from != ""
	}
	m, open := p.srv.lib.Encoder().(*encoder.Model)
	return open && m.Name == known.title
}

// isReady reports whether a part is installed.
func isReady(data string, known optional) bool {
	_, err := known.findInstalled(data) // errors are logged when parts are opened
	return err == nil
}

// treeBytes returns the size of all readable files below a folder.
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

// begin starts to install a part.
func (p *partsPanel) begin(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, err := partOf(name)
	switch {
	case err != nil:
		return web.BadSetting("part", "%v", err)
	case p.getting != "":
		return web.UnavailablePart("%s is being installed: wait until it is ready", p.getting)
	case p.srv.EmbedModel != "" && name != pdfiumPart:
		return web.UnavailablePart("encoders are unused because --embed-model is set")
	case known.useless != "":
		return web.UnavailablePart("%s", known.useless)
	case p.srv.Data == "":
		return web.UnavailablePart("there is no data directory: name one with --data")
	}
	p.getting = name
	delete(p.failed, name)
	p.srv.background(func(ctx context.Context) { p.install(ctx, known) })
	return nil
}

func (p *partsPanel) install(ctx context.Context, known optional) {
	var said bytes.Buffer
	c := setupCmd{Data: p.srv.Data, Yes: true, watch: func(folder string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.folder = folder
	}}
	err := c.install(ctx, known, surroundings{getenv: p.srv.getenv, stdin: strings.NewReader(""), stdout: new(bytes.Buffer), stderr: &said})
	if err == nil {
		p.srv.logger.Info("part installed", "part", known.name)
		p.srv.changeEncoder(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.getting, p.folder = "", ""
	if err == nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := lines[len(lines)-1]; last != "" { // the reason that a package client gives
		err = fmt.Errorf("%w (%s)", err, last)
	}
	p.failed[known.name] = oneLine(err.Error(), 400)
	if !errors.Is(err, context.Canceled) {
		p.srv.logger.Warn("part not installed", "part", known.name, "error", err)
	}
}

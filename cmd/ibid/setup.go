package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed/encoder"
)

type setupCmd struct {
	Parts   []string `arg:"" optional:"" help:"@parts"`
	Data    string   `help:"Data directory: the folder with the library." default:"${data}" placeholder:"DIR" group:"Store"`
	From    string   `help:"@from" placeholder:"PLACE" noenv:""`
	Offline bool     `help:"Download nothing; --from names the files of a part." noenv:""`
	Yes     bool     `help:"Do not ask before downloading." noenv:""`

	watch   func(folder string) // called with the folder that a part is downloaded to; may be nil
	answers *bufio.Reader
}

// Run installs missing parts.
func (c *setupCmd) Run(ctx context.Context, s surroundings) error {
	if c.Data == "" {
		return errNoData()
	}
	if c.From != "" && len(c.Parts) != 1 {
		return usageError("--from needs the name of one part: 'ibid setup NAME --from PLACE'")
	}
	if c.Offline && ingest.IsAddress(c.From) {
		return usageError("--offline downloads nothing: name a file or a folder with --from")
	}
	c.answers = bufio.NewReader(s.stdin)
	names := slices.Compact(slices.Sorted(slices.Values(c.Parts)))
	if len(names) == 0 {
		names = []string{pdfiumPart, encoder.English}
	}
	var parts []optional
	for _, name := range names {
		p, err := partOf(name)
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	var failed error
	for _, p := range parts {
		if err := c.install(ctx, p, s); err != nil {
			failed = errors.Join(failed, fmt.Errorf("setting up %s: %w", p.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// A partSource is a way to get the files of a part.
type partSource struct {
	place string                                         // description, for people
	get   func(ctx context.Context, folder string) error // nil if the files are local
}

// findSource returns the source of a part's files: --from, a package or a repository.
func (c *setupCmd) findSource(p optional, s surroundings) (partSource, error) {
	client := clients[p.pkg.client]
	switch {
	case ingest.IsAddress(c.From):
		return c.downloadSource(p, c.From, s)
	case c.From != "":
		return partSource{place: c.From}, nil
	case c.Offline:
		return partSource{}, fmt.Errorf("--offline downloads nothing: run '%s %s' on another machine, and pass the downloaded file to --from",
			p.pkg.client, strings.Join(p.pkg.args(client.args, "."), " "))
	}
	if command := p.pkg.command(""); command != nil {
		return partSource{fmt.Sprintf("%s, by %s", p.pkg, command[0]), func(ctx context.Context, folder string) error {
			return download(ctx, p.pkg.command(folder), folder, s)
		}}, nil
	}
	if p.repository != "" {
		return c.downloadSource(p, p.repository, s)
	}
	return partSource{}, fmt.Errorf("%s, which would download %s, is not installed: install it, or give --from a copy of the package, "+
		"or of its files, or its address", p.pkg.client, p.pkg)
}

// downloadSource returns a source at an address: of one file or, if it ends in "/", of a folder
// with a part's files.
func (c *setupCmd) downloadSource(p optional, address string, s surroundings) (partSource, error) {
	u, err := fetchable(address)
	if err != nil {
		return partSource{}, usageError("--from: %w", err)
	}
	all := []string{address}
	if strings.HasSuffix(u.Path, "/") {
		if p.files == nil {
			return partSource{}, usageError("--from: %s is a single file: give the address of the file, not of a folder", p.name)
		}
		all = nil
		for _, file := range p.files {
			all = append(all, u.JoinPath(file).String())
		}
	}
	return partSource{u.Redacted(), func(ctx context.Context, folder string) error {
		for _, address := range all {
			meter := newMeter(s.stderr, "kB", 0)
			if err := fetchFile(ctx, address, folder, func(done, total int) { meter.update(done/1000, total/1000) }); err != nil {
				meter.clear()
				return err
			}
			meter.end()
		}
		return nil
	}}, nil
}

func (c *setupCmd) install(ctx context.Context, p optional, s surroundings) error {
	what, err := p.findInstalled(c.Data)
	if err == nil {
		fmt.Fprintf(s.stdout, "%s is already installed: %s\n", p.name, what)
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(s.stdout, "%s is reinstalled: %s\n", p.name, printable(err.Error()))
	}
	if p.useless != "" {
		return errors.New(p.useless)
	}
	way, err := c.findSource(p, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "%s: %s, which %s; licence %s, by the authors of %s\n  from %s\n  to %s\n",
		p.name, p.title, p.purpose, p.licence, p.source, printable(way.place), filepath.Join(c.Data, p.file))
	if way.get != nil && !c.Yes && !c.confirm(s) {
		return errors.New("nothing was downloaded")
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "ibid-setup-*")
	if err != nil {
		return err
	}
	if c.watch != nil {
		c.watch(scratch)
	}
	from := c.From
	if way.get != nil {
		from, err = scratch, way.get(ctx, scratch)
	}
	if err == nil {
		err = p.install(from, scratch, c.Data)
	}
	if err = errors.Join(err, os.RemoveAll(scratch)); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "%s is ready; running servers use it from now on\n", p.name)
	return nil
}

// download runs a package client that downloads a package to a folder.
func download(ctx context.Context, line []string, folder string, s surroundings) error {
	command := exec.CommandContext(ctx, line[0], line[1:]...)
	command.Dir = folder
	command.Env = append(os.Environ(), "TMPDIR="+folder) // so that progress can be measured
	command.Stdout, command.Stderr = s.stderr, s.stderr
	command.WaitDelay = 5 * time.Second // for programs that the client started
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s could not download the package (%w): check the network and the proxy, or pass a copy of the package to --from",
			line[0], err)
	}
	return nil
}

func (c *setupCmd) confirm(s surroundings) bool {
	fmt.Fprint(s.stdout, "Download it? [y/N] ")
	line, _ := c.answers.ReadString('\n') // end of input means no
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

// openPart opens a part in the data directory, or one installed with the program: next to it,
// as in a release archive, or in ../share/ibid. It uses the first that can be opened. If it
// skipped one that cannot be opened, it also returns an error about it. The error is
// [fs.ErrNotExist] if no folder has the part.
func openPart(data, name string) (*encoder.Model, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the program's folder: %w", err)
	}
	installed := filepath.Dir(program)
	var passed error
	for _, folder := range []string{data, installed, filepath.Join(installed, "..", "share", "ibid")} {
		path := filepath.Join(folder, encoder.FileName(name))
		m, err := encoder.Open(path)
		switch {
		case err == nil && passed != nil:
			return m, fmt.Errorf("%w; %s is used instead", passed, path)
		case err == nil:
			return m, nil
		case !errors.Is(err, fs.ErrNotExist):
			passed = cmp.Or(passed, err)
		}
	}
	return nil, cmp.Or(passed, fs.ErrNotExist)
}

// encoder opens the best installed encoder: the one for more languages, else the better English
// one. It returns nil if none is installed, or if the user has an embedding model. Like
// openPart, it may return an encoder and an error.
func (c storeConfig) encoder() (*encoder.Model, error) {
	if c.EmbedModel != "" || c.Data == "" {
		return nil, nil
	}
	for _, name := range []string{encoder.Multilingual, encoder.EnglishLarge, encoder.English} {
		m, err := openPart(c.Data, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	return nil, nil
}

// encodeConfig limits the cores that encode documents.
type encodeConfig struct {
	EncoderCPU int `help:"Cores that encode documents; 0: half of all cores." name:"encoder-cpu" default:"0" placeholder:"N" group:"Store"`
}

func (c encodeConfig) workers() int { return cmp.Or(max(0, c.EncoderCPU), (runtime.GOMAXPROCS(0)+1)/2) }

// encodedChunks is how many of the stored chunks are encoded.
type encodedChunks struct{ done, total int }

// followParts uses parts installed by other processes, until ctx is done.
func (srv *server) followParts(ctx context.Context) {
	for seen := ""; ctx.Err() == nil; { // including parts installed since the library was opened
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
		if now := srv.models(); now != seen {
			seen = now
			srv.changeEncoder(ctx)
		}
	}
}

// models returns the names and states of the encoder files in the data directory.
func (c storeConfig) models() (names string) {
	for _, part := range partNames {
		if info, err := os.Stat(filepath.Join(c.Data, encoder.FileName(part))); err == nil {
			names += fmt.Sprintln(info.Name(), info.ModTime())
		}
	}
	return names
}

// changeEncoder switches to the best installed encoder.
func (srv *server) changeEncoder(ctx context.Context) {
	name, err := srv.lib.changeEncoder(ctx, srv.storeConfig)
	if err != nil && ctx.Err() == nil {
		srv.logger.Warn("the encoder could not be opened", "error", err)
	}
	if name != "" {
		srv.logger.Info("the encoder was replaced", "encoder", name)
	}
}

// encode encodes chunks that are not encoded yet, until ctx is done.
func (c encodeConfig) encode(ctx context.Context, lib *openedLibrary, logger *slog.Logger) {
	logged, pending := time.Now(), false
	work := retrieve.Encoding{Workers: c.workers(), Progress: func(done, total int) {
		lib.encoded.Store(&encodedChunks{done, total})
		pending = pending || done < total
		if time.Since(logged) > 30*time.Second && done < total {
			logged = time.Now()
			logger.Info("chunks encoded", "done", done, "total", total)
		}
	}}
	for last := ""; ctx.Err() == nil; {
		pause := 2 * time.Second
		revision, _, err := lib.State.Revision(ctx)
		m := lib.Encoder()
		if m != nil && err == nil && last != fmt.Sprint(revision, m.Space()) {
			if err = lib.Encode(ctx, work); err == nil {
				last = fmt.Sprint(revision, m.Space())
				_, total := lib.encodedChunks()
				lib.encoded.Store(&encodedChunks{total, total})
				if pending {
					logger.Info("all chunks encoded", "total", total)
				}
				pending = false
			}
		}
		if errors.Is(err, retrieve.ErrReadOnly) {
			return
		}
		if err != nil && ctx.Err() == nil {
			logger.Warn("encoding documents failed; it is tried again in a minute", "error", err)
			pause = time.Minute
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

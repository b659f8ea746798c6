package pdfium

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// FileName is the name of PDFium's code in a folder.
const FileName = "pdfium.wasm"

// Licences maps the names of the licences in the package to their file names in a folder.
func Licences() map[string]string {
	return map[string]string{"LICENSE": "pdfium.LICENSE.txt", "LICENSE.pdfium": "pdfium.LICENSE.pdfium.txt"}
}

// The published build of PDFium that this package was tested with.
const (
	Package = "@embedpdf/pdfium" // of the npm registry; it contains FileName
	Version = "2.15.1"
	Bytes   = 2_668_961 // of the package
	Licence = "MIT AND BSD-3-Clause"
	Source  = "https://pdfium.googlesource.com/pdfium"
	digest  = "5e4cd023c3dad4a895b3571ca573d3fc51bac6de48360d95283134385b954eaa"
)

// ErrNone means that neither this program nor the folder has PDFium's code.
var ErrNone = errors.New("PDFium is not available")

// Slow reports whether wazero has no compiler for this processor, so that PDFium would be
// interpreted, tens of times slower.
func Slow() bool { return runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" }

// Code returns PDFium's code: embedded in a build with the tag "pdfium", or else the file
// [FileName] in the folder, "" for no folder. Since the code is executed, its digest must be that
// of the known build. from describes where the code was found.
func Code(folder string) (code []byte, from string, err error) {
	code, from = []byte(embedded), "part of this program"
	if embedded == "" {
		if folder == "" {
			return nil, "", ErrNone
		}
		from = filepath.Join(folder, FileName)
		if code, err = os.ReadFile(from); errors.Is(err, fs.ErrNotExist) {
			return nil, "", ErrNone
		} else if err != nil {
			return nil, "", fmt.Errorf("reading PDFium's code: %w", err)
		}
	}
	if err := Check(code); err != nil {
		return nil, "", fmt.Errorf("%s: %w: run 'ibid setup pdfium'", from, err)
	}
	return code, from, nil
}

// Check returns an error if code is not the known build of PDFium.
func Check(code []byte) error {
	if sum := sha256.Sum256(code); hex.EncodeToString(sum[:]) != digest {
		return fmt.Errorf("it is not a known build of PDFium: its SHA-256 is %x instead of %s", sum, digest)
	}
	return nil
}

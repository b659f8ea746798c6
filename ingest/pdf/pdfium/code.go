package pdfium

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// FileName is the name of PDFium's code in a folder.
const FileName = "pdfium.wasm"

// A Build is a published build of PDFium that this package was tested with.
type Build struct {
	Package string // of the npm registry, with its version
	Path    string // of the code in the package
	SHA256  string // of the code
}

// Builds lists the accepted builds, the preferred one first.
func Builds() []Build {
	return []Build{
		{"@embedpdf/pdfium@2.15.1", "package/dist/pdfium.wasm", "5e4cd023c3dad4a895b3571ca573d3fc51bac6de48360d95283134385b954eaa"},
		{"@hyzyla/pdfium@2.1.13", "package/dist/pdfium.wasm", "71aec412a303a0405baee21c3d6d3f30ad2033dc02444130fe476be3976e2d09"},
	}
}

// ErrNone means that PDFium's code is neither in this program nor in the
// folder.
var ErrNone = errors.New("PDFium is not available")

// Slow reports whether the compiler does not support this processor, so that
// PDFium would be interpreted, tens of times slower.
func Slow() bool { return runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" }

// Code returns PDFium's code: the embedded one of a build with the tag
// "pdfium", else the file [FileName] in the folder, whose digest must be that
// of a known build. An empty folder means none. from says where the code is
// from.
func Code(folder string) (code []byte, from string, err error) {
	if len(embedded) > 0 {
		return []byte(embedded), "part of this program", check([]byte(embedded))
	}
	if folder == "" {
		return nil, "", ErrNone
	}
	path := filepath.Join(folder, FileName)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", ErrNone
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading PDFium's code: %w", err)
	}
	defer f.Close()
	const most = 64 << 20
	if code, err = io.ReadAll(io.LimitReader(f, most)); err != nil {
		return nil, "", fmt.Errorf("reading PDFium's code %s: %w", path, err)
	}
	if err := check(code); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	return code, path, nil
}

// check accepts only known builds, since the code is executed.
func check(code []byte) error {
	sum := sha256.Sum256(code)
	for _, b := range Builds() {
		if hex.EncodeToString(sum[:]) == b.SHA256 {
			return nil
		}
	}
	return fmt.Errorf("it is not a known build of PDFium: use %s of the npm package %s", Builds()[0].Path, Builds()[0].Package)
}

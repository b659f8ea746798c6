package eval

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// maxLine is the longest line that is read, in bytes.
const maxLine = 64 << 20

// eachLine gives the lines of a file that are not blank, counted from 1,
// without their ends and without a byte order mark. An error of each is given
// with the file and the line. Where there is no such file, the one with .gz
// behind its name is read.
func eachLine(fsys fs.FS, name string, each func(n int, line []byte) error) (err error) {
	wanted := name
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(name, gzipped) {
		name += gzipped
		f, err = fsys.Open(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &missing{"there is no " + wanted}
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder, not a file", name)
	}
	var in io.Reader = f
	if strings.HasSuffix(name, gzipped) {
		unpacked, err := gzip.NewReader(f)
		if err == io.EOF {
			return fmt.Errorf("%s is empty", name)
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", name, err)
		}
		in = unpacked
	}
	r := bufio.NewReaderSize(in, 1<<16)
	var line []byte
	for n := 1; ; n++ {
		line, err = readLine(r, line[:0])
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		end := err == io.EOF
		text := line
		if n == 1 {
			if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
				return fmt.Errorf("%s is UTF-16: save it as UTF-8", name)
			}
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if !utf8.Valid(text) {
				return fmt.Errorf("%s:%d: it is not UTF-8", name, n)
			}
			if err := each(n, text); err != nil {
				return fmt.Errorf("%s:%d: %w", name, n, err)
			}
		}
		if end {
			return nil
		}
	}
}

// gzipped ends the name of a compressed file.
const gzipped = ".gz"

// readLine appends a line without its end to line.
func readLine(r *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("the line is longer than %d MB", maxLine>>20)
		}
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		return bytes.TrimRight(line, "\r\n"), err
	}
}

// decode reads the one JSON object of a line.
func decode(line []byte, to any) error {
	err := json.Unmarshal(line, to)
	if wrong := idError(""); errors.As(err, &wrong) {
		return wrong
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("it is a JSON %s, not an object", wrong.Value)
		}
		return fmt.Errorf("its %q is of the wrong type, a JSON %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	return nil
}

// An id is written as a string, or as a whole number by some sets.
type id string

func (i *id) UnmarshalJSON(b []byte) error {
	var n json.Number
	if len(b) > 0 && b[0] != '"' {
		if err := json.Unmarshal(b, &n); err != nil || n == "" || strings.ContainsAny(string(n), ".eE") {
			return idError(b)
		}
		*i = id(n)
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*i = id(s)
	return nil
}

// An idError is what stands in the place of an id.
type idError string

func (e idError) Error() string {
	return "its id is neither a text nor a whole number: " + clip(string(e))
}

// clip shortens what is shown of hostile input.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

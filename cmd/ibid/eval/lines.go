package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxLine, maxID = 64 << 20, 1024 // bytes

// eachLine calls each with the lines of a file that are not blank, counted from
// 1, without line ends and byte order mark. Errors name the file and the line.
func eachLine(fsys fs.FS, name string, each func(n int, line []byte) error) (err error) {
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &missing{"there is no " + name}
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder, not a file", name)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		switch {
		case len(bytes.TrimSpace(line)) == 0:
			continue
		case !utf8.Valid(line):
			err = errors.New("not UTF-8; convert the file")
		default:
			err = each(n, line)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	err = lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("the line is longer than %d MB", maxLine>>20)
	}
	if err != nil {
		return fmt.Errorf("%s:%d: %w", name, n, err)
	}
	return nil
}

// missing is the error of a file that does not exist.
type missing struct{ text string }

func (e *missing) Error() string        { return e.text }
func (e *missing) Is(target error) bool { return target == fs.ErrNotExist }

// decode reads the JSON object of a line.
func decode(line []byte, to any) error {
	err := json.Unmarshal(line, to)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil || errors.Is(err, errID) || errors.Is(err, errList):
		return err
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return fmt.Errorf("%q has the wrong type, a JSON %s", strings.ToLower(mismatch.Field), mismatch.Value)
	case errors.As(err, &mismatch):
		return fmt.Errorf("a JSON %s, not an object", mismatch.Value)
	}
	return fmt.Errorf("not a JSON object: %w", err)
}

// An id is a JSON string or, in some sets, a whole number.
type id string

func (i *id) UnmarshalJSON(b []byte) error {
	var n int64
	if json.Unmarshal(b, &n) == nil {
		*i = id(b)
		return nil
	}
	if json.Unmarshal(b, (*string)(i)) != nil {
		return fmt.Errorf("%w: %s", errID, clip(string(b)))
	}
	return nil
}

var errID = errors.New("an id must be a text or a whole number")

// lineOf maps each id of a file to its line.
type lineOf map[string]int

// add checks the id in the field of line n, and that it is new.
func (l lineOf) add(field, id string, n int) error {
	switch {
	case id == "":
		return fmt.Errorf("%q is missing or empty", field)
	case len(id) > maxID:
		return fmt.Errorf("%q has %d bytes; at most %d are allowed", field, len(id), maxID)
	case strings.ContainsFunc(id, unicode.IsControl) || strings.TrimSpace(id) != id || !utf8.ValidString(id):
		return fmt.Errorf("%q is %q, with a control character or surrounding space", field, clip(id))
	case l[id] > 0:
		return fmt.Errorf("the %s %q is in line %d already", field, clip(id), l[id])
	}
	l[id] = n
	return nil
}

// clip shortens untrusted input for a message.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

package pdf

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

var (
	objectStart  = regexp.MustCompile(`(?:^|[\s>])(\d{1,7})[ \t\r\n]+(\d{1,5})[ \t\r\n]+obj\b`)
	rootEntry    = regexp.MustCompile(`/Root[ \t\r\n]+(\d{1,7})[ \t\r\n]+(\d{1,5})[ \t\r\n]+R`)
	infoEntry    = regexp.MustCompile(`/Info[ \t\r\n]+(\d{1,7})[ \t\r\n]+(\d{1,5})[ \t\r\n]+R`)
	encryptEntry = regexp.MustCompile(`/Encrypt[ \t\r\n]+\d`)
	catalog      = regexp.MustCompile(`/Type[ \t\r\n]*/Catalog\b`)
	objectStream = regexp.MustCompile(`/Type[ \t\r\n]*/ObjStm\b`)
	firstEntry   = regexp.MustCompile(`/First[ \t\r\n]+(\d{1,9})`)
)

// Limits of a rebuilt file.
const (
	maxObjects      = 1 << 20
	maxRebuiltBytes = 256 << 20
)

// An object is the place of an object in a file.
type object struct{ number, generation, offset int }

// rebuild returns a file with a new table of the objects that can be found in
// it. Objects in compressed streams are unpacked after the end.
func rebuild(data []byte) ([]byte, bool) {
	if encryptEntry.Match(data) {
		return nil, false // nothing can be unpacked without the key
	}
	objects := map[int]object{}
	found := objectStart.FindAllSubmatchIndex(data, maxObjects)
	for _, m := range found {
		n, _ := strconv.Atoi(string(data[m[2]:m[3]]))
		g, _ := strconv.Atoi(string(data[m[4]:m[5]]))
		objects[n] = object{n, g, m[2]}
	}
	if len(objects) == 0 {
		return nil, false
	}
	out := append(bytes.Clone(data), '\n')
	root := ""
	for i, m := range found {
		end := len(data)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		body := data[m[1]:end]
		head := body[:min(len(body), 4096)]
		if catalog.Match(head) {
			root = fmt.Sprintf("%s %s R", data[m[2]:m[3]], data[m[4]:m[5]])
		}
		if !objectStream.Match(head) {
			continue
		}
		for number, packed := range unpack(body) {
			if _, ok := objects[number]; !ok && len(out)+len(packed) < maxRebuiltBytes {
				objects[number] = object{number, 0, len(out)}
				out = fmt.Appendf(out, "%d 0 obj\n%s\nendobj\n", number, packed)
				if catalog.Match(packed) {
					root = fmt.Sprintf("%d 0 R", number)
				}
			}
		}
	}
	if m := rootEntry.FindAllSubmatch(data, -1); len(m) > 0 {
		last := m[len(m)-1]
		if n, _ := strconv.Atoi(string(last[1])); objects[n].offset > 0 {
			root = fmt.Sprintf("%s %s R", last[1], last[2])
		}
	}
	if root == "" {
		return nil, false
	}
	return appendTable(out, objects, root, data), true
}

// appendTable adds a table of objects and a trailer to a file.
func appendTable(out []byte, objects map[int]object, root string, data []byte) []byte {
	numbers := slices.Sorted(maps.Keys(objects))
	table := len(out)
	out = append(out, "xref\n"...)
	for _, n := range numbers {
		out = fmt.Appendf(out, "%d 1\n%010d %05d n \n", n, objects[n].offset, objects[n].generation)
	}
	info := ""
	if m := infoEntry.FindAllSubmatch(data, -1); len(m) > 0 {
		info = string(m[len(m)-1][0])
	}
	return fmt.Appendf(out, "trailer\n<</Size %d /Root %s %s>>\nstartxref\n%d\n%%%%EOF", numbers[len(numbers)-1]+1, root, info, table)
}

// unpack returns the objects in an object stream by number.
func unpack(body []byte) map[int][]byte {
	i := bytes.Index(body, []byte("stream"))
	first := firstEntry.FindSubmatch(body[:max(i, 0)])
	if i < 0 || first == nil {
		return nil
	}
	stream := bytes.TrimLeft(body[i+6:], "\r\n")
	z, err := zlib.NewReader(bytes.NewReader(stream))
	if err != nil {
		return nil
	}
	// Of a damaged stream, what precedes the damage counts.
	plain, _ := io.ReadAll(io.LimitReader(z, 64<<20))
	at, _ := strconv.Atoi(string(first[1]))
	if at > len(plain) {
		return nil
	}
	index := bytes.Fields(plain[:at])
	out := make(map[int][]byte)
	for i := 0; i+1 < len(index); i += 2 {
		number, err1 := strconv.Atoi(string(index[i]))
		from, err2 := strconv.Atoi(string(index[i+1]))
		to := len(plain) - at
		if i+3 < len(index) {
			if n, err := strconv.Atoi(string(index[i+3])); err == nil {
				to = n
			}
		}
		if err1 == nil && err2 == nil && from >= 0 && from <= to && at+to <= len(plain) {
			out[number] = plain[at+from : at+to]
		}
	}
	return out
}

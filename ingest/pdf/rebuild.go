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
	infoEntry    = regexp.MustCompile(`/Info[ \t\r\n]+\d{1,7}[ \t\r\n]+\d{1,5}[ \t\r\n]+R`)
	catalog      = regexp.MustCompile(`/Type[ \t\r\n]*/Catalog\b`)
	objectStream = regexp.MustCompile(`/Type[ \t\r\n]*/ObjStm\b`)
	firstEntry   = regexp.MustCompile(`/First[ \t\r\n]+(\d{1,9})`)
)

// Limits of a rebuilt file.
const (
	maxObjects      = 1 << 20
	maxRebuiltBytes = 256 << 20
)

// An object is the position of an object in a file: offset of its number, start and end of its
// content.
type object struct{ number, generation, offset, start, end int }

// objectsIn finds the objects in a file without using its table.
func objectsIn(data []byte) (objects []object) {
	for i, m := range objectStart.FindAllSubmatchIndex(data, maxObjects) {
		number, _ := strconv.Atoi(string(data[m[2]:m[3]]))
		generation, _ := strconv.Atoi(string(data[m[4]:m[5]]))
		if i > 0 {
			objects[i-1].end = m[0]
		}
		objects = append(objects, object{number, generation, m[2], m[1], len(data)})
	}
	return objects
}

// rebuild returns a file with a new table of the objects found in it, including unpacked object
// streams.
func rebuild(data []byte) ([]byte, bool) {
	if encryptRef.Match(data) {
		return nil, false // object streams can't be unpacked without the key
	}
	objects := map[int]object{}
	found := objectsIn(data)
	for _, o := range found {
		objects[o.number] = o
	}
	out := append(bytes.Clone(data), '\n')
	root := ""
	for _, o := range found {
		body := data[o.start:o.end]
		head := body[:min(len(body), 4096)]
		if catalog.Match(head) {
			root = fmt.Sprintf("%d %d R", o.number, o.generation)
		}
		if !objectStream.Match(head) {
			continue
		}
		for number, packed := range unpack(body) {
			if _, ok := objects[number]; !ok && len(out)+len(packed) < maxRebuiltBytes {
				objects[number] = object{number: number, offset: len(out)}
				out = fmt.Appendf(out, "%d 0 obj\n%s\nendobj\n", number, packed)
				if catalog.Match(packed) {
					root = fmt.Sprintf("%d 0 R", number)
				}
			}
		}
	}
	for _, m := range rootEntry.FindAllSubmatch(data, -1) {
		if n, _ := strconv.Atoi(string(m[1])); objects[n].offset > 0 {
			root = fmt.Sprintf("%s %s R", m[1], m[2])
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
	var info []byte
	for _, m := range infoEntry.FindAll(data, -1) {
		info = m // the last one
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
	// Keep the data before any damage.
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

package office

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"strings"

	"ibid/ingest/charset"
	"ibid/ingest/compound"
)

// maxEmbedded is the size in bytes of the largest embedded file that is taken out.
const maxEmbedded = 64 << 20

// HoldsFiles reports whether a document may have files embedded in it. It is
// quick, and errs towards true.
func HoldsFiles(data []byte) bool {
	if bytes.HasPrefix(data, []byte(compound.Magic)) {
		return bytes.Contains(data, wide("ObjectPool")) || bytes.Contains(data, wide("MBD"))
	}
	return bytes.HasPrefix(data, []byte("PK")) &&
		(bytes.Contains(data, []byte("/embeddings/")) || bytes.Contains(data, []byte("Object ")))
}

// wide encodes ASCII in little-endian UTF-16, as the names in compound files are.
func wide(s string) []byte {
	out := make([]byte, 0, 2*len(s))
	for _, b := range []byte(s) {
		out = append(out, b, 0)
	}
	return out
}

// Files calls each with the files that are embedded in a document and returns its
// first error. Damage is not an error: reading the document reports it.
func Files(data []byte, each func(name string, data []byte) error) error {
	f := &file{archive: &archive{}}
	if !bytes.HasPrefix(data, []byte(compound.Magic)) {
		if err := f.load(data); err != nil {
			return nil
		}
	}
	return f.embedded(data, func(part, name string, content []byte) error {
		if content == nil {
			return nil
		}
		return each(name, content)
	})
}

// embedded calls each with the embedded objects of a document: the name of its
// part, and the file in it with its own name. The content is nil if there is no
// file, or one that cannot be taken out.
func (f *file) embedded(data []byte, each func(part, name string, content []byte) error) error {
	if root, err := compound.Open(data); err == nil && bytes.HasPrefix(data, []byte(compound.Magic)) {
		return embeddedOld(root, each)
	}
	ofCharts := f.ofCharts()
	for _, part := range f.names {
		inText := strings.HasPrefix(part, "object ") && !strings.Contains(part, "/") // of OpenDocument
		if !inText && (!strings.Contains(part, "/embeddings/") || strings.HasSuffix(part, ".rels")) || ofCharts[part] {
			continue
		}
		name := path.Base(part)
		content, err := f.content(part, maxEmbedded)
		if err != nil {
			content = nil
		} else if bytes.HasPrefix(content, []byte(compound.Magic)) {
			name, content = unwrap(name, content)
		} else if path.Ext(name) == ".bin" {
			content = nil // of a control or a macro
		}
		if err := each(name, name, content); err != nil {
			return err
		}
	}
	return nil
}

// ofCharts returns the workbooks with the data of charts, which are read with the
// charts.
func (f *file) ofCharts() map[string]bool {
	parts := map[string]bool{}
	for _, name := range f.names {
		if strings.Contains(name, "/charts/") && !strings.HasSuffix(name, ".rels") {
			for _, target := range related(f.relations(name), "package") {
				parts[partName(target)] = true
			}
		}
	}
	return parts
}

// embeddedOld is embedded for a document of a program before 2007.
func embeddedOld(root compound.Folder, each func(part, name string, content []byte) error) error {
	for _, at := range []struct {
		in     compound.Folder
		prefix string
	}{{root.Folder("ObjectPool"), "_"}, {root, "MBD"}} {
		for _, part := range at.in.Names(at.prefix) {
			name, content, _ := packed(at.in.Folder(part), part)
			if err := each(part, name, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// unwrap returns the file in a compound file: one that is packed in it, or itself
// if it is a document. The content is nil if there is none.
func unwrap(name string, data []byte) (string, []byte) {
	root, err := compound.Open(data)
	if err != nil {
		return name, nil
	}
	if name, content, ok := packed(root, name); ok {
		return name, content
	}
	stem := strings.TrimSuffix(name, path.Ext(name))
	for _, kind := range [...]struct{ stream, ending string }{
		{"WordDocument", ".doc"}, {"Workbook", ".xls"}, {"PowerPoint Document", ".ppt"}, {"__properties_version1.0", ".msg"},
	} {
		if root.Has(kind.stream) {
			return stem + kind.ending, data
		}
	}
	return name, nil
}

// packed returns the file that an object packs: one with a name (MS-OLEDS 2.3.6),
// an office document, or a PDF file.
func packed(object compound.Folder, part string) (name string, content []byte, ok bool) {
	if object.Has("Ole10Native") {
		name, content, ok = native(object.Stream("Ole10Native"))
		return name, content, ok
	}
	stem := strings.TrimSuffix(part, path.Ext(part))
	for _, stream := range []string{"Package", "CONTENTS"} {
		content := object.Stream(stream)
		switch {
		case bytes.HasPrefix(content, []byte("%PDF-")):
			return stem + ".pdf", content, true
		case bytes.HasPrefix(content, []byte("PK\x03\x04")):
			return stem + zipEnding(content), content, true
		}
	}
	return part, nil, false
}

// zipEnding returns the ending of the name of an office document.
func zipEnding(data []byte) string {
	for _, kind := range [...]struct{ sign, ending string }{
		{"word/document", ".docx"}, {"ppt/presentation", ".pptx"}, {"xl/workbook", ".xlsx"},
		{"opendocument.text", ".odt"}, {"opendocument.spreadsheet", ".ods"}, {"opendocument.presentation", ".odp"},
	} {
		if bytes.Contains(data, []byte(kind.sign)) {
			return kind.ending
		}
	}
	return ".zip"
}

// native reads a packed file: its size, flags, label, path, the path of a
// temporary copy, and its bytes.
func native(data []byte) (name string, content []byte, ok bool) {
	const head = 6
	if len(data) < head {
		return "", nil, false
	}
	label, rest, found := bytes.Cut(data[head:], []byte{0})
	from, rest, found2 := bytes.Cut(rest, []byte{0})
	if !found || !found2 || len(rest) < 8 {
		return "", nil, false
	}
	rest = rest[4:]
	temporary := binary.LittleEndian.Uint32(rest)
	if rest = rest[4:]; uint64(temporary)+4 > uint64(len(rest)) {
		return "", nil, false
	}
	rest = rest[temporary:]
	size := binary.LittleEndian.Uint32(rest)
	if rest = rest[4:]; uint64(size) > uint64(len(rest)) {
		return "", nil, false
	}
	for _, path := range [][]byte{label, from} {
		if name, err := charset.Decode(path, ""); err == nil && strings.Contains(name, ".") {
			return name[strings.LastIndexAny(name, `\/`)+1:], rest[:size], true
		}
	}
	return "", nil, false
}

// noteEmbedded records the embedded files that cannot be taken out. The others are
// documents of their own in a sync.
func (f *file) noteEmbedded(data []byte) {
	var names []string
	_ = f.embedded(data, func(part, _ string, content []byte) error {
		if content == nil {
			names = append(names, part)
		}
		return nil
	})
	if len(names) > 0 {
		f.note("%s", NotRead(names))
	}
}

// NotRead names the files in a document that are not read.
func NotRead(names []string) string {
	const most = 3
	said := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return "files in it are not read: " + said
}

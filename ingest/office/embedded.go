package office

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"ibid/ingest/charset"
	"ibid/ingest/compound"
)

// maxEmbedded is the largest embedded file, in bytes, that is extracted.
const maxEmbedded = 64 << 20

// HoldsFiles reports whether a document may have embedded files. It is quick and errs on the side
// of true.
func HoldsFiles(data []byte) bool {
	return bytes.HasPrefix(data, []byte("PK")) &&
		(bytes.Contains(data, []byte("/embeddings/")) || bytes.Contains(data, []byte("Obj")))
}

// media are the endings of audio and video files.
var media = []string{".mp3", ".m4a", ".wav", ".wma", ".mp4", ".m4v", ".mov", ".avi", ".wmv"}

// utf16Bytes encodes ASCII as little-endian UTF-16, like the names in compound files.
func utf16Bytes(s string) string { return strings.Join(strings.Split(s, ""), "\x00") + "\x00" }

// Files calls each with every file embedded in a document and returns the first error of each. It
// ignores damage, which [Read] reports.
func Files(data []byte, each func(name string, data []byte) error) error {
	f := &file{archive: &archive{}}
	if err := f.load(data); err != nil {
		return nil
	}
	return f.eachEmbedded(func(part, name string, content []byte) error {
		if content == nil {
			return nil
		}
		return each(name, content)
	})
}

// eachEmbedded calls each with the part name of every embedded object, and with the name and content of
// the file in it. The content is nil if the object has no file or the file can't be extracted.
func (f *file) eachEmbedded(each func(part, name string, content []byte) error) error {
	ofCharts := f.chartWorkbooks()
	for _, part := range f.names {
		if strings.Contains(part, "/media/") && slices.Contains(media, strings.ToLower(path.Ext(part))) {
			if err := each(part, path.Base(part), nil); err != nil {
				return err
			}
			continue
		}
		inText := strings.HasPrefix(part, "obj") && !strings.Contains(part, "/") // in OpenDocument
		if !inText && (!strings.Contains(part, "/embeddings/") || strings.HasSuffix(part, ".rels")) || ofCharts[part] {
			continue
		}
		name := path.Base(part)
		content, err := f.content(part, maxEmbedded)
		switch {
		case err != nil:
			content = nil
		case bytes.HasPrefix(content, []byte(compound.Magic)):
			name, content = unwrap(name, content)
		case path.Ext(name) == "", path.Ext(name) == ".bin": // may be a control or macro
			name, content = withEnding(name, content)
		}
		if err := each(part, name, content); err != nil {
			return err
		}
	}
	return nil
}

// chartWorkbooks returns the workbooks that hold chart data. They are read with the charts.
func (f *file) chartWorkbooks() map[string]bool {
	parts := map[string]bool{}
	for _, name := range f.names {
		if strings.Contains(name, "/charts/") && !strings.HasSuffix(name, ".rels") {
			for _, target := range relatedParts(f.relations(name), "package") {
				parts[partName(target)] = true
			}
		}
	}
	return parts
}

// unwrap returns the file in a compound file: a file packed with a name (MS-OLEDS 2.3.6) or without
// one, or the compound file itself if it is a document. The content is nil if there is no file.
func unwrap(name string, data []byte) (string, []byte) {
	root, err := compound.Open(data)
	if err != nil {
		return name, nil
	}
	if name, content, ok := packedFile(root.Stream("Ole10Native")); ok {
		return name, content
	}
	for _, content := range [][]byte{root.Stream("Package"), root.Stream("CONTENTS")} {
		if name, content := withEnding(name, content); content != nil {
			return name, content
		}
	}
	return withEnding(name, data)
}

// withEnding replaces the ending of a document's name to match its content. The content is nil if
// it is not a document.
func withEnding(name string, content []byte) (string, []byte) {
	stem := strings.TrimSuffix(name, path.Ext(name))
	for _, kind := range [...]struct{ magic, sign, ending string }{
		{"%PDF-", "", ".pdf"},
		{"PK\x03\x04", "word/document", ".docx"}, {"PK\x03\x04", "ppt/presentation", ".pptx"}, {"PK\x03\x04", "xl/workbook", ".xlsx"},
		{"PK\x03\x04", "opendocument.text", ".odt"}, {"PK\x03\x04", "opendocument.spreadsheet", ".ods"},
		{"PK\x03\x04", "opendocument.presentation", ".odp"}, {"PK\x03\x04", "", ".zip"},
		{compound.Magic, utf16Bytes("WordDocument"), ".doc"}, {compound.Magic, utf16Bytes("Workbook"), ".xls"},
		{compound.Magic, utf16Bytes("PowerPoint Document"), ".ppt"}, {compound.Magic, utf16Bytes("__properties_version1.0"), ".msg"},
	} {
		if bytes.HasPrefix(content, []byte(kind.magic)) && bytes.Contains(content, []byte(kind.sign)) {
			return stem + kind.ending, content
		}
	}
	return name, nil
}

// packedFile reads a packed file: size, flags, label, path, path of a temporary copy, content.
func packedFile(data []byte) (name string, content []byte, ok bool) {
	label, rest, _ := bytes.Cut(data[min(len(data), 6):], []byte{0})
	from, rest, _ := bytes.Cut(rest, []byte{0})
	in := cursor{data: rest, at: 4}
	in.bytes(in.number(4))
	size := in.number(4)
	if content = in.bytes(size); len(content) < size || in.at <= 8 || size == 0 {
		return "", nil, false
	}
	for _, path := range [][]byte{label, from} {
		if name, err := charset.Decode(path, ""); err == nil && strings.Contains(name, ".") {
			return name[strings.LastIndexAny(name, `\/`)+1:], content, true
		}
	}
	return "", nil, false
}

// noteEmbedded records the embedded files that can't be extracted and counts the controls with
// values. A sync reads the other files as documents of their own.
func (f *file) noteEmbedded() {
	var names []string
	_ = f.eachEmbedded(func(part, _ string, content []byte) error {
		if content == nil {
			names = append(names, path.Base(part))
		}
		return nil
	})
	for _, part := range f.names {
		if strings.Contains(part, "/ctrlprops/") || strings.Contains(part, "/activex/") && path.Ext(part) == ".xml" {
			_ = f.find(part, func(_ *xmlReader, e element) { // a damaged control has no value
				if kind := attr(e, "objectType"); kind != "" && kind != "Button" && kind != "Label" && kind != "GBox" || e.Name.Local == "ocx" {
					f.countUnread(fields)
				}
			})
		}
	}
	if len(names) > 0 {
		f.addPartial("%s", NotRead(names))
	}
}

// NotRead returns a message naming the files in a document that are not read.
func NotRead(names []string) string {
	const most = 3
	said := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return "files in it are not read: " + said
}

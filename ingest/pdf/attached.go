package pdf

import (
	"cmp"
	"iter"
	"strings"

	pdf "github.com/ledongthuc/pdf"
)

// Limits of a name tree or structure tree. A larger one is an attack.
const (
	maxEntries = 10_000
	maxDepth   = 32
)

// Files calls each with every file attached to the PDF or to its pages and returns the first error
// of each. It ignores damage, which [Read] reports.
func Files(data []byte, each func(name string, data []byte) error) error {
	r, _, damage := open(data)
	if damage != nil {
		return nil
	}
	for name, content := range attachments(r) {
		if content == nil {
			continue
		}
		if err := each(name, content); err != nil {
			return err
		}
	}
	return nil
}

// attachments returns the names and contents of the attached files. The content is nil if it can't
// be extracted.
func attachments(r *pdf.Reader) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		seen := make(map[string]bool) // the file's list and a page may name the same file
		for _, file := range fileSpecifications(r.Trailer().Key("Root")) {
			key := file.Key("EF").String()
			if seen[key] || file.Key("EF").IsNull() { // a link to a file
				continue
			}
			seen[key] = true
			if name, content := attachment(file); !yield(cmp.Or(name, "a file"), content) {
				return
			}
		}
	}
}

// fileSpecifications returns the specifications of the files attached to a PDF, then to its pages.
func fileSpecifications(root pdf.Value) (files []pdf.Value) {
	defer func() { _ = recover() }() // keep those found before the damage
	var visit func(tree pdf.Value, depth int)
	visit = func(tree pdf.Value, depth int) {
		if depth > maxDepth || len(files) > maxEntries {
			return
		}
		for i := 1; i < tree.Key("Names").Len(); i += 2 {
			files = append(files, tree.Key("Names").Index(i))
		}
		for i := range tree.Key("Kids").Len() {
			visit(tree.Key("Kids").Index(i), depth+1)
		}
	}
	visit(root.Key("Names").Key("EmbeddedFiles"), 0)
	for _, page := range collect(root.Key("Pages")) {
		notes := page.V.Key("Annots")
		for i := range min(notes.Len(), maxEntries) {
			if note := notes.Index(i); note.Key("Subtype").Name() == "FileAttachment" {
				files = append(files, note.Key("FS"))
			}
		}
	}
	return files[:min(len(files), maxEntries)]
}

// attachment returns the name and the bytes of an attached file.
func attachment(file pdf.Value) (name string, content []byte) {
	defer func() { _ = recover() }() // damage loses only this file
	name = cmp.Or(file.Key("UF").Text(), file.Key("F").Text())
	name = name[strings.LastIndexAny(name, `\/`)+1:]
	for _, key := range []string{"F", "UF"} {
		if stream := file.Key("EF").Key(key); stream.Kind() == pdf.Stream {
			data, err := streamBytes(stream)
			if err != nil {
				return name, nil
			}
			return name, append([]byte{}, data...)
		}
	}
	return name, nil
}

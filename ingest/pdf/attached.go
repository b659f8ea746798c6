package pdf

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	pdf "github.com/ledongthuc/pdf"
)

// Files calls each with the files attached to a file or to its pages and returns
// its first error. Damage is not an error: reading the file reports it.
func Files(data []byte, each func(name string, data []byte) error) error {
	r, _, _, damage := open(data)
	if damage != nil {
		return nil
	}
	seen := make(map[string]bool) // some are in the file's list and on a page
	for _, file := range attached(r.Trailer().Key("Root")) {
		key := file.Key("EF").String()
		if seen[key] {
			continue
		}
		seen[key] = true
		name, content := attachment(file)
		if err := each(cmp.Or(name, "a file"), content); err != nil {
			return err
		}
	}
	return nil
}

// attached returns the specifications of the files in a file, in order of their
// names in it, then those of its pages.
func attached(root pdf.Value) (files []pdf.Value) {
	defer func() { _ = recover() }() // of a damaged one, the first count
	r := outlineReader{named: make(map[string]pdf.Value)}
	r.readNames(root.Key("Names").Key("EmbeddedFiles"), 0)
	for _, name := range slices.Sorted(maps.Keys(r.named)) {
		files = append(files, r.named[name])
	}
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
	defer func() { _ = recover() }() // damage in it costs the file alone
	for _, key := range []string{"UF", "F"} {
		if name = file.Key(key).Text(); name != "" {
			break
		}
	}
	name = name[strings.LastIndexAny(name, `\/`)+1:]
	for _, key := range []string{"F", "UF"} {
		if stream := file.Key("EF").Key(key); stream.Kind() == pdf.Stream {
			content, _ = streamBytes(stream)
			return name, content
		}
	}
	return name, nil
}

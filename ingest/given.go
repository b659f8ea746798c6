package ingest

import (
	"maps"
	"slices"
	"strings"

	"ibid/ingest/format"
)

// GivenKey is the key in [Document.Meta] for the names of the metadata that was given with an
// upload and not read from its file, such as "author, tags". No reader sets it.
const GivenKey = "given"

// givenMeta returns the metadata that was given for a stored document.
func givenMeta(d Stored) map[string]string {
	given := map[string]string{}
	for name := range strings.SplitSeq(d.Meta[GivenKey], ", ") {
		if value := d.Meta[name]; value != "" {
			given[name] = value
		}
	}
	return given
}

// setGivenMeta sets the metadata given for a document, replacing the metadata of its file.
func setGivenMeta(doc *Document, given map[string]string) {
	for name, value := range given {
		setMeta(doc, name, value)
	}
	setMeta(doc, GivenKey, strings.Join(slices.Sorted(maps.Keys(given)), ", "))
}

// syncer returns a syncer that adds meta to the given metadata of an upload's stored documents.
func (u *Uploads) syncer(stored map[string]Stored, meta map[string]string) *Syncer {
	given := map[string]string{}
	for _, d := range stored { // all have the same given metadata
		given = givenMeta(d)
	}
	for key, value := range meta {
		given[key] = oneLine(format.Clean(value))
	}
	maps.DeleteFunc(given, func(_, value string) bool { return value == "" })
	return &Syncer{Sink: u.Syncer.Sink, Reader: u.Syncer.Reader, GivenMeta: given}
}

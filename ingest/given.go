package ingest

import (
	"context"
	"maps"
	"slices"
	"strings"

	"ibid/ingest/format"
)

// GivenKey is the key in [Document.Meta] of the names of metadata that was given with an
// upload, "author, tags", instead of being read from its file. No reader sets it.
const GivenKey = "given"

// givenTo returns the metadata that was given to a stored document.
func givenTo(d Stored) map[string]string {
	given := map[string]string{}
	for name := range strings.SplitSeq(d.Meta[GivenKey], ", ") {
		if value := d.Meta[name]; value != "" {
			given[name] = value
		}
	}
	return given
}

// give sets metadata of a document, over that of its file.
func give(doc *Document, given map[string]string) {
	if len(given) == 0 {
		return
	}
	if doc.Meta == nil {
		doc.Meta = make(map[string]string)
	}
	maps.Copy(doc.Meta, given)
	doc.Meta[GivenKey] = strings.Join(slices.Sorted(maps.Keys(given)), ", ")
}

// given returns the metadata that the documents of an upload were given before, and the
// same with more, of which empty values remove some.
func (u *Uploads) given(ctx context.Context, name string, meta map[string]string) (before, given map[string]string, err error) {
	known, err := u.stored(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	first := ""
	if len(known) > 0 {
		first = slices.Min(slices.Collect(maps.Keys(known)))
	}
	before = givenTo(known[first]) // all have the same
	given = maps.Clone(before)
	for key, value := range meta {
		given[key] = oneLine(format.Clean(value))
	}
	maps.DeleteFunc(given, func(_, value string) bool { return value == "" })
	return before, given, nil
}

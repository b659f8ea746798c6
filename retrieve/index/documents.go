package index

import (
	"encoding/binary"
	"unsafe"

	"ibid/retrieve"
)

// packInfo returns what filters compare of a document, and first its id: texts,
// each with its length before it, and lists of texts, each with their number.
func packInfo(d *retrieve.DocumentInfo) []byte {
	l := retrieve.LabelsOf(d.Meta)
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, s := range []string{d.ID, d.Root, d.Path, d.Collection, d.Format, string(l.Date)} {
		text(s)
	}
	languages := make([]string, len(l.Languages))
	for i, tag := range l.Languages {
		languages[i] = string(tag)
	}
	for _, list := range [][]string{l.Tags, l.Authors, languages} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			text(s)
		}
	}
	return b
}

// A record is an unpacked document record. Its texts are in the memory of the
// segment.
type record struct {
	info   retrieve.DocumentInfo
	labels retrieve.Labels
}

// unpack reads a record, in the memory of an earlier one.
func (r *record) unpack(packed []byte) {
	u := unpacker{rest: packed}
	r.info.ID, r.info.Root, r.info.Path, r.info.Collection, r.info.Format = u.text(), u.text(), u.text(), u.text(), u.text()
	r.labels.Date = retrieve.Date(u.text())
	r.labels.Tags, r.labels.Authors, r.labels.Languages = r.labels.Tags[:0], r.labels.Authors[:0], r.labels.Languages[:0]
	for range u.count() {
		r.labels.Tags = append(r.labels.Tags, u.text())
	}
	for range u.count() {
		r.labels.Authors = append(r.labels.Authors, u.text())
	}
	for range u.count() {
		r.labels.Languages = append(r.labels.Languages, retrieve.LanguageTag(u.text()))
	}
}

// An unpacker reads numbers and texts. Malformed ones make it panic with a
// *damage.
type unpacker struct{ rest []byte }

func (u *unpacker) number() uint64 {
	v, n := binary.Uvarint(u.rest)
	if n <= 0 {
		panic(&damage{what: "a record is malformed"})
	}
	u.rest = u.rest[n:]
	return v
}

// count returns a number of things that follow, each of a byte at least.
func (u *unpacker) count() int { return int(min(u.number(), uint64(len(u.rest)))) }

func (u *unpacker) bytes() []byte {
	n := u.number()
	if n > uint64(len(u.rest)) {
		panic(&damage{what: "a record is malformed"})
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b
}

// text returns a text in the memory of what is read.
func (u *unpacker) text() string {
	b := u.bytes()
	return unsafe.String(unsafe.SliceData(b), len(b))
}

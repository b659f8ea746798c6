package index

import (
	"encoding/binary"
	"unsafe"

	"ibid/retrieve"
)

// A record is the id of a document and the fields that filters compare.
type record struct {
	info   retrieve.DocumentInfo
	labels retrieve.Labels
}

// texts and lists return the stored fields of a record; the id is the first.
func (r *record) texts() [6]*string {
	return [6]*string{&r.info.ID, &r.info.Root, &r.info.Path, &r.info.Collection, &r.info.Format, (*string)(&r.labels.Date)}
}

func (r *record) lists() [3]*[]string {
	// A LanguageTag is a string.
	return [3]*[]string{&r.labels.Tags, &r.labels.Authors, (*[]string)(unsafe.Pointer(&r.labels.Languages))}
}

// packInfo returns the encoded record of a document: texts, each preceded by its length, and lists
// of texts, each preceded by the number of its texts.
func packInfo(d *retrieve.DocumentInfo) (b []byte) {
	r := record{info: *d, labels: retrieve.LabelsOf(d.Meta)}
	for _, text := range r.texts() {
		b = append(binary.AppendUvarint(b, uint64(len(*text))), *text...)
	}
	for _, list := range r.lists() {
		b = binary.AppendUvarint(b, uint64(len(*list)))
		for _, text := range *list {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
	}
	return b
}

// unpack decodes a record. Its texts share the memory of packed.
func (r *record) unpack(packed []byte) {
	u := unpacker{rest: packed}
	for _, text := range r.texts() {
		*text = u.text()
	}
	for _, list := range r.lists() {
		*list = (*list)[:0]
		for range min(u.number(), uint64(len(u.rest))) { // an encoded text has at least one byte
			*list = append(*list, u.text())
		}
	}
}

// An unpacker decodes numbers and texts. It panics with a *damage if they are malformed.
type unpacker struct{ rest []byte }

func (u *unpacker) number() uint64 {
	v, n := binary.Uvarint(u.rest)
	if n <= 0 {
		panic(&damage{what: "a record is malformed"})
	}
	u.rest = u.rest[n:]
	return v
}

func (u *unpacker) bytes() []byte {
	n := u.number()
	if n > uint64(len(u.rest)) {
		panic(&damage{what: "a record is malformed"})
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b
}

// text returns a text that shares the memory of the input.
func (u *unpacker) text() string {
	b := u.bytes()
	return unsafe.String(unsafe.SliceData(b), len(b))
}

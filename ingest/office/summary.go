package office

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"ibid/ingest/charset"
	"ibid/ingest/compound"
)

// summaryKeys maps property numbers to metadata keys (MS-OLEPS, 3.1). It omits the title, which is
// often the title of a template.
var summaryKeys = map[int]string{3: "description", 4: "author", 5: "keywords", 12: "created", 13: "modified"}

// summary records the metadata of a document of an office program before 2007: a property set whose
// offset is in the head (MS-OLEPS, 2.21).
func (f *file) summary(stream []byte) {
	const place, codePage, narrow, wide, filetime, utf16 = 44, 1, 0x1e, 0x1f, 0x40, "windows-1200"
	head := cursor{data: stream, at: place}
	start := head.number(4)
	list := cursor{data: stream, at: start + 4} // skip its size
	page := ""
	for range min(list.number(4), maxEntries) {
		id, value := list.number(4), cursor{data: stream, at: start + list.number(4)}
		text := ""
		switch kind := value.number(4); {
		case id == codePage: // the first property
			page = "windows-" + strconv.Itoa(value.number(2))
		case kind == narrow:
			data := value.bytes(value.number(4))
			if text = compound.UTF16(data); page != utf16 {
				text, _ = charset.Decode(bytes.TrimRight(data, "\x00"), page) // damage loses no document text
			}
		case kind == wide:
			text = compound.UTF16(value.bytes(2 * value.number(4)))
		case kind == filetime:
			if t := compound.Time(value.bytes(8)); !t.IsZero() {
				text = t.Format(time.RFC3339)
			}
		}
		if key := summaryKeys[id]; key != "" {
			f.meta(key, strings.TrimRight(text, "\x00"))
		}
	}
}

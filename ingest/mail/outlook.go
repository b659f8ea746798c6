package mail

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"ibid/ingest/charset"
	"ibid/ingest/compound"
)

// Properties of a message of Outlook (MS-OXPROPS).
const (
	olSubject     = "0037"
	olSent        = 0x0039
	olSender      = "0C1A"
	olSenderAt    = "5D01"
	olSentBy      = "0C1F" // an address, of Exchange in a form of its own
	olTo          = "0E04"
	olCc          = "0E03"
	olReceived    = 0x0E06
	olBody        = "1000"
	olHTML        = "1013"
	olAttached    = "3701"
	olName        = "3707"
	olShortName   = "3704"
	olType        = "370E"
	olDisplayName = "3001"
	olAddress     = "3003"
	olSMTP        = "39FE"
)

// Outlook reads a message of Outlook (MS-OXMSG).
func Outlook(data []byte) (*Message, error) {
	root, err := compound.Open(data)
	if err == nil && !root.Has("__properties_version1.0") {
		err = errors.New("it is not a message: it has no properties")
	}
	if err != nil {
		return nil, err
	}
	m, left := outlook(root, 1)
	if left > 0 {
		m.note(fmt.Sprintf("attachments that are not in it are not read: %d", left))
	}
	return m, nil
}

// outlook reads the message in a folder, and counts the attachments that are not in it.
func outlook(in compound.Folder, depth int) (m *Message, left int) {
	m = &Message{From: property(in, olSender), To: property(in, olTo), Cc: property(in, olCc), Subject: property(in, olSubject)}
	address := cmp.Or(property(in, olSenderAt), property(in, olSentBy))
	if strings.Contains(address, "@") && !strings.Contains(m.From, address) {
		m.From = strings.TrimSpace(m.From + " <" + address + ">")
	}
	m.addressees(in)
	if m.Time = sent(in.Stream("__properties_version1.0")); !m.Time.IsZero() {
		m.Date = m.Time.Format(time.RFC1123Z)
	}
	if text := property(in, olBody); strings.TrimSpace(text) != "" {
		m.Bodies = []Body{{Text: text}}
	} else if page := property(in, olHTML); page != "" {
		m.Bodies = []Body{{HTML: true, Text: page}}
	} else if text := decompress(in.Stream("__substg1.0_10090102")); text != "" {
		m.Bodies = []Body{{RTF: true, Text: text}}
	}
	for n, name := range in.Names("__attach_version1.0_") {
		if n == maxParts {
			m.note("it has too many parts: the first are read")
			break
		}
		at := in.Folder(name)
		file := File{Type: strings.ToLower(property(at, olType)), Data: at.Stream("__substg1.0_" + olAttached + "0102")}
		file.Name = cmp.Or(baseName(property(at, olName)), baseName(property(at, olShortName)), baseName(property(at, olDisplayName)))
		if inner := "__substg1.0_" + olAttached + "000D"; at.Has(inner) && depth < maxDepth {
			in, missing := outlook(at.Folder(inner), depth+1)
			left += missing
			head := "Forwarded message\nFrom: " + in.From + "\nDate: " + in.Date + "\nSubject: " + in.Subject
			m.Bodies = append(append(m.Bodies, Body{Text: head}), in.Bodies...)
			m.Files = append(m.Files, in.Files...)
			m.note(in.Partial)
		} else if file.Name = cmp.Or(file.Name, "attachment"); len(file.Data) > 0 {
			m.Files = append(m.Files, file)
		} else { // a link to a file, or an object of another program
			left++
		}
	}
	return m, left
}

// note adds to what was left out.
func (m *Message) note(why string) {
	if !strings.Contains(m.Partial, why) {
		m.Partial = strings.TrimPrefix(m.Partial+"; "+why, "; ")
	}
}

// rtfWords precede every compressed text, which may refer to them (MS-OXRTFCP, 2.1.2.1).
const rtfWords = `{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArial` +
	`Times New RomanCourier{\colortbl\red0\green0\blue0` + "\r\n" + `\par \pard\plain\f0\fs20\b\i\u\tab\tx`

// decompress returns a text in compressed RTF (MS-OXRTFCP); of a damaged one, what
// precedes the damage.
func decompress(data []byte) string {
	const head, window = 16, 4096
	if len(data) < head {
		return ""
	}
	kind, data := string(data[8:12]), data[head:]
	switch kind {
	case "MELA":
		return string(data)
	case "LZFu":
	default:
		return ""
	}
	out := []byte(rtfWords)
	for flags := 1; len(data) > 0; flags >>= 1 {
		switch {
		case flags == 1: // the next eight
			flags, data = int(data[0])<<1|0x200, data[1:]
		case flags&1 == 0:
			out, data = append(out, data[0]), data[1:]
		case len(data) == 1:
			data = nil
		default: // a place in the window and a length
			place, length := int(data[0])<<4|int(data[1])>>4, int(data[1]&15)+2
			data = data[2:]
			from := len(out) - 1 - (len(out)-1-place+window)%window
			if place == len(out)%window || from < 0 {
				data = nil
				break
			}
			for i := range length {
				out = append(out, out[from+i])
			}
		}
	}
	return string(out[len(rtfWords):])
}

// addressees adds the addresses of the recipients to their names. Messages without
// the names have no other list of them.
func (m *Message) addressees(in compound.Folder) {
	var all []string
	for _, folder := range in.Names("__recip_version1.0_") {
		at := in.Folder(folder)
		name, address := property(at, olDisplayName), cmp.Or(property(at, olSMTP), property(at, olAddress))
		if !strings.Contains(address, "@") || strings.Contains(m.To+m.Cc, address) {
			continue
		}
		full := strings.TrimSpace(name + " <" + address + ">")
		if name == "" || strings.Contains(name, address) {
			full = cmp.Or(name, address)
		} else {
			m.To, m.Cc = strings.ReplaceAll(m.To, name, full), strings.ReplaceAll(m.Cc, name, full)
		}
		all = append(all, full)
	}
	m.To = cmp.Or(m.To, strings.Join(all, ", "))
}

// property returns a text, which is in UTF-16 or in an encoding of its own.
func property(in compound.Folder, tag string) string {
	name := "__substg1.0_" + tag
	if text := compound.UTF16(in.Stream(name + "001F")); text != "" {
		return text
	}
	for _, kind := range []string{"001E", "0102"} {
		if text, err := charset.Decode(in.Stream(name+kind), ""); err == nil && text != "" {
			return strings.TrimRight(text, "\x00")
		}
	}
	return ""
}

// sent returns the time in the properties at which a message was sent, or received.
func sent(properties []byte) (t time.Time) {
	const head, size = 32, 16
	for at := head; at+size <= len(properties); at += size {
		tag := binary.LittleEndian.Uint32(properties[at:])
		if id := tag >> 16; tag&0xffff == 0x40 && (id == olSent || id == olReceived && t.IsZero()) {
			const epoch = 116444736000000000 // 1 January 1970, in tenths of microseconds from 1601 on
			t = time.Unix(0, 100*(int64(binary.LittleEndian.Uint64(properties[at+8:]))-epoch)).UTC()
		}
	}
	return t
}

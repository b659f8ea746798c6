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

// Properties of an Outlook message (MS-OXPROPS).
const (
	olClass       = "001A"
	olSubject     = "0037"
	olSent        = 0x0039
	olSender      = "0C1A"
	olSenderAt    = "5D01"
	olSentBy      = "0C1F" // an address, which Exchange writes in its own form
	olTo          = "0E04"
	olCc          = "0E03"
	olReceived    = 0x0E06
	olBody        = "1000"
	olHTML        = "1013"
	olAttached    = "3701"
	olName        = "3707"
	olShortName   = "3704"
	olDisplayName = "3001"
	olAddress     = "3003"
	olSMTP        = "39FE"
)

// olDetails are the properties of appointments, tasks and contacts in addition to their text.
// Properties from 0x10000 on are named: they have a set (the beginning of its GUID), a number in
// that set, and a different property number in each file.
var olDetails = []struct {
	label    string
	property int
}{
	{"Location", 0x2002_8208}, {"Start", 0x2002_820D}, {"End", 0x2002_820E}, {"Repeats", 0x2002_8232},
	{"Start", 0x2003_8104}, {"Due", 0x2003_8105}, {"Owner", 0x2003_811F},
	{"Organization", 0x3A16}, {"Title", 0x3A17}, {"Phone (work)", 0x3A08}, {"Phone (home)", 0x3A09}, {"Phone (mobile)", 0x3A1C},
	{"Phone (work, fax)", 0x3A24}, {"Mail", 0x2004_8083}, {"Mail", 0x2004_8093}, {"Mail", 0x2004_80A3},
	{"Address (work)", 0x2004_801B}, {"Address (home)", 0x2004_801A},
}

// namedProperties returns the property numbers of the named properties in a file.
func namedProperties(root compound.Folder) map[int]int {
	const first, entry, guid = 3, 8, 16 // the first sets are predefined and contain none of these
	in := root.Folder("__nameid_version1.0")
	sets, entries := in.Stream("__substg1.0_00020102"), in.Stream("__substg1.0_00030102")
	numbers := map[int]int{}
	for ; len(entries) >= entry; entries = entries[entry:] {
		set := guid * (int(binary.LittleEndian.Uint16(entries[4:])>>1) - first)
		if entries[4]&1 == 0 && set >= 0 && set+guid <= len(sets) {
			own := int(binary.LittleEndian.Uint16(sets[set:]))<<16 | int(binary.LittleEndian.Uint16(entries))
			numbers[own] = 0x8000 + int(binary.LittleEndian.Uint16(entries[6:]))
		}
	}
	return numbers
}

// appointmentDetails returns the details of an appointment, task or contact.
func appointmentDetails(in compound.Folder, properties []byte, numbers map[int]int) string {
	class := property(in, olClass)
	if class == "" || strings.HasPrefix(class, "IPM.Note") {
		return ""
	}
	var lines []string
	for _, d := range olDetails {
		number := d.property
		if number > 0xffff {
			number = numbers[number]
		}
		value := property(in, fmt.Sprintf("%04X", number))
		if t := timeProperty(properties, uint32(number)); !t.IsZero() {
			value = t.Format("2006-01-02 15:04 MST")
			if strings.HasPrefix(class, "IPM.Task") { // a day, stored as midnight
				value = t.Format(time.DateOnly)
			}
		}
		if value = strings.Join(strings.Fields(value), " "); value != "" {
			lines = append(lines, d.label+": "+value)
		}
	}
	return strings.Join(lines, "\n\n")
}

// Outlook reads an Outlook message (MS-OXMSG).
func Outlook(data []byte) (*Message, error) {
	root, err := compound.Open(data)
	if err == nil && !root.Has("__properties_version1.0") {
		err = errors.New("it is not a message: it has no properties")
	}
	if err != nil {
		return nil, err
	}
	m, left := readOutlook(root, namedProperties(root), 1)
	if left > 0 {
		m.addPartial(fmt.Sprintf("attachments outside the message are not read: %d", left))
	}
	return m, nil
}

// readOutlook reads the message in a folder, and counts the attachments that it doesn't contain.
func readOutlook(in compound.Folder, numbers map[int]int, depth int) (m *Message, left int) {
	m = &Message{From: property(in, olSender), To: property(in, olTo), Cc: property(in, olCc), Subject: property(in, olSubject)}
	address := cmp.Or(property(in, olSenderAt), property(in, olSentBy))
	if strings.Contains(address, "@") && !strings.Contains(m.From, address) {
		m.From = strings.TrimSpace(m.From + " <" + address + ">")
	}
	m.addressees(in)
	properties := in.Stream("__properties_version1.0")
	if m.Time = timeProperty(properties, olSent); m.Time.IsZero() {
		m.Time = timeProperty(properties, olReceived)
	}
	if !m.Time.IsZero() {
		m.Date = m.Time.Format(time.RFC1123Z)
	}
	if text := appointmentDetails(in, properties, numbers); text != "" {
		m.Bodies = []Body{{Text: text}}
	}
	if text := property(in, olBody); strings.TrimSpace(text) != "" {
		m.Bodies = append(m.Bodies, Body{Text: text})
	} else if page := property(in, olHTML); page != "" {
		m.Bodies = append(m.Bodies, Body{HTML: true, Text: page})
	} else if text := decompress(in.Stream("__substg1.0_10090102")); text != "" {
		m.Bodies = append(m.Bodies, Body{RTF: true, Text: text})
	}
	for n, name := range in.Names("__attach_version1.0_") {
		if n == maxParts {
			m.addPartial("it has too many parts: only the first ones are read")
			break
		}
		at := in.Folder(name)
		file := File{Data: at.Stream("__substg1.0_" + olAttached + "0102")}
		file.Name = cmp.Or(baseName(property(at, olName)), baseName(property(at, olShortName)), baseName(property(at, olDisplayName)),
			"attachment")
		if inner := "__substg1.0_" + olAttached + "000D"; at.Has(inner) && depth < maxDepth {
			in, missing := readOutlook(at.Folder(inner), numbers, depth+1)
			left += missing
			head := "Forwarded message\nFrom: " + in.From + "\nDate: " + in.Date + "\nSubject: " + in.Subject
			m.Bodies = append(append(m.Bodies, Body{Text: head}), in.Bodies...)
			m.Files = append(m.Files, in.Files...)
			m.addPartial(in.Partial)
		} else if len(file.Data) > 0 {
			m.Files = append(m.Files, file)
		} else { // a link to a file, or an object of another program
			left++
		}
	}
	return m, left
}

// addPartial adds a description of a part that was left out.
func (m *Message) addPartial(why string) {
	if !strings.Contains(m.Partial, why) {
		m.Partial = strings.TrimPrefix(m.Partial+"; "+why, "; ")
	}
}

// rtfWords is the text that precedes every compressed text, which may refer to it (MS-OXRTFCP,
// 2.1.2.1).
const rtfWords = `{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArial` +
	`Times New RomanCourier{\colortbl\red0\green0\blue0` + "\r\n" + `\par \pard\plain\f0\fs20\b\i\u\tab\tx`

// decompress decompresses RTF (MS-OXRTFCP), up to any damage.
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
		case flags == 1: // the next eight flags
			flags, data = int(data[0])<<1|0x200, data[1:]
		case flags&1 == 0:
			out, data = append(out, data[0]), data[1:]
		case len(data) == 1:
			data = nil
		default: // an offset in the window and a length
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

// addressees adds the recipients' addresses to their names. In messages without names, the
// addresses are the only list of recipients.
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

// property returns a text property, which is in UTF-16 or in another encoding.
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

// timeProperty returns the value of a time property.
func timeProperty(properties []byte, id uint32) time.Time {
	const head, size = 32, 16
	for at := head; at+size <= len(properties); at += size {
		if binary.LittleEndian.Uint32(properties[at:]) == id<<16|0x40 {
			return compound.Time(properties[at+8:])
		}
	}
	return time.Time{}
}

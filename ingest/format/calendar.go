package format

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"ibid/ingest/mail"
	"ibid/ingest/office"
)

// contentLabels maps the supported properties of events and contacts to labels (RFC 5545 and 6350).
var contentLabels = map[string]string{
	"DTSTART": "Start", "DTEND": "End", "DUE": "Due", "LOCATION": "Location", "ORGANIZER": "Organizer", "ATTENDEE": "Attendee",
	"DESCRIPTION": "Description", "STATUS": "Status", "RRULE": "Repeats", "CATEGORIES": "Categories", "URL": "URL", "COMMENT": "Comment",
	"ORG": "Organization", "TITLE": "Title", "ROLE": "Role", "TEL": "Phone", "EMAIL": "Mail", "ADR": "Address", "BDAY": "Birthday",
	"NOTE": "Note", "NICKNAME": "Nickname", "ATTACH": "Attachment", "CONTACT": "Contact", "RESOURCES": "Resources", "DURATION": "Duration",
	"EXDATE": "Except", "IMPP": "Messages", "ANNIVERSARY": "Anniversary", "GEO": "Place", "RELATED": "Related", "COMPLETED": "Completed",
	"PRIORITY": "Priority",
}

var (
	contentFold  = regexp.MustCompile(`\n[ \t]`)
	contentSoft  = regexp.MustCompile(`(?mi)^[^:\n]*QUOTED-PRINTABLE[^:\n]*:(?:[^\n]*=\n)+`) // continued on the next line
	contentForm  = regexp.MustCompile(`^(?:[\w-]+\.)?([\w-]+)((?:;(?:"[^"]*"|[^":;])*)*):(.*)$`)
	contentBegin = regexp.MustCompile(`(?mi)^BEGIN:(?:VEVENT|VTODO|VJOURNAL|VCARD)\s*$`)
	contentName  = regexp.MustCompile(`(?i);(?:CN|TZID|FILENAME|X-FILENAME)=(?:"([^"]*)"|([^;:]*))`)
	contentTime  = regexp.MustCompile(`^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?$`)
	contentText  = strings.NewReplacer(`\n`, "\n", `\N`, "\n", `\,`, ",", `\;`, ";", `\\`, `\`)
)

// Calendar reads the events of a calendar or the contacts of an address book. Each is a section
// whose heading is its name.
func Calendar(doc *Document, src string) error {
	var b builder
	var lines, files []string
	heading, found, several := "", false, len(contentBegin.FindAllString(src, 2)) > 1
	flush := func() {
		if heading != "" || len(lines) > 0 {
			writeContent(&b, cmp.Or(heading, "Untitled"), lines, several)
		}
		heading, lines = "", nil
	}
	src = contentSoft.ReplaceAllStringFunc(unixLines(src), func(s string) string { return strings.ReplaceAll(s, "=\n", "") })
	for line := range strings.SplitSeq(contentFold.ReplaceAllString(src, ""), "\n") {
		switch name, options, value := contentProperty(line); name {
		case "BEGIN", "END":
			found = found || name == "BEGIN"
			switch strings.ToUpper(value) {
			case "VEVENT", "VTODO", "VJOURNAL", "VCARD":
				flush()
			case "VTIMEZONE": // drop the dates of its clock changes
				lines = nil
			}
		case "SUMMARY", "FN":
			heading = cmp.Or(value, heading)
		case "N": // family name, given name, further names, prefix, suffix
			if part := append(strings.Split(value, ";"), "", "", "", ""); heading == "" {
				heading = oneLine(strings.Join([]string{part[3], part[1], part[2], part[0], part[4]}, " "))
			}
		case "X-WR-CALNAME":
			doc.setMeta("title", value)
		default:
			named := strings.Join(append(contentName.FindStringSubmatch(options), "", "", "")[1:3], "")
			switch label, ok := contentLabels[name]; {
			case name == "PHOTO" || name == "LOGO":
				files = append(files, strings.ToLower(name))
			case name == "ATTACH" && strings.Contains(strings.ToUpper(options), ";ENCODING=B"):
				files = append(files, cmp.Or(named, "an unnamed file"))
			case ok:
				lines = append(lines, contentLine(label+contentType(name, options), named, value)...)
			}
		}
	}
	flush()
	if !found {
		return errors.New("it is neither a calendar nor a contact: it has no BEGIN line")
	}
	b.moveTo(doc)
	if len(files) > 0 {
		doc.Partial = oneLine(Clean(office.NotRead(files)))
	}
	if !several { // one of several names is not the title of the file
		doc.titleFromHeading(anyLevel)
	}
	return nil
}

// writeContent writes an event or a contact. If the file has several, the short lines form a row
// with the name, so that no line is quoted without it.
func writeContent(b *builder, name string, lines []string, several bool) {
	const short = 80
	b.Heading(1, name, "")
	header, cells, rest := []string{"Name"}, []string{name}, []string(nil)
	for _, line := range lines {
		label, value, labelled := strings.Cut(line, ": ")
		if several && labelled && len(line) <= short && !strings.Contains(line, "\n") {
			header, cells = append(header, label), append(cells, value)
		} else {
			rest = append(rest, line)
		}
	}
	if len(cells) > 1 {
		b.Row(header, cells)
	}
	for _, line := range rest {
		b.Item(0, "-", line)
	}
}

// contentProperty returns the name of the property that a line sets, its options and its value. The
// name is empty if the line is malformed.
func contentProperty(line string) (name, options, value string) {
	m := contentForm.FindStringSubmatch(line)
	if m == nil {
		return "", "", ""
	}
	name, options, value = strings.ToUpper(m[1]), m[2], strings.TrimSpace(contentText.Replace(m[3]))
	if strings.Contains(strings.ToUpper(options), "QUOTED-PRINTABLE") {
		value = string(mail.DecodeQuoted([]byte(value)))
	}
	return name, options, value
}

// contentUses maps the types of numbers and addresses to words.
var contentUses = map[string]string{"CELL": "mobile", "WORK": "work", "HOME": "home", "FAX": "fax"}

// contentType returns the use of a phone number, mail address or postal address: " (work, fax)".
func contentType(name, options string) string {
	if name != "TEL" && name != "EMAIL" && name != "ADR" {
		return ""
	}
	var uses []string
	for _, option := range strings.FieldsFunc(strings.ToUpper(options), func(r rune) bool { return strings.ContainsRune(";,=\"", r) }) {
		if use := contentUses[option]; use != "" {
			uses = append(uses, use)
		}
	}
	if uses == nil {
		return ""
	}
	return " (" + strings.Join(uses, ", ") + ")"
}

// contentLine returns the line of a labelled value, with the name or time zone in its options, or
// nil if the value is empty.
func contentLine(label, named, value string) []string {
	if mail := len("mailto:"); len(value) > mail && strings.EqualFold(value[:mail], "mailto:") {
		value = value[mail:]
	}
	if t := contentTime.FindStringSubmatch(value); t != nil {
		value = t[1] + "-" + t[2] + "-" + t[3] + " " + t[4] + ":" + t[5] + strings.Replace(t[6], "Z", " UTC", 1)
		value = strings.TrimRight(strings.TrimRight(value, " :")+" "+named, " ")
	} else if named != "" {
		value = named + " (" + value + ")"
	}
	parts := strings.FieldsFunc(value, func(r rune) bool { return r == ';' })
	parts = slices.DeleteFunc(parts, func(part string) bool { return strings.Trim(part, ", ") == "" })
	if len(parts) == 0 {
		return nil
	}
	return []string{label + ": " + strings.Trim(strings.Join(parts, ", "), ", ")}
}

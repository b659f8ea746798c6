package format

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"ibid/ingest/mail"
)

// contentLabels are the properties of events and contacts that are read, by name
// (RFC 5545 and 6350).
var contentLabels = map[string]string{
	"DTSTART": "Start", "DTEND": "End", "DUE": "Due", "LOCATION": "Location", "ORGANIZER": "Organizer", "ATTENDEE": "Attendee",
	"DESCRIPTION": "Description", "STATUS": "Status", "RRULE": "Repeats", "CATEGORIES": "Categories", "URL": "URL", "COMMENT": "Comment",
	"ORG": "Organization", "TITLE": "Title", "ROLE": "Role", "TEL": "Phone", "EMAIL": "Mail", "ADR": "Address", "BDAY": "Birthday",
	"NOTE": "Note", "NICKNAME": "Nickname",
}

var (
	contentFold = regexp.MustCompile(`\r?\n[ \t]`)
	contentSoft = regexp.MustCompile(`=\r?\n`)
	contentLine = regexp.MustCompile(`^(?:[\w-]+\.)?([\w-]+)((?:;(?:"[^"]*"|[^":;])*)*):(.*)$`)
	contentName = regexp.MustCompile(`(?i);CN=(?:"([^"]*)"|([^;:]*))`)
	contentTime = regexp.MustCompile(`^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?$`)
	contentText = strings.NewReplacer(`\n`, "\n", `\N`, "\n", `\,`, ",", `\;`, ";", `\\`, `\`)
)

// Calendar reads the events of a calendar, or the contacts of an address book: each
// is a section under its name.
func Calendar(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	var b builder
	var heading string
	var lines []string
	found := false
	flush := func() {
		if heading != "" || len(lines) > 0 {
			b.Heading(1, cmp.Or(heading, "Untitled"), "")
			for _, line := range lines {
				b.Item(0, "-", line)
			}
		}
		heading, lines = "", nil
	}
	for line := range strings.SplitSeq(contentFold.ReplaceAllString(contentSoft.ReplaceAllString(src, ""), ""), "\n") {
		m := contentLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, value := strings.ToUpper(m[1]), strings.TrimSpace(contentText.Replace(m[3]))
		if strings.Contains(strings.ToUpper(m[2]), "QUOTED-PRINTABLE") {
			value = string(mail.DecodeQuoted([]byte(value)))
		}
		switch name {
		case "BEGIN", "END":
			found = found || name == "BEGIN"
			if kind := strings.ToUpper(value); kind == "VEVENT" || kind == "VTODO" || kind == "VJOURNAL" || kind == "VCARD" {
				flush()
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
			label, ok := contentLabels[name]
			if cn := contentName.FindStringSubmatch(m[2]); cn != nil {
				value = cn[1] + cn[2] + " (" + strings.TrimPrefix(strings.ToLower(value), "mailto:") + ")"
			} else if t := contentTime.FindStringSubmatch(value); t != nil {
				value = strings.TrimRight(t[1]+"-"+t[2]+"-"+t[3]+" "+t[4]+":"+t[5]+strings.Replace(t[6], "Z", " UTC", 1), " :")
			}
			if value = strings.Trim(strings.ReplaceAll(value, ";", ", "), ", "); ok && value != "" {
				lines = append(lines, label+": "+value)
			}
		}
	}
	flush()
	if !found {
		return errors.New("it is neither a calendar nor a contact: no line of it begins one")
	}
	b.into(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

package format

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ibid/ingest/mail"
	"ibid/ingest/office"
)

// Mail reads one message: its subject becomes the title and the heading of its text. Sender,
// recipients and date are in the metadata and in the path of headings. Attachments are only named;
// a sync reads them as files.
func Mail(doc *Document, data []byte) error {
	return mailOf(doc, mail.Read(data))
}

// Outlook reads a message of Outlook.
func Outlook(doc *Document, data []byte) error {
	m, err := mail.Outlook(data)
	if err != nil {
		return err
	}
	return mailOf(doc, m)
}

func mailOf(doc *Document, m *mail.Message) error {
	if m.From == "" && m.Subject == "" && m.Date == "" && m.To == "" && len(m.Files) == 0 {
		return fmt.Errorf("it is not a message: there is no sender, subject or date in it")
	}
	date := m.Date
	if !m.Time.IsZero() {
		date = m.Time.Format(time.RFC3339)
	}
	for key, value := range map[string]string{"author": m.From, "to": m.To, "cc": m.Cc, "date": date} {
		doc.setMeta(key, value)
	}
	doc.Title = oneLine(Clean(m.Subject))
	var b builder
	partial := writeMail(&b, m, 1, "")
	b.moveTo(doc)
	doc.Partial = oneLine(Clean(partial))
	return nil
}

// Mailbox reads each message of a mailbox as a section with the anchor "message=N", where N is its
// 1-based position in the file.
func Mailbox(doc *Document, data []byte) error {
	var b builder
	partial := 0
	for i, message := range mail.Mailbox(data) {
		m := mail.Read(message)
		if writeMail(&b, m, i+1, fmt.Sprintf("message=%d", i+1)) != "" {
			partial++
		}
	}
	b.moveTo(doc)
	if partial > 0 {
		doc.Partial = fmt.Sprintf("%d of its messages have too many parts: only the first ones are read", partial)
	}
	return nil
}

// writeMail writes a message and returns a description of the parts that are not read. number is
// its position in the mailbox.
func writeMail(b *builder, m *mail.Message, number int, anchor string) string {
	subject, envelope := inHeading(m.Subject), envelopeOf(m)
	if subject == "" && (envelope != "" || anchor != "") {
		subject = fmt.Sprintf("Message %d", number)
	}
	b.Heading(1, subject, anchor)
	if envelope != "" {
		section := &b.sections[len(b.sections)-1]
		if section.Heading = envelope; anchor != "" { // the title belongs to the mailbox
			section.Heading = subject + HeadingSeparator + envelope
		}
	}
	var partial []string
	if m.Partial != "" {
		partial = append(partial, m.Partial)
	}
	for _, body := range m.Bodies {
		switch {
		case body.HTML:
			htmlText(b, body.Text)
		case body.RTF:
			w := &officeWriter{b: b}
			left, err := office.Read([]byte(body.Text), w.write, func(string, string) {})
			if err != nil {
				left = append(left, "its text in RTF could not be read: "+err.Error())
			}
			partial = append(append(partial, w.partial...), left...)
		default:
			plainText(b, body.Text)
		}
	}
	var names []string
	for _, f := range m.Files {
		names = append(names, oneLine(f.Name))
	}
	if len(names) > 0 {
		b.Paragraph("Attached: " + strings.Join(names, ", "))
	}
	return strings.Join(partial, "; ")
}

// address matches the end of a name and the mail address after it.
var address = regexp.MustCompile(`([^\s,;]) *<[^<>]*>`)

// recipientsSign precedes the recipients of a message in its heading.
const recipientsSign = " → "

// inHeading puts a field on one line and removes the separators used in headings.
func inHeading(field string) string {
	return strings.NewReplacer(HeadingSeparator, " ", recipientsSign, " ").Replace(oneLine(Clean(field)))
}

// envelopeOf returns the sender and date of a message, in the form of RFC 5322, and the names of
// its recipients.
func envelopeOf(m *mail.Message) string {
	const most = 120 // bytes of each field
	short := func(field string) string {
		if field = inHeading(field); len(field) > most {
			field = strings.ToValidUTF8(field[:most], "") + "…"
		}
		return field
	}
	join := func(separator string, parts ...string) string {
		return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), separator)
	}
	date, copies := m.Date, short(address.ReplaceAllString(m.Cc, "$1"))
	if !m.Time.IsZero() {
		date = m.Time.Format("2 Jan 2006 15:04 -0700")
	}
	if copies != "" {
		copies = "Cc " + copies
	}
	to := join(", ", short(address.ReplaceAllString(m.To, "$1")), copies)
	return join(recipientsSign, join(", ", short(m.From), short(date)), to)
}

// Envelope returns the subject of a message, and its sender and date, such as "Ada
// <ada@example.org>, 8 Mar 2024 09:00 +0100". title is the title of its document. path is its path
// of headings, which in a mailbox includes the subject.
func Envelope(format, title, path string) (subject, sent string) {
	if subject, sent = title, path; format == "mbox" {
		subject, sent, _ = strings.Cut(path, HeadingSeparator)
	}
	sent, _, _ = strings.Cut(sent, HeadingSeparator)
	sent, _, _ = strings.Cut(sent, recipientsSign)
	return subject, sent
}

// plainText adds the paragraphs of a text, keeping their lines.
func plainText(b *builder, text string) {
	for paragraph := range strings.SplitSeq(Clean(text), "\n\n") {
		b.Paragraph(paragraph)
	}
}

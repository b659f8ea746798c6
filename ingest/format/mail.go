package format

import (
	"fmt"
	"strings"
	"time"

	"ibid/ingest/mail"
	"ibid/ingest/office"
)

// Mail reads one message: its subject as heading, its addresses and date, and its
// text. Attachments are named; a sync reads them as files.
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
	doc.setMeta("author", m.From)
	doc.setMeta("date", mailDate(m))
	doc.Title = oneLine(Clean(m.Subject))
	var b builder
	b.Heading(1, m.Subject, "")
	partial := writeMail(&b, m)
	b.into(doc)
	doc.Partial = oneLine(Clean(partial))
	return nil
}

// Mailbox reads each message of a mailbox as a section with the anchor
// "message=N", N being its 1-based position in the file.
func Mailbox(doc *Document, data []byte) error {
	var b builder
	partial := 0
	for i, message := range mail.Mailbox(data) {
		m := mail.Read(message)
		anchor := fmt.Sprintf("message=%d", i+1)
		subject := m.Subject
		if oneLine(Clean(subject)) == "" {
			subject = fmt.Sprintf("Message %d", i+1)
		}
		b.Heading(1, subject, anchor)
		if writeMail(&b, m) != "" {
			partial++
		}
	}
	b.into(doc)
	if partial > 0 {
		doc.Partial = fmt.Sprintf("%d of its messages have too many parts: the first are read", partial)
	}
	return nil
}

// writeMail writes a message and returns what of it is not read.
func writeMail(b *builder, m *mail.Message) string {
	var head []string
	for _, f := range [...]struct{ name, value string }{
		{"From", m.From}, {"To", m.To}, {"Cc", m.Cc}, {"Date", m.Date},
	} {
		if value := oneLine(Clean(f.value)); value != "" {
			const most = 2000 // of a list of receivers
			head = append(head, f.name+": "+strings.ToValidUTF8(value[:min(len(value), most)], ""))
		}
	}
	b.Paragraph(strings.Join(head, "\n"))
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

func mailDate(m *mail.Message) string {
	if m.Time.IsZero() {
		return m.Date
	}
	return m.Time.Format(time.RFC3339)
}

// plainText adds the paragraphs of a text with their lines.
func plainText(b *builder, text string) {
	for paragraph := range strings.SplitSeq(Clean(text), "\n\n") {
		b.Paragraph(paragraph)
	}
}

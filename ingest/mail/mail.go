// Package mail reads messages (RFC 5322, MIME) and mailboxes (mbox) as they occur in practice:
// truncated, wrongly encoded or without headers. It returns no errors: parts that it can't parse
// become text or are left out.
package mail

import (
	"bytes"
	"cmp"
	netmail "net/mail"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"ibid/ingest/charset"
)

// A Message is one decoded mail.
type Message struct {
	// Decoded header fields; empty if missing.
	From, To, Cc, Subject, Date string
	// Time is the parsed Date, or zero if it can't be parsed.
	Time time.Time
	// Bodies are the texts of the message, in order, with only the plainest of alternatives.
	Bodies []Body
	// Files are the attachments, including attached messages.
	Files []File
	// Partial describes the parts that were left out.
	Partial string
}

// A Body is a text of a message.
type Body struct {
	HTML, RTF bool   // format of the text; plain text is neither
	Text      string // valid UTF-8, except for RTF
}

// A File is an attachment.
type File struct {
	Name string // without folders, never empty
	Data []byte
}

// Limits of one message.
const (
	maxParts  = 1000
	maxDepth  = 20 // of nested parts
	maxHeader = 1 << 20
)

// Read reads one message.
func Read(data []byte) *Message {
	h, body := cutHeader(trimStart(data))
	m := &Message{
		From: h.text("from"), To: h.text("to"), Cc: h.text("cc"), Subject: h.text("subject"), Date: cmp.Or(h.text("date"), h.text("sent")),
	}
	m.Time = timeOf(m.Date)
	r := reader{m: m}
	m.Bodies = r.part(h, body, "text/plain", 1)
	return m
}

// timeOf parses dates in the formats of RFC 5322 and of old programs.
func timeOf(date string) time.Time {
	t, err := netmail.ParseDate(date)
	date, _, _ = strings.Cut(date, " (")
	for _, layout := range []string{"Mon, 2 Jan 2006 15:04:05", time.ANSIC, "Monday, January 2, 2006 3:04 PM", time.RFC3339} {
		if err != nil {
			t, err = time.Parse(layout, date)
		}
	}
	return t // zero after an error
}

// A reader walks through the parts of a message.
type reader struct {
	m     *Message
	parts int
}

// part returns the text of a part and adds its files to the message.
func (r *reader) part(h header, body []byte, standard string, depth int) []Body {
	if r.parts++; r.parts > maxParts || depth > maxDepth {
		r.m.Partial = "it has too many parts: only the first ones are read"
		return nil
	}
	kind, params := h.params("content-type")
	if !strings.Contains(kind, "/") {
		kind = standard
	}
	disposition, dparams := h.params("content-disposition")
	name := cmp.Or(baseName(dparams["filename"]), baseName(params["name"]))
	if strings.HasPrefix(kind, "multipart/") {
		if boundary := params["boundary"]; boundary != "" {
			return r.multipart(kind, body, boundary, depth)
		}
		kind = "text/plain"
	}
	content := body
	switch strings.ToLower(strings.TrimSpace(h["content-transfer-encoding"])) {
	case "base64":
		content = decodeBase64(body)
	case "quoted-printable":
		content = DecodeQuoted(body)
	}
	isHTML := kind == "text/html" || kind == "application/xhtml+xml"
	isText := isHTML || (strings.HasPrefix(kind, "text/") || kind == "message/delivery-status") && !slices.Contains(dataTypes, kind)
	attached := disposition == "attachment" || name != ""
	switch {
	case isText && !attached:
		// Content that can't be decoded is not text, whatever its declared type.
		text, err := charset.Decode(content, params["charset"])
		if err != nil || strings.TrimSpace(text) == "" {
			return nil
		}
		return []Body{{HTML: isHTML, Text: text}}
	case kind == "message/rfc822" || kind == "message/global":
		inner, _ := cutHeader(trimStart(content))
		name = cmp.Or(name, baseName(inner.text("subject")), "message")
		if !strings.EqualFold(path.Ext(name), ".eml") {
			name += ".eml"
		}
	case !attached && (strings.HasPrefix(kind, "image/") || kind == "text/css"): // belongs to a page
		return nil
	default:
		if name = cmp.Or(name, "attachment"); path.Ext(name) == "" {
			name += endings[kind]
		}
	}
	r.m.Files = append(r.m.Files, File{name, content})
	return nil
}

// dataTypes are text types whose parts are files.
var dataTypes = []string{"text/calendar", "text/css", "text/rtf", "text/vcard", "text/xml"}

// endings maps types to the endings of readable files.
var endings = map[string]string{"application/pdf": ".pdf", "application/zip": ".zip", "text/html": ".html", "text/plain": ".txt",
	"text/csv": ".csv", "text/calendar": ".ics", "text/rtf": ".rtf", "text/vcard": ".vcf", "text/xml": ".xml"}

func (r *reader) multipart(kind string, body []byte, boundary string, depth int) []Body {
	standard := "text/plain"
	if kind == "multipart/digest" {
		standard = "message/rfc822"
	}
	var all [][]Body
	for _, part := range cutParts(body, boundary) {
		h, content := cutHeader(part)
		if bodies := r.part(h, content, standard, depth+1); len(bodies) > 0 {
			all = append(all, bodies)
		}
		if r.m.Partial != "" {
			break
		}
	}
	if kind != "multipart/alternative" || len(all) == 0 {
		return slices.Concat(all...)
	}
	// Prefer the first alternative without HTML, unless it only refers to the last one.
	last := all[len(all)-1]
	if i := slices.IndexFunc(all, func(b []Body) bool { return !b[0].HTML }); i >= 0 && 4*countWords(all[i]) >= countWords(last) {
		return all[i]
	}
	return last
}

var pageTags = regexp.MustCompile(`(?is)<style\b.*?</style>|<[^<>]*>|https?://\S+`)

func countWords(bodies []Body) (n int) {
	for _, b := range bodies {
		n += len(strings.Fields(pageTags.ReplaceAllString(b.Text, " ")))
	}
	return n
}

// cutParts splits a body at its boundary, including the last part of a truncated body.
func cutParts(body []byte, boundary string) (parts [][]byte) {
	delimiter := []byte("--" + boundary)
	start, pos := -1, 0
	for line := range bytes.Lines(body) {
		if bytes.HasPrefix(line, delimiter) {
			rest := bytes.TrimRight(line[len(delimiter):], " \t\r\n")
			if last := bytes.Equal(rest, []byte("--")); last || len(rest) == 0 {
				if start >= 0 {
					parts = append(parts, bytes.TrimSuffix(bytes.TrimSuffix(body[start:pos], []byte("\n")), []byte("\r")))
				}
				if start = pos + len(line); last || len(parts) > maxParts {
					return parts
				}
			}
		}
		pos += len(line)
	}
	if start >= 0 && start < len(body) {
		parts = append(parts, body[start:])
	}
	return parts
}

// baseName returns a file name for an attachment's name.
func baseName(name string) string {
	name = path.Base(strings.ReplaceAll(strings.TrimSpace(name), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '/' {
			return -1
		}
		return r
	}, name)
	name = strings.Trim(name, ". ")
	if ending := path.Ext(name); len(name) > 200 && len(ending) < 20 {
		return strings.ToValidUTF8(name[:200-len(ending)], "") + ending
	}
	return strings.ToValidUTF8(name[:min(len(name), 200)], "")
}

// Mailbox returns the messages of an mbox file in order. The messages share the memory of data.
func Mailbox(data []byte) (messages [][]byte) {
	start, pos := 0, 0
	blank := true
	for line := range bytes.Lines(data) {
		if blank && isSeparator(line) {
			if pos > start {
				messages = append(messages, data[start:pos])
			}
			start = pos + len(line)
		}
		blank = len(bytes.TrimRight(line, "\r\n")) == 0
		pos += len(line)
	}
	if len(bytes.TrimSpace(data[min(start, len(data)):])) > 0 {
		messages = append(messages, data[start:])
	}
	return messages
}

// isSeparator reports whether a line separates messages in an mbox file. Such a line has a date.
func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("From "))
	if !ok || len(rest) > 1000 {
		return false
	}
	clock, year := false, false
	for _, field := range bytes.Fields(rest) {
		clock = clock || len(field) >= 5 && field[2] == ':'
		year = year || len(field) == 4 && bytes.Trim(field, "0123456789") == nil
	}
	return clock && year
}

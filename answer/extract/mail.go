package extract

import (
	"cmp"
	netmail "net/mail"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

// A letter is the author, thread, date and parts of a mail, as far as a passage has them.
// For any other document it has only a thread and a year.
type letter struct {
	author string
	thread string // subject without "Re:"; or the name of another document without its year
	sent   time.Time
	parts  []letterPart // of the passage
}

// A letterPart is a range of lines of one type by one author.
type letterPart struct {
	span  ingest.Span
	head  bool   // header fields, the line above quoted lines, or a greeting
	end   bool   // a closing or a signature
	reply bool   // quoted in a reply
	by    string // author and date, as the mail writes them
}

var (
	// answersTo matches the "Re:" of a subject; forwards matches a forwarded mail.
	answersTo = regexp.MustCompile(`^(?i:(?:re|aw|fwd?|wg|tr|sv): *)+`)
	forwards  = regexp.MustCompile(`^(?i:fwd?|wg): |(?im)^-+ ?(?:forwarded message|weitergeleitete nachricht|message transféré)`)
	passed    = regexp.MustCompile(`^-+ ?(?i:original message|forwarded message|ursprüngliche nachricht|weitergeleitete nachricht|` +
		`message d'origine|message transféré|mensaje original|mensaje reenviado)`)
	// field matches a header field: the sender, the date, or another.
	field = regexp.MustCompile(`^\*?(?:(From|Von|De|Da|Van|От|发件人)|(Date|Sent|Gesendet|Datum|Envoyé|Fecha|Enviado|Inviato|` +
		`Verzonden|Дата|发送时间)|To|An|À|Para|Aan|Кому|收件人|Cc|Bcc|Subject|Betreff|Objet|Asunto|Oggetto|Onderwerp|Тема|主题|` +
		`Reply-To|Message-ID|In-Reply-To) ?[:：]\*?\s*(.*)`)
	wrote = regexp.MustCompile(`^(?:On|Am|Le|El|Il|Op|Den) .{8,120} (?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|skrev).{0,60}:$`)
	// asksMail matches a question about who sent something, or when.
	asksMail = regexp.MustCompile(`(?i)(?:^|\PL)(?:(?:e-?)?mail(?:s|ed)?|messages?|sen[dt]|sender|wr[io]tes?|written|told|announced?|` +
		`said|says?|asked|repl(?:y|ied|ies)|answered|suggest(?:s|ed)?|propose[sd]?|confirmed|mention(?:s|ed)?|` +
		`nachricht|schrieb|schreibt|geschrieben|geschickt|sagte?|gesagt|fragte?|gefragt|antwortete?|geantwortet|schlägt|schlug|vorgeschlagen|` +
		`courriel|envoyé|écrit|correo|envió|enviado|escribió|escrito|dijo|написал|сказал)(?:$|\PL)|メール|送(?:っ|り|信)|連絡し|书信|邮件|发(?:来|送)`)
	quoteMarks = regexp.MustCompile(`(?m)^>[> ]*`)
)

func isMail(p retrieve.Passage) bool {
	return slices.Contains([]string{"mail", "mbox", "outlook"}, p.Format)
}

// letterOf reads the mail of a passage. A passage of any other document is a single part.
func letterOf(p retrieve.Passage) letter {
	if !isMail(p) {
		l := letter{parts: []letterPart{{span: ingest.Span{End: len(p.Text)}}}}
		name := strings.ReplaceAll(strings.TrimSuffix(p.Document, path.Ext(p.Document)), "_", " ")
		if of := years(name); len(of) > 0 {
			l.thread = year.ReplaceAllString(name, "")
			l.sent, _ = time.Parse("2006", of[len(of)-1]) // cannot fail: a year has four digits
		}
		return l
	}
	subject, sent := ingest.Envelope(p.Format, p.Title, p.Heading)
	r := letterReader{subject: squeeze(subject), own: sent, forwarded: forwards.MatchString(subject), greets: true}
	r.author, r.thread = sent, squeeze(answersTo.ReplaceAllString(subject, ""))
	date := sent[strings.LastIndexByte(sent, ',')+1:]
	if at, err := netmail.ParseDate(date); err == nil {
		r.sent, r.author = at, strings.TrimSuffix(strings.TrimSuffix(sent, date), ",")
	}
	lines := strings.SplitAfter(p.Text, "\n")
	for i, at := 0, 0; i < len(lines); at, i = at+len(lines[i]), i+1 {
		text := strings.TrimSpace(lines[i])
		if text == "" {
			r.inHead, r.gap = false, true
			continue
		}
		part := r.read(text, lines[i+1:])
		r.gap = false
		if last := len(r.parts) - 1; last >= 0 {
			before := r.parts[last]
			if before.span = part.span; before == part {
				continue
			}
			r.parts[last].span.End = at
		}
		part.span = ingest.Span{Start: at, End: len(p.Text)}
		r.parts = append(r.parts, part)
	}
	return r.letter
}

// toWhom has the words before the name of a recipient, or of somebody whom a mail is about.
var toWhom = marker.WordSet("to for about an für über à para")

// readSender notes the first word of the question that names the author of a mail.
func (q *query) readSender(l letter) {
	authors, asked := termSet(nameOf(l.author)), lowerWords(q.text)
	for i, n := range q.needs.terms {
		at := slices.Index(asked, strings.ToLower(n.word))
		if authors[n.stem] && (at < 1 || !toWhom[asked[at-1]]) && asksMail.MatchString(q.text) {
			q.sender = min(q.sender, i)
		}
	}
}

// isByAnother reports whether the question asks what somebody wrote, or when, and by, the author of
// a sentence, is somebody else.
func (q *query) isByAnother(by string) bool {
	return by != "" && q.sender < len(q.needs.terms) && !q.needs.kind.is("name") && !termSet(nameOf(by))[q.needs.terms[q.sender].stem]
}

// nameOf returns the name of an author without the address.
func nameOf(author string) string {
	name, _, _ := strings.Cut(author, "<")
	return cmp.Or(name, author)
}

// A letterReader reads the lines of a mail.
type letterReader struct {
	letter
	subject     string
	from        string // sender in the last header
	own, quoted string // authors of plain lines and of lines that begin with ">"
	forwarded   bool   // the mail forwards another
	inHead, gap bool   // the last line is a header field; the last line is empty
	left        int    // remaining lines of the introduction to quoted lines
	greets      bool   // a greeting may follow
	begun       bool   // the text of the mail has begun
	quoting     bool   // the last line began with ">"
	replies     bool   // the remaining lines are the mail that this one answers
	ended       bool   // a closing was read
}

// read returns the part that a line belongs to, without its span; more are the lines after it.
func (r *letterReader) read(text string, more []string) (part letterPart) {
	bare := strings.TrimLeft(text, "> ")
	if quoting := text[0] == '>'; quoting != r.quoting {
		r.quoting, r.ended = quoting, false
	}
	by, words := &r.own, len(strings.Fields(bare))
	if r.quoting {
		by = &r.quoted
	}
	last, _ := utf8.DecodeLastRuneInString(bare)
	switch {
	case bare == "", !r.begun && squeeze(bare) == r.subject:
	case r.readHeader(bare, more, by):
		part.head, r.ended, r.greets = true, false, true
	case r.ended, bare == "--", r.begun && words <= 5 && signed(bare, more, *by), !r.greets && r.gap && words <= 4 && last == ',':
		part.end, r.ended = true, true
	case r.greets && (words <= 6 && strings.ContainsRune(",，", last) || words <= 3 && strings.ContainsRune("!！", last)):
		part.head = true
	default:
		r.greets, r.begun = false, true
	}
	part.reply, part.by = r.quoting || r.replies, *by
	return part
}

// readHeader reports whether a line is a header field or introduces quoted lines, and notes the
// author of the lines after it.
func (r *letterReader) readHeader(line string, more []string, by *string) bool {
	next := strings.TrimLeft(slices.Concat(more, []string{""})[0], "> ")
	f := field.FindStringSubmatch(line)
	r.inHead = f != nil && (r.inHead || boilerplate.MatchString(line) || field.MatchString(next))
	switch {
	case r.inHead && f[1] != "":
		r.from, *by = f[3], f[3]
	case r.inHead && f[2] != "":
		*by = strings.Trim(r.from+", "+f[3], ", ")
		r.replies = r.replies || r.begun && !r.forwarded
	case r.inHead:
	case passed.MatchString(line):
		r.forwarded = r.forwarded || forwards.MatchString(line)
		r.replies = !r.forwarded
	case r.left > 0:
		r.left--
	default:
		above := r.readLead(line, more)
		r.quoted = cmp.Or(above, r.quoted)
		return above != ""
	}
	return true
}

// readLead returns the introduction to quoted lines that begins with text, such as "On Sunday Piet
// wrote:", or "".
func (r *letterReader) readLead(text string, more []string) string {
	for n := 0; n < 3 && !r.quoting; n++ {
		if endsOpen(text) {
			switch rest := strings.TrimSpace(strings.Join(more[n:], "")); {
			case strings.HasPrefix(rest, ">"):
			case !wrote.MatchString(text):
				return ""
			case !r.forwarded:
				r.own, r.replies = text, true
			}
			r.left = n
			return text
		}
		if n == len(more) || strings.TrimSpace(more[n]) == "" {
			return ""
		}
		text += " " + strings.TrimSpace(more[n])
	}
	return ""
}

// signs reports whether a line, or the part after its last comma, is the author's name.
func signs(line, author string) bool {
	known := lowerWords(author)
	words := lowerWords(line[strings.LastIndexByte(line, ',')+1:])
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(known, w) })
}

// signed reports whether a line or the next one is the author's name.
func signed(line string, more []string, author string) bool {
	next := slices.IndexFunc(more, func(line string) bool { return strings.Trim(line, "> \t\r\n") != "" })
	return signs(line, author) || next >= 0 && signs(more[next], author)
}

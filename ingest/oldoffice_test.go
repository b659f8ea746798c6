package ingest

import (
	"testing"
)

func TestRTF(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"paragraphs", `The ferry\par leaves at {\b nine}.\par`, "The ferry\n\nleaves at nine."},
		{"a heading", `{\stylesheet{\s1\outlinelevel0 heading 1;}}\pard\s1 Fares\par\pard Deck: 4.\par`, "Fares\n\nDeck: 4."},
		{"encodings", `{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f0 f\'fcr {\f1\'c4\'e0} \u8364?\uc2\u-10179??\u-8704??`, "für Да €😀"},
		{"a table", `\trowd\intbl What\cell Fee\cell\row\intbl Canoe\cell 7\cell\row\pard After.\par`, "What: Canoe | Fee: 7\n\nAfter."},
		{"what is no text", `{\*\generator X;}{\info{\title T}}{\header Page}{\pict 00ff}{\v hidden}{\field{\*\fldinst HYPERLINK "x"}{\fldrslt Link}}`,
			"Link"},
		{"notes", `Text{\footnote A note.} goes on.\par`, "Text (A note.) goes on."},
		{"notes of LibreOffice", `Text{\*\footnote\chftn A note.} goes on.\par`, "Text (A note.) goes on."},
		{"signs", `\{a\}\line b\~c\emdash d\tab e\'`, "{a}\nb c—d\te"},
		{"after its end", `a}garbage`, "a"},
		{"a list", `\pard\ls1 one\par\pard\ls1 two\par`, "- one\n- two"},
	} {
		doc, err := new(Reader).Read(t.Context(), "a.rtf", []byte(`{\rtf1\ansi `+tt.body+`}`))
		if err != nil || doc.Text != tt.want {
			t.Errorf("%s: %+v, %v, want %q", tt.name, doc, err, tt.want)
			continue
		}
		checkDocument(t, doc)
	}
}

func TestCalendar(t *testing.T) {
	const event = "BEGIN:VCALENDAR\r\nX-WR-CALNAME:Harbour\r\nBEGIN:VEVENT\r\nSUMMARY:Regatta\\, day 1\r\n" +
		"DTSTART;TZID=Europe/Oslo:20240308T090000\r\n" +
		"DESCRIPTION:Bring \r\n ropes.\r\nATTENDEE;CN=\"Ada Marsh\":mailto:ada@example.org\r\nUID:1\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	const contact = "BEGIN:VCARD\nVERSION:3.0\nFN:Ada Marsh\nORG:Harbour;Office\nitem1.TEL;TYPE=work:+47 1\n" +
		"NOTE;ENCODING=QUOTED-PRINTABLE:F=C3=A4hre\nEND:VCARD\nBEGIN:VCARD\nFN:Bo\nEND:VCARD\n"
	for name, tt := range map[string]struct{ data, want string }{
		"a.ics": {event, "Regatta, day 1\n\n- Start: 2024-03-08 09:00\n- Description: Bring ropes.\n- Attendee: Ada Marsh (ada@example.org)"},
		"a.vcf": {contact, "Ada Marsh\n\n- Organization: Harbour, Office\n- Phone: +47 1\n- Note: Fähre\n\nBo"},
	} {
		doc, err := new(Reader).Read(t.Context(), name, []byte(tt.data))
		if err != nil || doc.Text != tt.want {
			t.Errorf("%s: %+v, %v, want %q", name, doc, err, tt.want)
			continue
		}
		checkDocument(t, doc)
	}
	if _, err := new(Reader).Read(t.Context(), "a.ics", []byte("Nothing.\n")); err == nil {
		t.Error("a text without events was read")
	}
}

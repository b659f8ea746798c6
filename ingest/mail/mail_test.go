package mail

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// show formats a message.
func show(m *Message) string {
	var out strings.Builder
	for _, f := range [...][2]string{{"from", m.From}, {"to", m.To}, {"cc", m.Cc}, {"subject", m.Subject}, {"date", m.Date},
		{"partial", m.Partial}} {
		if f[1] != "" {
			fmt.Fprintf(&out, "%s: %s\n", f[0], f[1])
		}
	}
	for _, b := range m.Bodies {
		fmt.Fprintf(&out, "html %v: %q\n", b.HTML, b.Text)
	}
	for _, f := range m.Files {
		fmt.Fprintf(&out, "file %s %s %q\n", f.Name, f.Type, f.Data)
	}
	return out.String()
}

func TestRead(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"plain", "From: Ada <ada@example.org>\r\nTo: Bo\r\nSubject: The ferry\r\nDate: Fri, 8 Mar 2024 09:00:00 +0100\r\n\r\nAt nine.\r\n",
			"from: Ada <ada@example.org>\nto: Bo\nsubject: The ferry\ndate: Fri, 8 Mar 2024 09:00:00 +0100\nhtml false: \"At " +
				"nine.\\r\\n\"\n"},
		{"folded and encoded", "Subject: =?utf-8?Q?F=C3=A4hre?=\n =?utf-8?Q?_um_neun?=\nFrom: =?ISO-8859-1?Q?J=F8rn?= <j@example.org>\n\nx",
			"from: Jørn <j@example.org>\nsubject: Fähre um neun\nhtml false: \"x\"\n"},
		{"raw bytes", "Subject: F\xe4hre\n\nf\xfcr", "subject: Fähre\nhtml false: \"für\"\n"},
		{"an encoding that is not there", "Subject: =?x-none?Q?a?=\nContent-Type: text/plain; charset=x-none\n\nf\xfcr",
			"subject: a\nhtml false: \"für\"\n"},
		{"no header", "\nJust text.\n", "html false: \"Just text.\\n\"\n"},
		{"no body", "Subject: a\n", "subject: a\n"},
		{"a line that is not a field", "Subject: a\nno field here\nmore", "subject: a\nhtml false: \"no field here\\nmore\"\n"},
		{"the line of a mailbox", "From a@b Mon Jun 01 10:00:00 2009\nSubject: a\n\nx", "subject: a\nhtml false: \"x\"\n"},
		{"quoted-printable",
			"Subject: a\nContent-Transfer-Encoding: quoted-printable\nContent-Type: text/plain; charset=utf-8\n\nF=C3=A4h=\nre =ZZ =3\n",
			"subject: a\nhtml false: \"Fähre =ZZ =3\\n\"\n"},
		{"base64 with rubbish", "Subject: a\nContent-Transfer-Encoding: base64\n\nVGhl!IGZl\ncnJ5=\nLg==\n",
			"subject: a\nhtml false: \"The ferry.\"\n"},
		{"alternatives",
			"Subject: a\nContent-Type: multipart/alternative; boundary=\"b\"\n\nfor old programs\n--b\nContent-Type: text/html\n\n" +
				"<p>HTML</p>\n--b\nContent-Type: text/plain\n\nPlain\n--b--\nafter\n",
			"subject: a\nhtml false: \"Plain\"\n"},
		{"only HTML",
			"Subject: a\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n \n--b\nContent-Type: " +
				"text/html\n\n<p>HTML</p>\n--b--\n",
			"subject: a\nhtml true: \"<p>HTML</p>\"\n"},
		{"attached",
			"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nText\n--b\nContent-Type: application/pdf; " +
				"name=\"r.pdf\"\nContent-Transfer-Encoding: base64\n\nJVBERg==\n" +
				"--b\nContent-Disposition: attachment; filename=\"C:\\docs\\..\\b.txt\"\n\nB\n--b\nContent-Type: text/csv\n" +
				"Content-Disposition: attachment\n\n1,2\n--b\nContent-Type: image/png\n\ninline\n--b--",
			"subject: a\nhtml false: \"Text\"\nfile r.pdf application/pdf \"%PDF\"\nfile b.txt text/plain \"B\"\nfile " +
				"attachment.csv text/csv \"1,2\"\n"},
		{"names of RFC 2231",
			"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment; " +
				"filename*0*=utf-8''F%C3%A4h; filename*1=\"re.txt\"\n\nx\n--b\nContent-Disposition: attachment; " +
				"filename*=utf-8'de'%C3%BC.txt\n\ny\n--b\n" +
				"Content-Disposition: attachment; filename=\"=?utf-8?B?w6Q=?=.txt\"\n\nz",
			"subject: a\nfile Fähre.txt text/plain \"x\"\nfile ü.txt text/plain \"y\"\nfile ä.txt text/plain \"z\"\n"},
		{"a message in it",
			"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nSubject: Re: inner\n\n" +
				"Text\n--b--\n",
			"subject: a\nfile Re: inner.eml message/rfc822 \"Subject: Re: inner\\n\\nText\"\n"},
		{"parts without names",
			"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/x-log\n\nLog\n--b\nContent-Type: text/calendar\n\nBEGIN\n--b\n" +
				"Content-Type: application/pdf\n\n%PDF\n--b\nContent-Type: message/delivery-status\n\nStatus: 5\n--b\nContent-Type: text/css\n\np\n",
			"html false: \"Log\"\nhtml false: \"Status: 5\"\nfile attachment.ics text/calendar \"BEGIN\"\n" +
				"file attachment.pdf application/pdf \"%PDF\"\n"},
		{"an alternative that refers to the other",
			"Content-Type: multipart/alternative; boundary=b\n\n--b\n\nSee HTML\n--b\nContent-Type: text/html\n\n" +
				"<style>a b c</style><p>one two three four five six seven eight nine\n--b--",
			"html true: \"<style>a b c</style><p>one two three four five six seven eight nine\"\n"},
		{"cut off", "Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nText that stops he",
			"subject: a\nhtml false: \"Text that stops he\"\n"},
		{"no boundary", "Subject: a\nContent-Type: multipart/mixed\n\nText", "subject: a\nhtml false: \"Text\"\n"},
		{"the first of a field", "Subject: a\nSubject: b\n\nx", "subject: a\nhtml false: \"x\"\n"},
	} {
		if diff := cmp.Diff(tt.want, show(Read([]byte(tt.data)))); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestDates(t *testing.T) {
	want := time.Date(2024, 3, 8, 9, 0, 0, 0, time.UTC)
	for _, date := range []string{"Fri, 08 Mar 2024 09:00:00 +0000 (UTC)", "Fri, 8 Mar 2024 09:00:00", "8 Mar 2024 09:00:00 +0000",
		"Fri Mar  8 09:00:00 2024", "Friday, March 8, 2024 9:00 AM", "2024-03-08T09:00:00Z"} {
		if got := timeOf(date); !got.Equal(want) {
			t.Errorf("%q: %v", date, got)
		}
	}
	if got := timeOf("soon"); !got.IsZero() {
		t.Errorf("%v", got)
	}
}

func TestMailbox(t *testing.T) {
	const from = "From a@example.org Mon Jun 01 10:00:00 2009\n"
	for _, tt := range []struct {
		data string
		want []string
	}{
		{from + "Subject: 1\n\nOne.\n\n" + from + "Subject: 2\n\nTwo.\nFrom here it is text.\n\nFrom here too.\n\n>From quoted\n",
			[]string{"Subject: 1\n\nOne.\n\n", "Subject: 2\n\nTwo.\nFrom here it is text.\n\nFrom here too.\n\n>From quoted\n"}},
		{from + "\nOne.\n", []string{"\nOne.\n"}},
		{"Subject: alone\n\nx", []string{"Subject: alone\n\nx"}},
		{from, nil},
		{"", nil},
	} {
		var got []string
		for _, m := range Mailbox([]byte(tt.data)) {
			got = append(got, string(m))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.data, diff)
		}
	}
}

// Nested parts and endless parts are read up to a limit.
func TestBounds(t *testing.T) {
	deep := "Subject: a\n"
	for i := range 100 {
		deep += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	if m := Read([]byte(deep + "\nText")); m.Partial == "" {
		t.Error("a message with a hundred nested parts is not partial")
	}
	if m := Read([]byte("Content-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\n\nx\n", 5000))); m.Partial == "" ||
		len(m.Bodies) < 900 || len(m.Bodies) > maxParts {
		t.Errorf("of 5000 parts %d are read: %q", len(m.Bodies), m.Partial)
	}
	// Long headers take linear time; quadratic time would be minutes.
	Read([]byte("Subject: " + strings.Repeat("a\n ", 1<<20)))
	Read(bytes.Repeat([]byte("a: b\n"), 1<<20))
	Read([]byte("Content-Type: text/plain; a" + strings.Repeat("; a*0*=b", 1<<18) + "\n\nx"))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("Subject: =?utf-8?Q?a?=\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment; " +
		"filename*0*=utf-8''a; filename*1=b\nContent-Transfer-Encoding: base64\n\nAAAA=\n--b--"))
	f.Add([]byte("From a@b Mon Jun 01 10:00:00 2009\n\nx\n\nFrom a@b Mon Jun 01 10:00:00 2009\nA: b\n\n=3D"))
	f.Fuzz(func(t *testing.T, data []byte) {
		total := 0
		for _, m := range Mailbox(data) {
			total += len(m)
			for _, file := range Read(m).Files {
				if file.Name == "" || strings.ContainsAny(file.Name, "/\\\n\x00") {
					t.Errorf("a file named %q", file.Name)
				}
			}
		}
		if total > len(data) {
			t.Errorf("%d bytes of messages in %d", total, len(data))
		}
	})
}

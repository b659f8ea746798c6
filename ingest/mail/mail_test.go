package mail

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"ibid/data/datatest"
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
		fmt.Fprintf(&out, "file %s %q\n", f.Name, f.Data)
	}
	return out.String()
}

func TestRead(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/messages.txt", "messages") {
		datatest.Same(t, row[0], row[2], show(Read([]byte(row[1]))))
	}
}

func TestDates(t *testing.T) {
	want := time.Date(2024, 3, 8, 9, 0, 0, 0, time.UTC)
	for _, date := range []string{"Fri, 08 Mar 2024 09:00:00 +0000 (UTC)", "Fri, 8 Mar 2024 09:00:00", "8 Mar 2024 09:00:00 +0000",
		"Fri Mar  8 09:00:00 2024", "Friday, March 8, 2024 9:00 AM", "2024-03-08T09:00:00Z"} {
		if got := timeOf(date); !got.Equal(want) {
			t.Errorf("timeOf(%q) = %v, want %v", date, got, want)
		}
	}
	if got := timeOf("soon"); !got.IsZero() {
		t.Errorf("timeOf(%q) = %v, want the zero time", "soon", got)
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
		datatest.Same(t, tt.data, tt.want, got)
	}
}

// TestBounds checks that nested parts and endless parts are read up to a limit.
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
		t.Errorf("%d of 5000 parts are read: %q", len(m.Bodies), m.Partial)
	}
	// Long headers need linear time; quadratic time would be minutes.
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
					t.Errorf("file name = %q", file.Name)
				}
			}
		}
		if total > len(data) {
			t.Errorf("%d bytes of messages from %d", total, len(data))
		}
	})
}

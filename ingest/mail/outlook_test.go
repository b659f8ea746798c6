package mail

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ibid/data/datatest"
)

// packedRTF returns compressed RTF: "LZFu" with its tokens, or "MELA" with its text.
func packedRTF(kind, content string) []byte {
	head := make([]byte, 16)
	binary.LittleEndian.PutUint32(head, uint32(len(content)+12))
	copy(head[8:], kind)
	return append(head, content...)
}

// literal returns the tokens of a text, without references to earlier words.
func literal(text string) (tokens string) {
	for ; text != ""; text = text[min(8, len(text)):] {
		tokens += "\x00" + text[:min(8, len(text))]
	}
	return tokens
}

func TestDecompress(t *testing.T) {
	for _, tt := range []struct{ name, kind, content, want string }{
		// The examples of the specification (MS-OXRTFCP, 3).
		{"of words known before", "LZFu", "\x03\x00\x0a\x00rcpg125\x42\x32\x0a\xf3 \x68el\x09\x00 bw\x05\xb0ld}\x0a\x80\x0f\xa0",
			"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"},
		{"a copy of itself", "LZFu", "\x41\x00\x04 WXYZ\x0d\x6e}\x01\x0e\xb0", "{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"},
		{"not compressed", "MELA", "{\\rtf1 a}", "{\\rtf1 a}"},
		{"without references", "LZFu", literal("{\\rtf1 The ferry leaves.}"), "{\\rtf1 The ferry leaves.}"},
		{"cut in a reference", "LZFu", "\x02a\x00", "a"},
		{"a place that has no text yet", "LZFu", "\x02a\xff\x00", "a"},
		{"another kind", "LZMA", "a", ""},
	} {
		if got := decompress(packedRTF(tt.kind, tt.content)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := decompress([]byte("LZFu")); got != "" {
		t.Errorf("decompress of four bytes = %q, want none", got)
	}
}

// TestOutlook reads messages, each of which is a folder of properties. Attached messages
// are folders in it.
func TestOutlook(t *testing.T) {
	add := func(out map[string][]byte, folder string, properties map[string]string) {
		out[folder+"__properties_version1.0"] = make([]byte, 32)
		for tag, text := range properties {
			if strings.HasSuffix(tag, "001F") { // UTF-16
				text = strings.Join(strings.Split(text, ""), "\x00") + "\x00"
			}
			out[folder+"__substg1.0_"+tag] = []byte(text)
		}
	}
	const first, second, third = "__attach_version1.0_#00000000/", "__attach_version1.0_#00000001/", "__attach_version1.0_#00000002/"
	const inner = "__substg1.0_3701000D/"
	all := map[string][]byte{}
	rtf := string(packedRTF("LZFu", literal(`{\rtf1 See the notes.}`)))
	add(all, "", map[string]string{"0037001F": "Fares", "0C1A001F": "Ada", "0E04001F": "Bo", "10090102": rtf})
	add(all, first, map[string]string{"3001001F": "Notes"})
	add(all, first+inner, map[string]string{"0037001F": "Notes", "0C1A001F": "Cy", "1000001F": strings.Repeat("Cabins cost more. ", 200)})
	add(all, first+inner+first, map[string]string{"3707001F": "fares.csv", "37010102": "class,fare\n"})
	add(all, first+inner+second, map[string]string{"3001001F": "A link"})
	add(all, second, map[string]string{"3001001F": "Sticky note"})
	add(all, second+inner, map[string]string{"0037001F": "Sticky", "10130102": "<p>Buy rope.</p>"})
	add(all, third, map[string]string{"3001001F": "A link", "3704001F": "a.lnk"})
	m, err := Outlook(packCompound(all))
	datatest.Must(t, err)
	want := "from: Ada\nto: Bo\nsubject: Fares\npartial: attachments outside the message are not read: 2\n" +
		"html false: \"{\\\\rtf1 See the notes.}\"\n" +
		"html false: \"Forwarded message\\nFrom: Cy\\nDate: \\nSubject: Notes\"\n" +
		"html false: \"" + strings.Repeat("Cabins cost more. ", 200) + "\"\n" +
		"html false: \"Forwarded message\\nFrom: \\nDate: \\nSubject: Sticky\"\n" +
		"html true: \"<p>Buy rope.</p>\"\nfile fares.csv \"class,fare\\n\"\n"
	if diff := cmp.Diff(want, show(m)); diff != "" || !m.Bodies[0].RTF {
		t.Errorf("message with RTF %v, want true (-want +got):\n%s", m.Bodies[0].RTF, diff)
	}
}

// TestOutlookDetails reads appointments, tasks and contacts, whose properties are named in
// the file.
func TestOutlookDetails(t *testing.T) {
	const sets = "__nameid_version1.0/__substg1.0_00020102"
	text := func(s string) []byte { return []byte(strings.Join(strings.Split(s, ""), "\x00") + "\x00") }
	for class, want := range map[string]string{
		"IPM.Appointment": "Location: Quay 3\n\nStart: 2024-03-08 09:30 UTC",
		"IPM.Task":        "Due: 2024-03-08",
		"IPM.Contact":     "Phone (work): +47 1\n\nMail: bo@example.org",
		"IPM.Note":        "",
	} {
		properties := make([]byte, 32)
		for _, id := range []uint32{0x8001, 0x8002} {
			if (id == 0x8001) == (class == "IPM.Appointment") {
				properties = binary.LittleEndian.AppendUint32(properties, id<<16|0x40)
				properties = binary.LittleEndian.AppendUint32(properties, 0)
				properties = binary.LittleEndian.AppendUint64(properties, (11644473600+1709890200)*10_000_000)
			}
		}
		all := map[string][]byte{
			"__properties_version1.0": properties, "__substg1.0_001A001F": text(class), "__substg1.0_0037001F": text("Fares"),
			sets: []byte("\x02\x20\x06" + strings.Repeat("\x00", 13) + "\x03\x20\x06" + strings.Repeat("\x00", 13) +
				"\x04\x20\x06" + strings.Repeat("\x00", 13)),
			"__nameid_version1.0/__substg1.0_00030102": []byte("\x08\x82\x00\x00\x06\x00\x00\x00" + "\x0d\x82\x00\x00\x06\x00\x01\x00" +
				"\x05\x81\x00\x00\x08\x00\x02\x00" + "\x83\x80\x00\x00\x0a\x00\x03\x00" + "\x0d\x82\x00\x00\xfe\xff\x04\x00"),
		}
		switch class {
		case "IPM.Appointment":
			all["__substg1.0_8000001F"] = text("Quay 3")
		case "IPM.Contact":
			all["__substg1.0_3A08001F"], all["__substg1.0_8003001F"] = text("+47 1"), text("bo@example.org")
			all["__properties_version1.0"] = make([]byte, 32)
		}
		m, err := Outlook(packCompound(all))
		datatest.Must(t, err)
		got := ""
		for _, b := range m.Bodies {
			got += b.Text
		}
		if got != want {
			t.Errorf("%s: %q, want %q", class, got, want)
		}
	}
}

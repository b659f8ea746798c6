package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"ibid/data/datatest"
)

var must = datatest.Must

// A packed is a file to put into an archive.
type packed struct {
	name, text string
	mode       byte // of a tar entry; 0 is a file
}

func zipped(t testing.TB, files ...packed) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		part, err := w.Create(f.name)
		must(t, err)
		_, err = part.Write([]byte(f.text))
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

func tarred(t testing.TB, files ...packed) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: 0o644, Typeflag: f.mode, Format: tar.FormatPAX}
		if f.mode == 0 {
			h.Size = int64(len(f.text))
		} else {
			h.Linkname = f.text
		}
		must(t, w.WriteHeader(h))
		if f.mode == 0 {
			_, err := w.Write([]byte(f.text))
			must(t, err)
		}
	}
	must(t, w.Close())
	return out.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

// lined recognizes files with an entry per line: its name, a space, its text.
var lined = Holder{
	Is: func(name string) bool { return strings.HasSuffix(name, ".lines") },
	Files: func(_ string, data []byte, each func(string, []byte) error) error {
		for line := range strings.Lines(string(data)) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			if err := each(name, []byte(text)); err != nil {
				return err
			}
		}
		return nil
	},
}

// look returns a line for each entry, and one for the error.
func look(name string, data []byte, limits Limits) (lines []string) {
	entries, err := List(name, data, limits, lined, func(p string) bool { return !strings.HasSuffix(p, ".png") })
	for _, e := range entries {
		line := fmt.Sprintf("%s %d", e.Path, e.Size)
		if e.Skip != "" {
			line += " skip: " + e.Skip
		}
		if e.Failed != "" {
			line += " failed: " + e.Failed
		}
		if (e.Digest != "") != (e.Skip == "" && e.Failed == "" && !strings.HasSuffix(e.Path, ".png")) {
			line += " digest: " + e.Digest
		}
		lines = append(lines, line)
	}
	if err != nil {
		lines = append(lines, "error: "+err.Error())
	}
	return lines
}

func TestNames(t *testing.T) {
	data := tarred(t, packed{name: "a.md", text: "1"}, packed{name: "/etc/passwd", text: "2"}, packed{name: "../../up.md", text: "3"},
		packed{name: `C:\docs\b.md`, text: "4"},
		packed{name: "x/./y//z.md", text: "5"}, packed{name: ".git/config", text: "6"}, packed{name: "x/.hidden",
			text: "7"}, packed{name: "..", text: "8"},
		packed{name: "__MACOSX/a.md", text: "9"}, packed{name: "link.md", text: "/etc/passwd",
			mode: tar.TypeSymlink}, packed{name: "hard.md", text: "a.md", mode: tar.TypeLink},
		packed{name: "pipe.md", mode: tar.TypeFifo}, packed{name: "p.png", text: "picture"}, packed{name: "a.md",
			text: "again"}, packed{name: strings.Repeat("long/", 300) + "a.md", text: "10"})
	want := []string{
		"a.md 5", "etc/passwd 1", "up.md 1", "docs/b.md 1", "x/y/z.md 1",
		"link.md 0 skip: a symbolic link",
		"hard.md 0 skip: a hard link to a file in the archive, which is read under its first name",
		"pipe.md 0 skip: a device, pipe or socket, not a file", "p.png 7",
		strings.Repeat("long/", 40) + "… 2 failed: its name is longer than 1024 bytes",
	}
	datatest.Same(t, "members of a.tar", want, look("a.tar", data, DefaultLimits()))
	contents, err := Read("a.tar", data, DefaultLimits(), lined, []string{"a.md", "docs/b.md", "missing.md"})
	if err != nil || len(contents) != 2 || string(contents["a.md"]) != "again" || string(contents["docs/b.md"]) != "4" {
		t.Errorf("contents = %q, %v", contents, err)
	}
}

func TestKinds(t *testing.T) {
	plain := tarred(t, packed{name: "a.md", text: "One."})
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"a.tar", plain, "a.md 4"}, {"a.tar.gz", gzipped(t, plain), "a.md 4"}, {"A.TGZ", gzipped(t, plain), "a.md 4"},
		{"a.zip", zipped(t, packed{name: "a.md", text: "One."}), "a.md 4"},
		// The name implies another format than the content has.
		{"a.tgz", plain, "a.md 4"}, {"a.tar", gzipped(t, plain), "a.md 4"}, {"a.tar", zipped(t, packed{name: "a.md", text: "One."}),
			"a.md 4"},
		{"docs/notes.md.gz", gzipped(t, []byte("One.")), "notes.md 4"},
		{"b.zip", zipped(t, packed{name: "notes.md.gz", text: string(gzipped(t, []byte("One.")))}), "notes.md.gz/notes.md 4"},
		{"a.lines", []byte("a.md One.\n../b.md Two."), "a.md 4\nb.md 4"},
		{"c.zip", zipped(t, packed{name: "a.lines", text: "a.md One.\nb.lines c.md_\n"}),
			"a.lines 24\na.lines/a.md 4\na.lines/b.lines 5\na.lines/b.lines/c.md_ 0"},
		{"a.bz2", []byte("BZh no"), "a 0 failed: it is damaged: invalid compression level"},
		{"a.tar.xz", []byte("\xfd7zXZ"), "error: it is not an archive that can be read"},
		{".zip", nil, "error: it is not an archive that can be read"},
	} {
		if got := strings.Join(look(tt.name, tt.data, DefaultLimits()), "\n"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestDamage checks that damage in one file fails only that file.
func TestDamage(t *testing.T) {
	files := []packed{{name: "a.md", text: strings.Repeat("One. ", 100)}, {name: "b.md", text: "Two."}}
	data := zipped(t, files...)
	torn := bytes.Clone(data)
	torn[len("PK")+40] ^= 0xff // in the first file's data
	if got := look("a.zip", torn, DefaultLimits()); len(got) != 2 || !strings.Contains(got[0], "failed: it is damaged") ||
		got[1] != "b.md 4" {
		t.Errorf("damaged data: %q", got)
	}
	central := bytes.Index(data, []byte("PK\x01\x02"))
	for _, tt := range []struct {
		name   string
		at     int // in the central directory's first entry
		value  uint16
		reason string
	}{
		{"encrypted", 8, 9, "it is encrypted"},
		{"an unknown method", 10, 9, "its compression (method 9) is not supported"},
		{"a size that lies", 24, 3, "it is damaged"},
	} {
		changed := bytes.Clone(data)
		binary.LittleEndian.PutUint16(changed[central+tt.at:], tt.value)
		if got := look("a.zip", changed, DefaultLimits()); len(got) != 2 || !strings.Contains(got[0], "failed: "+tt.reason) ||
			got[1] != "b.md 4" {
			t.Errorf("%s: members = %q, want the reason %q, then b.md", tt.name, got, tt.reason)
		}
	}
	plain := tarred(t, files...)
	if got := look("a.tar", plain[:700], DefaultLimits()); len(got) != 2 ||
		!strings.Contains(got[0], "a.md 188 failed: it is damaged: it is cut off") || !strings.HasPrefix(got[1], "error: ") {
		t.Errorf("cut archive: %q", got)
	}
	// An archive that declares a huge file.
	huge := bytes.Clone(plain)
	copy(huge[124:], "77777777777\x00")
	sum := 0
	copy(huge[148:], "        ")
	for _, c := range huge[:512] {
		sum += int(c)
	}
	copy(huge[148:], fmt.Sprintf("%06o\x00 ", sum))
	if got := look("a.tar", huge, DefaultLimits()); len(got) != 2 || !strings.Contains(got[0], "it is damaged: it is cut off") {
		t.Errorf("huge size: %q", got)
	}
}

func TestLimits(t *testing.T) {
	limits := Limits{Entries: 10, Bytes: 4 << 20, Ratio: 100, SmallBytes: 1 << 20, Depth: 3, FileBytes: 3 << 20}
	many := make([]packed, 11)
	for i := range many {
		many[i] = packed{name: fmt.Sprintf("%d.md", i), text: "x"}
	}
	null := strings.Repeat("\x00", 2<<20)
	random := make([]byte, 1<<20)
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	nested := []byte("text")
	for i := range 6 {
		nested = zipped(t, packed{name: []string{"a.zip", "a.md"}[min(1, max(0, 1-i))], text: string(nested)})
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"many.zip", zipped(t, many...), "error: there are more than 10 files in it"},
		{"many.tar", tarred(t, many...), "error: there are more than 10 files in it"},
		{"ratio.zip", zipped(t, packed{name: "a.md", text: null}), "error: it unpacks to more than 100 times its size"},
		{"ratio.tgz", gzipped(t, tarred(t, packed{name: "a.md", text: null})), "error: it unpacks to more than 100 times its size"},
		{"ratio.gz", gzipped(t, []byte(null)), "error: it unpacks to more than 100 times its size"},
		{"in.zip", zipped(t, packed{name: "in.zip", text: string(zipped(t, packed{name: "a.md", text: null}))}),
			"error: it unpacks to more than 100 times its size"},
		{"unread.tgz", gzipped(t, tarred(t, packed{name: "a.png", text: null})), "error: it unpacks to more than 100 times its size"},
		{"bytes.tar", tarred(t, packed{name: "a.md", text: string(random)}, packed{name: "b.md", text: string(random)},
			packed{name: "c.md", text: string(random)}, packed{name: "d.md", text: string(random)}, packed{name: "e.md",
				text: string(random)}),
			"error: it unpacks to more than 4 MB"},
		{"large.tar", tarred(t, packed{name: "a.md", text: strings.Repeat(string(random), 3) + "x"}), "a.md 3145729"},
		{"nested.zip", nested, "a.zip/a.zip/a.zip 282 failed: nested more than 3 deep in archives or mails: unpack it"},
		{"held.zip", zipped(t, packed{name: "a.zip", text: string(zipped(t, packed{name: "a.zip",
			text: string(zipped(t, packed{name: "a.lines", text: "b.md One.\nc.md Two."}))}))}),
			"a.zip/a.zip/a.lines 19\na.zip/a.zip/a.lines/b.md 0 failed: nested more than 3 deep in archives or mails: unpack it; and 1 more"},
		{"two.zip", zipped(t, packed{name: "a.zip", text: string(nested)}, packed{name: "b.zip", text: string(nested)}),
			"a.zip/a.zip/a.zip 365 failed: nested more than 3 deep in archives or mails: unpack it; and 1 more"},
	} {
		if got := strings.Join(look(tt.name, tt.data, limits), "\n"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if strings.HasPrefix(tt.want, "error") {
			if _, err := Read(tt.name, tt.data, limits, lined, []string{"a.md", "10.md", "in.zip/a.md", "ratio"}); err == nil &&
				tt.name != "unread.tgz" && tt.name != "bytes.tar" {
				t.Errorf("%s: Read accepts it", tt.name)
			}
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte("PK\x03\x04"), uint8(0))
	f.Add(zipped(f, packed{name: "a.zip", text: string(zipped(f, packed{name: "b.md", text: "text"}))}), uint8(0))
	f.Add(tarred(f, packed{name: "a.md", text: "text"}, packed{name: "l", text: "a.md", mode: tar.TypeSymlink}), uint8(1))
	f.Add(gzipped(f, tarred(f, packed{name: "a.md", text: "text"})), uint8(2))
	f.Add(gzipped(f, []byte("text")), uint8(3))
	names := []string{"a.zip", "a.tar", "a.tgz", "a.md.gz", "a.bz2"}
	limits := Limits{Entries: 100, Bytes: 1 << 20, Ratio: 100, SmallBytes: 1 << 16, Depth: 3, FileBytes: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		name := names[int(kind)%len(names)]
		entries, _ := List(name, data, limits, lined, func(string) bool { return true })
		var paths []string
		for _, e := range entries {
			if strings.HasPrefix(e.Path, "/") || strings.Contains("/"+e.Path+"/", "/../") || e.Path == "" {
				t.Errorf("path = %q", e.Path)
			}
			paths = append(paths, e.Path)
		}
		contents, err := Read(name, data, limits, lined, paths)
		if err != nil {
			return
		}
		for _, e := range entries {
			if c, ok := contents[e.Path]; ok != (e.Digest != "") || ok && int64(len(c)) != e.Size {
				t.Errorf("%q: %d bytes, want %d", e.Path, len(c), e.Size)
			}
		}
	})
}

package ingest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"ibid/data/datatest"
)

// TestStories runs the stories in testdata/stories; see [datatest.Stories]. A new case is a
// new command or file.
//
//	write NAME TEXT …       writes files of the folder; of one that is named ":x", other files can be made
//	zip NAME MEMBER TEXT …  packs a file of the folder; also tgz. A text "@:x" is that of the file
//	gz NAME TEXT            packs one text
//	mail NAME SUBJECT TEXT [FILE TEXT] …, mbox NAME MAIL …
//	load NAME FILE          copies a file of testdata
//	link NAME, pipe NAME    make what is not a file
//	fresh NAME, mv NAME TO, rm NAME …
//	only [PATTERN] …, except [PATTERN] … choose the files that are synced
//	sync [NAME]             syncs the folder, or one file of it
//	wall NAME               makes a file or folder unreadable; "" none
//	prepared                tells how many documents were prepared since
//	opened                  tells which files were opened since
//	upload NAME TEXT [KEY=VALUE] …, reread NAME [KEY=VALUE] …, remove NAME
//	upsync [force]          syncs the uploads
//	limits FILE ALL         are those of the uploads in bytes
//	put NAME TEXT, move NAME TO, files, failures
//	docs [KEY] …            lists the stored documents, with metadata
//	lose ID, mark ID READER change what is stored
func TestStories(t *testing.T) {
	datatest.Stories(t, func(t *testing.T) func([]string) string {
		s := newStory(t)
		return func(args []string) string {
			s.out.Reset()
			s.run(args)
			return s.out.String()
		}
	})
}

// counted counts the files that are opened. The files below wall can be neither opened
// nor listed.
type counted struct {
	fstest.MapFS
	opened map[string]int
	mu     *sync.Mutex
	wall   *string
}

func (c counted) Open(name string) (fs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened[name]++
	if name == *c.wall {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return c.MapFS.Open(name)
}

func (c counted) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == *c.wall {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return c.MapFS.ReadDir(name)
}

// A story is a folder and uploads that share a sink.
type story struct {
	t       *testing.T
	out     strings.Builder
	folder  fstest.MapFS
	made    map[string][]byte // other files
	writes  int
	opened  counted
	ready   preparing
	sink    *memory
	syncer  *Syncer
	uploads *Uploads
	files   func() []string
}

func newStory(t *testing.T) *story {
	s := &story{t: t, folder: fstest.MapFS{}, made: map[string][]byte{}}
	s.uploads, s.sink, s.files = newUploads(t)
	s.ready = preparing{memory: s.sink}
	s.syncer = &Syncer{Sink: &s.ready}
	s.opened = counted{s.folder, map[string]int{}, new(sync.Mutex), new(string)}
	return s
}

func (s *story) print(lines ...string) {
	for _, l := range lines {
		s.out.WriteString(l + "\n")
	}
}

// message returns a mail with attached files, given by name and text.
func message(subject, text string, attached ...string) string {
	out := "From: Ada <ada@example.org>\nTo: Bo Ash <bo@example.org>, cy@example.org\nCc: =?utf-8?q?J=C3=B8rn?= <j@example.org>\n" +
		"Subject: " + subject + "\nDate: Fri, 8 Mar 2024 09:00:00 +0100\nContent-Type: multipart/mixed; " +
		"boundary=b\n\n--b\n\n" + text + "\n"
	for f := range slices.Chunk(attached, 2) {
		out += "--b\nContent-Type: application/octet-stream\nContent-Disposition: attachment; filename=\"" + f[0] +
			"\"\nContent-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString([]byte(f[1])) + "\n"
	}
	return out + "--b--\n"
}

// write writes a file with a time in the past, a second after that of the previous file.
func (s *story) write(name string, data []byte) {
	if name[0] == ':' {
		s.made[name] = data
		return
	}
	s.writes++
	s.folder[name] = &fstest.MapFile{Data: data, Mode: 0o644, ModTime: time.Now().Add(-time.Hour + time.Duration(s.writes)*time.Second)}
}

func (s *story) run(args []string) {
	command, args := args[0], args[1:]
	for i, a := range args {
		if strings.HasPrefix(a, "@") {
			args[i] = string(s.made[a[1:]])
		}
	}
	switch command {
	case "write":
		for pair := range slices.Chunk(args, 2) {
			s.write(pair[0], []byte(pair[1]))
		}
	case "zip":
		s.write(args[0], zipOf(s.t, members(args[1:]...)...))
	case "tgz":
		s.write(args[0], tarOf(s.t, members(args[1:]...)...))
	case "gz":
		s.write(args[0], gzipped(s.t, args[1]))
	case "mail":
		s.write(args[0], []byte(message(args[1], args[2], args[3:]...)))
	case "mbox":
		const from = "From ada@example.org Fri Mar  8 09:00:00 2024\n"
		s.write(args[0], []byte(from+strings.Join(args[1:], "\n"+from)))
	case "load":
		data, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(args[1])))
		must(s.t, err)
		s.write(args[0], data)
	case "link":
		s.folder[args[0]] = &fstest.MapFile{Data: []byte("elsewhere"), Mode: fs.ModeSymlink}
	case "pipe":
		s.folder[args[0]] = &fstest.MapFile{Mode: fs.ModeNamedPipe}
	case "fresh":
		s.folder[args[0]].ModTime = time.Now()
	case "mv":
		s.folder[args[1]] = s.folder[args[0]]
		delete(s.folder, args[0])
	case "rm":
		for _, name := range args {
			delete(s.folder, name)
		}
	case "only":
		s.syncer.Include = args
	case "except":
		s.syncer.Exclude = args
	case "sync":
		s.sync(args)
	default:
		s.look(command, args)
	}
}

// look runs a command about the input or the result of a sync.
func (s *story) look(command string, args []string) {
	switch command {
	case "opened":
		names := strings.Join(slices.Sorted(maps.Keys(s.opened.opened)), " ")
		s.print(fmt.Sprintf("%s; %d are remembered", names, len(s.syncer.remembered.files)))
		clear(s.opened.opened)
	case "wall":
		*s.opened.wall = args[0]
	case "prepared":
		s.print(fmt.Sprint(s.ready.prepared.Swap(0)))
	case "docs":
		s.docs(args)
	case "lose":
		delete(s.sink.docs, args[0])
	case "mark":
		s.sink.docs[args[0]].Meta[ReaderKey] = strings.Replace(args[1], "current", readerName(), 1)
	default:
		s.upload(command, args)
	}
}

// sync syncs the folder, or one file of it, and checks that reported documents are stored.
func (s *story) sync(args []string) {
	if len(args) == 1 {
		c, err := s.syncer.SyncFile(s.t.Context(), harbour, s.opened, args[0])
		if err == nil && (c.Document != "harbour/"+c.Path || c.Root != "harbour" || c.Done != 1 || c.Total != 1) {
			s.t.Errorf("change of one file = %+v, want its document and root, and 1 of 1", c)
		}
		s.printChange(c, err)
		return
	}
	s.sink.replaced = nil
	lines, err := syncAll(s.t, s.syncer, s.opened)
	if err != nil {
		lines = append(lines, "error: "+err.Error())
	}
	s.print(lines...)
	stored := slices.DeleteFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "added ") && !strings.HasPrefix(l, "updated ") })
	if len(s.sink.replaced) != len(stored) {
		s.t.Errorf("stored = %q", s.sink.replaced)
	}
}

func (s *story) printChange(c Change, err error) {
	line := changeLine(c)
	if c.Chunks > 0 {
		line += fmt.Sprintf(" (chunks: %d)", c.Chunks)
	}
	if err != nil {
		line = "error: " + err.Error()
	}
	for kind, is := range map[string]error{"no file": fs.ErrNotExist, "invalid": fs.ErrInvalid} {
		if errors.Is(err, is) {
			line = "error: " + kind
		}
	}
	if skip := (*SkipError)(nil); errors.As(err, &skip) {
		line, _, _ = strings.Cut("not read: "+skip.Reason, ": Ibid reads") // a list of formats
	}
	if unreadable := (*UnreadableError)(nil); errors.As(err, &unreadable) {
		line = "unreadable: " + unreadable.Reason
	}
	for kind, is := range map[string]error{"path": ErrUploadPath, "name": ErrUploadName, "size": ErrUploadSize} {
		if errors.Is(err, is) {
			line = kind + ": " + err.Error()
		}
	}
	s.print(line)
}

// upload runs a command on the uploads.
func (s *story) upload(command string, args []string) {
	u, ctx := s.uploads, s.t.Context()
	given := func(args []string) map[string]string {
		meta := map[string]string{}
		for _, a := range args {
			key, value, _ := strings.Cut(a, "=")
			meta[key] = value
		}
		return meta
	}
	switch command {
	case "upload":
		s.printChange(u.Add(ctx, args[0], strings.NewReader(args[1]), given(args[2:])))
	case "reread":
		s.printChange(u.Reread(ctx, args[0], given(args[1:])))
	case "remove":
		if err := u.Remove(ctx, args[0]); err != nil {
			s.printChange(Change{}, err)
		}
	case "upsync":
		u.Syncer.Force = slices.Contains(args, "force")
		_, err := u.Sync(ctx)
		must(s.t, err)
	case "limits":
		_, err := fmt.Sscan(strings.Join(args, " "), &u.MaxBytes, &u.MaxTotal)
		must(s.t, err)
	case "put":
		must(s.t, u.Dir.WriteFile(args[0], []byte(args[1]), 0o600))
	case "move":
		must(s.t, u.Dir.Rename(args[0], args[1]))
	case "files":
		size, err := u.sizeWithout("")
		must(s.t, err)
		s.print(fmt.Sprintf("%s: %d bytes", strings.Join(s.files(), " "), size))
	case "failures":
		for _, c := range u.Failures() {
			s.printChange(c, nil)
		}
	default:
		s.t.Fatalf("unknown command %q", command)
	}
}

// docs lists the stored documents with their values of the given keys.
func (s *story) docs(keys []string) {
	for _, id := range slices.Sorted(maps.Keys(s.sink.docs)) {
		d := s.sink.docs[id]
		checkDocument(s.t, d)
		line := id
		for _, key := range keys {
			value := d.Meta[key]
			switch key {
			case "title":
				value = d.Title
			case "text":
				value = strconv.Quote(d.Text)
			case "former":
				value = strings.Join(FormerIDs(d.Meta), " ")
			case "read":
				value = strings.Replace(d.Meta[ReaderKey], readerName(), "current", 1)
			case "chunks":
				var at []string
				for _, c := range s.sink.chunks[id] {
					at = append(at, c.ID+" "+c.Anchor+" "+c.Heading)
				}
				value = strings.Join(at, ", ")
			}
			line += " | " + value
		}
		s.print(strings.TrimRight(line, " "))
	}
}

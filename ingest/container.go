package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/ingest/archive"
	"ibid/ingest/mail"
	"ibid/ingest/office"
	"ibid/ingest/pdf"
)

// A container is a file that a sync treats as a folder: an archive, or a mail or other document
// with files in it.
type container struct {
	file   file
	digest string // of its bytes when listed
	wanted []file // files in it, in reading order

	mu      sync.Mutex
	content map[string][]byte // by path, of extracted files not yet read
}

// Limits of one extraction. Each extraction reads a compressed archive from its start.
const (
	batchBytes = 16 << 20
	batchFiles = 1000
)

// isContainer reports whether a file of this name may contain files.
func isContainer(name string) bool { return archive.Is(name) || isHolder(name) }

// A containerRequest asks for the files in a container.
type containerRequest struct {
	FileBytes int64    // size of the largest file that is read
	Paths     []string // of the files to extract; nil to list all
}

// answer lists the files in a container, or concatenates their contents in the reply's text, one
// section per file with its path as anchor.
func (q containerRequest) answer(name string, data []byte, reply *childReply) (err error) {
	limits, holders := archive.DefaultLimits(), archive.Holder{Is: isHolder, Files: eachAttachment}
	limits.FileBytes = q.FileBytes
	if q.Paths == nil {
		readable := func(name string) bool { _, ok := formatOf(name); return ok }
		reply.Entries, err = archive.List(name, data, limits, holders, readable)
		return err
	}
	contents, err := archive.Read(name, data, limits, holders, q.Paths)
	var all strings.Builder
	for _, p := range q.Paths {
		if content, ok := contents[p]; ok {
			reply.Sections = append(reply.Sections, Section{Anchor: p, Start: all.Len(), End: all.Len() + len(content)})
			all.Write(content)
		}
	}
	reply.text = all.String()
	return err
}

// askContainer has a child process list the files in a container, or extract some. After an error,
// the reply holds the files before it.
func (r *Reader) askContainer(ctx context.Context, name string, data []byte, paths []string) (childReply, error) {
	q := containerRequest{FileBytes: r.maxBytes(), Paths: paths}
	reply, err := r.askChild(ctx, childRequest{Format: "archive", Path: name, Container: &q}, data)
	if err == nil {
		err = reply.fill(new(Document))
	}
	return reply, err
}

// listContainer lists the files in a container unless it is unchanged. digest is the digest of the
// container's bytes.
func (s *folderSync) listContainer(ctx context.Context, f file) (entries []archive.Entry, digest string, err error) {
	begun, before := time.Now(), s.remembered.find(s.root, f)
	if before.listed && !s.Force {
		return before.entries, before.digest, nil
	}
	data, err := s.readBytes(ctx, f)
	if err != nil {
		return nil, "", err
	}
	digest = digestOf(data)
	if archive.Is(f.path) || mayHold(f.path, data) {
		reply, err := s.reader.askContainer(ctx, f.path, data, nil)
		if err != nil {
			return reply.Entries, digest, err
		}
		entries = reply.Entries
	}
	s.remembered.update(s.root, f, begun, func(st *stamp) { st.listed, st.entries, st.digest = true, entries, digest })
	return entries, digest, nil
}

// mayHold reports whether a document may have files in it. It is quick and errs on the side of
// true.
func mayHold(name string, data []byte) bool {
	switch f, _ := formatOf(name); f.name {
	case "outlook":
		return true
	case "pdf": // an attached file, or an object stream that may contain one
		return bytes.Contains(data, []byte("/EF")) || bytes.Contains(data, []byte("/ObjStm"))
	case "mail", "mbox": // attachments have names or are mails
		lower := bytes.ToLower(data)
		return slices.ContainsFunc([]string{"name=", "name*", "attach", "message/", "application/", "text/calendar"}, func(sign string) bool {
			return bytes.Contains(lower, []byte(sign))
		})
	}
	return office.HoldsFiles(data)
}

// openContainers adds the files in containers to the files of the sync.
func (s *folderSync) openContainers(ctx context.Context) error {
	var files []file
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for _, f := range s.listing.files {
		if f.err != nil || !isContainer(f.path) {
			mu.Lock()
			files = append(files, f)
			mu.Unlock()
			continue
		}
		group.Go(func() error {
			inside, broken := s.openContainer(ctx, f)
			mu.Lock()
			defer mu.Unlock()
			files, s.listing.broken = append(files, inside...), append(s.listing.broken, broken...)
			return ctx.Err()
		})
	}
	err := group.Wait()
	s.listing.files = files
	return err
}

// openContainer returns the files in a container, and the paths below which stored documents are
// kept.
func (s *folderSync) openContainer(ctx context.Context, f file) (files []file, broken []string) {
	holder := isHolder(f.path)
	if holder {
		files = append(files, f)
	}
	entries, digest, err := s.listContainer(ctx, f)
	c := &container{file: f, digest: digest, content: make(map[string][]byte)}
	for _, e := range entries {
		in := file{path: f.path + "/" + e.Path, size: e.Size, container: c, digest: e.Digest}
		if f.rules.matchBelow(f.path, in.path) || s.listing.exclude.matchBelow(f.path, in.path) || !s.listing.isIncluded(in.path) {
			continue
		}
		switch {
		case e.Failed != "":
			in.err = errors.New(e.Failed)
		case e.Skip != "":
			in.err = &SkipError{Reason: e.Skip}
		default:
			in.err = s.reader.refuse(in.path, in.size)
		}
		if e.Failed != "" && e.Archive {
			broken = append(broken, in.path)
		}
		if in.err == nil && (s.Force || !s.isStored(in.path, in.digest)) {
			c.wanted = append(c.wanted, in)
		}
		files = append(files, in)
	}
	slices.SortFunc(c.wanted, byPath)
	switch {
	case err == nil && len(files) == 0:
		f.err = &SkipError{Reason: "an archive without files"}
		files = append(files, f)
	case err != nil && holder:
		files[0].partial = "the files in it could not be read: " + err.Error()
		broken = append(broken, f.path)
	case err != nil:
		f.err = fmt.Errorf("%w; its stored documents are kept", err)
		files, broken = append(files, f), append(broken, f.path)
	}
	return files, broken
}

// syncContainer syncs a container and the files in it, and returns one change for all of them.
func (s *folderSync) syncContainer(ctx context.Context, f file) (Change, error) {
	s.known = maps.Clone(s.known)
	maps.DeleteFunc(s.known, func(p string, _ Stored) bool { return p != f.path && !strings.HasPrefix(p, f.path+"/") })
	stored := len(s.known) > 0
	s.listing.files, s.listing.broken = s.openContainer(ctx, f)
	slices.SortFunc(s.listing.files, byPath)
	whole := Change{Document: s.root.Name + "/" + f.path, Root: s.root.Name, Path: f.path, Done: 1, Total: 1}
	counts := make(map[Action]int)
	var reasons []string
	for c, err := range s.changes(ctx) {
		if err != nil {
			return Change{}, err
		}
		if counts[c.Action]++; c.Reason != "" && len(reasons) < 5 {
			if c.Path != f.path {
				c.Reason = strings.TrimPrefix(c.Path, f.path+"/") + ": " + c.Reason
			}
			reasons = append(reasons, c.Reason)
		}
		whole.Chunks, whole.Pages = whole.Chunks+c.Chunks, whole.Pages+c.Pages
	}
	if stored {
		counts[Updated] += counts[Added] + counts[Removed]
	}
	for _, a := range []Action{Skipped, Failed, Unchanged, Added, Updated} { // the last action that occurs
		if counts[a] > 0 || a == Skipped {
			whole.Action = a
		}
	}
	whole.Reason = strings.Join(reasons, "; ")
	return whole, nil
}

// extract returns the bytes of a file in a container and forgets them. Files are read roughly in
// the order of c.wanted, so earlier ones are already extracted.
func (s *folderSync) extract(ctx context.Context, f file) ([]byte, error) {
	c := f.container
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.content[f.path] == nil && len(c.wanted) > 0 && c.wanted[0].path <= f.path {
		if err := s.unpack(ctx, c); err != nil {
			return nil, err
		}
	}
	data, ok := c.content[f.path]
	if !ok {
		return nil, errors.New("it cannot be extracted from its archive")
	}
	delete(c.content, f.path)
	return data, nil
}

// unpack extracts the next batch of wanted files from their container.
func (s *folderSync) unpack(ctx context.Context, c *container) error {
	var paths []string
	size := int64(0)
	for _, f := range c.wanted[:min(len(c.wanted), batchFiles)] {
		if size += f.size; size > batchBytes && len(paths) > 0 {
			break
		}
		paths = append(paths, strings.TrimPrefix(f.path, c.file.path+"/"))
	}
	data, err := s.readBytes(ctx, c.file)
	if err != nil {
		return fmt.Errorf("reading its archive: %w", err)
	}
	if digestOf(data) != c.digest {
		return errors.New("its archive changed while it was being read: ingest the folder again")
	}
	reply, err := s.reader.askContainer(ctx, c.file.path, data, paths)
	if err != nil {
		return fmt.Errorf("extracting it from its archive: %w", err)
	}
	for _, section := range reply.Sections {
		if section.Start < 0 || section.End < section.Start || section.End > len(reply.text) {
			return errors.New("the reader of its archive sent an invalid reply")
		}
		c.content[c.file.path+"/"+section.Anchor] = []byte(reply.text[section.Start:section.End])
	}
	c.wanted = c.wanted[len(paths):]
	return nil
}

// isHolder reports whether a file of this name may have attached or embedded files.
func isHolder(name string) bool {
	f, ok := formatOf(name)
	return ok && f.hasFiles
}

// eachAttachment calls each with every attachment of a message or mailbox, or every file embedded
// in another document. Each message of a mailbox has its own folder. Names are unique. It ignores
// damage, which reading the document reports.
func eachAttachment(name string, data []byte, each func(name string, data []byte) error) error {
	taken := make(map[string]int)
	add := func(name string, data []byte) error {
		if taken[name]++; taken[name] > 1 {
			ending := path.Ext(name)
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ending), taken[name], ending)
		}
		return each(name, data)
	}
	attachments := func(folder string, m *mail.Message) (err error) {
		for i := 0; i < len(m.Files) && err == nil; i++ {
			err = add(folder+m.Files[i].Name, m.Files[i].Data)
		}
		return err
	}
	var err error
	switch f, _ := formatOf(name); f.name {
	case "outlook":
		if m, damage := mail.Outlook(data); damage == nil {
			err = attachments("", m)
		}
	case "mail":
		err = attachments("", mail.Read(data))
	case "mbox":
		messages := mail.Mailbox(data)
		for i := 0; i < len(messages) && err == nil; i++ {
			err = attachments(fmt.Sprintf("%d/", i+1), mail.Read(messages[i]))
		}
	case "pdf":
		err = pdf.Files(data, add)
	default:
		err = office.Files(data, add)
	}
	return err
}

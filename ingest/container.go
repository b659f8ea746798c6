package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"ibid/ingest/archive"
	"ibid/ingest/mail"
	"ibid/ingest/office"
	"ibid/ingest/pdf"
)

// A container is a file that is a folder to a sync: an archive, or a mail or
// another document with the files in it.
type container struct {
	file    file
	digest  string         // of the bytes that were listed
	batches [][]string     // paths in it of the files to read
	batchOf map[string]int // by path

	mu      sync.Mutex
	done    map[int]bool      // batches that were extracted
	content map[string][]byte // of extracted files that are not yet read
}

// Files are extracted in batches, because a compressed archive is read from its
// start for each of them.
const (
	batchBytes = 16 << 20
	batchFiles = 1000
)

// isContainer reports whether a file of this name holds files.
func isContainer(name string) bool { return archive.Is(name) || isHolder(name) }

// holders are documents that hold files too, also inside archives.
func holders() archive.Holder { return archive.Holder{Is: isHolder, Files: attachedTo} }

// insides are the formats by which children list and extract containers. The
// path of their document is a [containerRequest].
func insides() []fileFormat {
	return []fileFormat{
		{name: "archive", read: listContainer, binary: true, isolated: true},
		{name: "archive content", read: readContainer, binary: true, isolated: true},
	}
}

// A containerRequest says what to list or extract.
type containerRequest struct {
	Name      string
	FileBytes int64    // of the largest file that is read
	Paths     []string // of the files to extract
}

func (q containerRequest) limits() archive.Limits {
	limits := archive.DefaultLimits()
	limits.FileBytes = q.FileBytes
	return limits
}

// readContainer concatenates the files in the document's text. Each is a section
// with its path as anchor.
func readContainer(doc *Document, data []byte) error {
	var q containerRequest
	if err := json.Unmarshal([]byte(doc.Path), &q); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	contents, err := archive.Read(q.Name, data, q.limits(), holders(), q.Paths)
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, p := range q.Paths {
		if content, ok := contents[p]; ok {
			doc.Sections = append(doc.Sections, Section{Anchor: p, Start: all.Len(), End: all.Len() + len(content)})
			all.Write(content)
		}
	}
	doc.Text = all.String()
	return nil
}

// ask has a child list or extract a container.
func (r *Reader) ask(ctx context.Context, format string, q containerRequest, data []byte) (*Document, error) {
	q.FileBytes = r.maxBytes()
	request, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	doc := &Document{Path: string(request)}
	return doc, r.readInChild(ctx, format, doc, data)
}

// openContainers adds the files in each container to those of the run. One that
// cannot be listed is a failure.
func (s *folderSync) openContainers(ctx context.Context) error {
	inFolder := make(map[string]bool, len(s.files))
	for _, f := range s.files {
		inFolder[f.path] = true
	}
	forget(&s.remembered, &s.remembered.lists, s.root.Name, func(path string) bool { return !inFolder[path] })
	var files []file
	inside := make([][]file, len(s.files))
	broken := make([][]string, len(s.files))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, f := range s.files {
		if f.err != nil || !isContainer(f.path) {
			files = append(files, f)
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			inside[i], broken[i] = s.open(ctx, f)
		})
	}
	wg.Wait()
	for i := range inside {
		files = append(files, inside[i]...)
		s.broken = append(s.broken, broken[i]...)
	}
	s.files = files
	return ctx.Err()
}

// open returns the files in a container, and the paths below which stored
// documents are kept.
func (s *folderSync) open(ctx context.Context, f file) (files []file, broken []string) {
	holder := isHolder(f.path)
	if holder {
		files = append(files, f)
	}
	fail := func(err error) ([]file, []string) {
		if holder {
			files[0].partial = "the files in it are not read: " + err.Error()
			return files, append(broken, f.path)
		}
		f.err = fmt.Errorf("%w; its stored documents are kept", err)
		return append(files, f), append(broken, f.path)
	}
	list, digest, err := s.list(ctx, f)
	if err != nil {
		return fail(err)
	}
	c := &container{file: f, digest: digest}
	var wanted []file
	for _, e := range list.Entries {
		in := file{path: f.path + "/" + e.Path, size: e.Size, in: c, digest: e.Digest}
		if ignoredBelow(f.rules, f.path, in.path) || ignoredBelow(s.exclude, f.path, in.path) || !s.included(in.path) {
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
			wanted = append(wanted, in)
		}
		files = append(files, in)
	}
	c.batch(wanted)
	if list.Failed != "" {
		return fail(errors.New(list.Failed))
	}
	if len(files) == 0 {
		f.err = &SkipError{Reason: "an archive without files"}
		files = append(files, f)
	}
	return files, broken
}

// syncContainer syncs one container with the files in it. It returns one change
// for all of them.
func (s *folderSync) syncContainer(ctx context.Context, f file) (Change, error) {
	s.known = maps.Clone(s.known)
	maps.DeleteFunc(s.known, func(p string, _ Stored) bool { return p != f.path && !strings.HasPrefix(p, f.path+"/") })
	stored := len(s.known) > 0
	s.files, s.broken = s.open(ctx, f)
	slices.SortFunc(s.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	whole := Change{Document: s.root.Name + "/" + f.path, Root: s.root.Name, Path: f.path, Done: 1, Total: 1}
	counts := make(map[Action]int)
	var reasons []string
	add := func(c Change, err error) bool {
		if err != nil {
			return false
		}
		if counts[c.Action]++; c.Reason != "" && len(reasons) < 5 {
			if c.Path != f.path {
				c.Reason = strings.TrimPrefix(c.Path, f.path+"/") + ": " + c.Reason
			}
			reasons = append(reasons, c.Reason)
		}
		whole.Chunks, whole.Pages = whole.Chunks+c.Chunks, whole.Pages+c.Pages
		return true
	}
	for _, in := range s.files {
		if err := ctx.Err(); err != nil {
			return Change{}, err
		}
		c, err := s.apply(ctx, in, s.readFile(ctx, in))
		if !add(c, err) {
			return Change{}, err
		}
	}
	var failed error
	s.remove(ctx, func(c Change, err error) bool { failed = err; return add(c, err) })
	if failed != nil {
		return Change{}, failed
	}
	switch {
	case counts[Added]+counts[Updated]+counts[Removed] > 0 && stored:
		whole.Action = Updated
	case counts[Added] > 0:
		whole.Action = Added
	case counts[Unchanged] > 0:
		whole.Action = Unchanged
	case counts[Failed] > 0:
		whole.Action = Failed
	default:
		whole.Action = Skipped
	}
	whole.Reason = strings.Join(reasons, "; ")
	return whole, nil
}

// ignoredBelow reports whether the rules exclude a file in a container, or a
// folder of the container that it is in.
func ignoredBelow(rules ignoreRules, container, p string) bool {
	if rules.ignored(p, false) {
		return true
	}
	for dir := path.Dir(p); len(dir) > len(container); dir = path.Dir(dir) {
		if rules.ignored(dir, true) {
			return true
		}
	}
	return false
}

// batch divides the files into those that are extracted together, in the order
// in which they are read.
func (c *container) batch(files []file) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	c.batchOf, c.done, c.content = make(map[string]int), make(map[int]bool), make(map[string][]byte)
	size := int64(batchBytes) + 1
	for _, f := range files {
		last := len(c.batches) - 1
		if size += f.size; size > batchBytes || len(c.batches[last]) == batchFiles {
			c.batches = append(c.batches, nil)
			last, size = last+1, f.size
		}
		name := strings.TrimPrefix(f.path, c.file.path+"/")
		c.batches[last] = append(c.batches[last], name)
		c.batchOf[name] = last
	}
}

// extract returns the bytes of a file in a container, once.
func (s *folderSync) extract(ctx context.Context, f file) ([]byte, error) {
	c := f.in
	name := strings.TrimPrefix(f.path, c.file.path+"/")
	c.mu.Lock()
	defer c.mu.Unlock()
	if batch := c.batchOf[name]; !c.done[batch] {
		if err := s.unpack(ctx, c, c.batches[batch]); err != nil {
			return nil, err
		}
		c.done[batch] = true
	}
	data, ok := c.content[name]
	if !ok {
		return nil, errors.New("it cannot be extracted from its archive")
	}
	delete(c.content, name)
	return data, nil
}

// unpack extracts files from their container.
func (s *folderSync) unpack(ctx context.Context, c *container, paths []string) error {
	data, err := s.bytes(ctx, c.file)
	if err != nil {
		return fmt.Errorf("reading its archive: %w", err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != c.digest {
		return errors.New("its archive changed meanwhile: ingest the folder again")
	}
	doc, err := s.reader.ask(ctx, "archive content", containerRequest{Name: c.file.path, Paths: paths}, data)
	if err != nil {
		return fmt.Errorf("extracting it from its archive: %w", err)
	}
	for _, section := range doc.Sections {
		if section.Start < 0 || section.End < section.Start || section.End > len(doc.Text) {
			return errors.New("the reader of its archive gave no valid reply")
		}
		c.content[section.Anchor] = []byte(doc.Text[section.Start:section.End])
	}
	return nil
}

// isHolder reports whether a file of this name is a document that may have other
// files attached or embedded.
func isHolder(name string) bool {
	f, ok := formatOf(name)
	return ok && f.holds
}

// attachedTo calls each with the attachments of a message, or of each message of
// a mailbox in a folder of its own, and with the files embedded in another
// document. Names are made distinct. Damage is reported by reading the document.
func attachedTo(name string, data []byte, each func(name string, data []byte) error) error {
	each = distinct(each)
	switch f, _ := formatOf(name); f.name {
	case "outlook":
		m, err := mail.Outlook(data)
		if err != nil {
			return nil
		}
		return attachments("", m, each)
	case "mail":
		return attachments("", mail.Read(data), each)
	case "mbox":
		for i, message := range mail.Mailbox(data) {
			if err := attachments(fmt.Sprintf("%d/", i+1), mail.Read(message), each); err != nil {
				return err
			}
		}
		return nil
	case "pdf":
		return pdf.Files(data, each)
	}
	return office.Files(data, each)
}

// distinct numbers the names that were used before.
func distinct(each func(name string, data []byte) error) func(name string, data []byte) error {
	taken := make(map[string]int)
	return func(name string, data []byte) error {
		if taken[name]++; taken[name] > 1 {
			ending := path.Ext(name)
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ending), taken[name], ending)
		}
		return each(name, data)
	}
}

func attachments(folder string, m *mail.Message, each func(name string, data []byte) error) error {
	for _, f := range m.Files {
		if err := each(folder+f.Name, f.Data); err != nil {
			return err
		}
	}
	return nil
}

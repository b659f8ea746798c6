package ingest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Uploads is the program's own folder of uploaded files. They are read like the files of any other
// folder.
type Uploads struct {
	Dir    *os.Root
	Root   Root // "uploads"
	Syncer *Syncer
	// MaxBytes limits each file; 0 means [DefaultMaxBytes]. MaxTotal limits all files together; 0
	// means [DefaultMaxUploads].
	MaxBytes, MaxTotal int64
	// Files, if not nil, stores the files where all servers of a store can read them. Dir then
	// holds only files being received.
	Files Files
	// All returns the uploads of all folders, which share MaxTotal.
	All func() []*Uploads
	// Lock locks an open file until it is closed, exclusively or shared, without waiting.
	Lock func(f *os.File, exclusive bool) error

	mu sync.Mutex // held while a document is stored or removed

	failuresMu sync.Mutex
	failures   []Change
}

// Files stores uploaded files by ID.
type Files interface {
	// Hold waits until no other process holds the ID, and holds it until release is called. The
	// returned context is cancelled only if the hold is lost.
	Hold(ctx context.Context, id string) (held context.Context, release func(), err error)
	// Put stores a received file durably. The current file of the ID remains until FinishPut.
	Put(ctx context.Context, id string, content io.ReadSeeker) error
	// FinishPut replaces the current file of the ID with the received one if keep is set. Otherwise
	// it discards the received one.
	FinishPut(ctx context.Context, id string, keep bool) error
	// Read returns the current or the received file. The error wraps [fs.ErrNotExist] if it does
	// not exist.
	Read(ctx context.Context, id string, received bool) ([]byte, error)
	// IDs lists the IDs of all files, or of the received files that FinishPut has not handled yet.
	IDs(ctx context.Context, received bool) ([]string, error)
	// Remove deletes the current and the received file, if any.
	Remove(ctx context.Context, id string) error
	// Size returns the size in bytes of all files except one.
	Size(ctx context.Context, without string) (int64, error)
}

// DefaultMaxUploads is the default limit of all uploads together, in bytes.
const DefaultMaxUploads = 4 << 30

// Errors of an upload. Further errors are a [*SkipError] for an unsupported format and an
// [*UnreadableError].
var (
	ErrUploadPath  = errors.New("the path of the file cannot be used")
	ErrUploadName  = errors.New("the name of the file cannot be used: give it letters or digits, and the extension of its format")
	ErrUploadSize  = errors.New("the file is too large")
	ErrUploadSpace = errors.New("the space for uploads is full: delete some uploads")
	ErrCollection  = errors.New("a collection with uploads cannot have this name: use letters, digits, '-' and '_', and no name that " +
		"differs from another only in upper and lower case")
)

// ErrElsewhere means that the file is on another server of the same store.
var ErrElsewhere = errors.New("the file of this document is not on this server, " +
	"but on the one that reads its folder")

// ErrNotUploaded means that a document is not from an upload.
var ErrNotUploaded = errors.New("the document was not uploaded: change or delete the file in its folder")

// ErrUploadsMissing means that uploads have stored documents but no files.
var ErrUploadsMissing = errors.New("the folder of the uploads is missing or empty, and their documents remain: " +
	"put the folder back and start the server again, or remove the documents with 'ibid forget'")

// An UnreadableError is the reason why a file can't be read.
type UnreadableError struct{ Reason string }

func (e *UnreadableError) Error() string { return e.Reason }

const (
	// uploadPrefix is the prefix of the hidden name of an upload not yet stored, which a sync
	// ignores. The process that receives the upload holds a lock on it.
	uploadPrefix = ".upload-"
	maxNameBytes = 200
	// Limits of a path: its folders and its length.
	maxUploadFolders = 16
	maxPathBytes     = 1000
)

// Sync updates the store from the files, or finishes the uploads in Files. It removes the files of
// other interrupted uploads. It returns the number of documents removed.
func (u *Uploads) Sync(ctx context.Context) (removed int, err error) {
	if err := u.removeInterrupted(); err != nil {
		return 0, err
	}
	if u.Files != nil {
		ids, err := u.Files.IDs(ctx, true)
		for _, id := range ids {
			if name, own := strings.CutPrefix(id, u.id("")); own && err == nil {
				err = u.finish(ctx, name)
			}
		}
		if err != nil {
			return 0, fmt.Errorf("finishing interrupted uploads: %w", err)
		}
		return 0, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var failures []Change
	for c, err := range u.Syncer.Sync(ctx, u.Root, u.Dir.FS()) {
		if err != nil {
			return removed, fmt.Errorf("reading the uploads: %w", err)
		}
		if c.Action == Removed {
			removed++
		}
		if c.Action == Skipped || c.Action == Failed {
			failures = append(failures, c)
		}
	}
	u.failuresMu.Lock()
	defer u.failuresMu.Unlock()
	u.failures = failures
	return removed, nil
}

// OpenUploads opens the folder of uploads at a path. It creates the folder durably if necessary.
// The parent folder must exist.
func OpenUploads(path string) (*os.Root, error) {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		var above *os.Root
		if above, err = os.OpenRoot(filepath.Dir(path)); err == nil {
			err = errors.Join(syncAbove(above, "."), above.Close())
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("creating the folder of the uploads: %w", err)
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the uploads: %w", err)
	}
	return dir, nil
}

// removeInterrupted removes the files of uploads that no process holds a lock on.
func (u *Uploads) removeInterrupted() error {
	entries, err := fs.ReadDir(u.Dir.FS(), ".")
	if err != nil {
		return fmt.Errorf("listing the uploads: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), uploadPrefix) {
			continue
		}
		f, err := u.Dir.OpenFile(e.Name(), os.O_RDWR, 0)
		if err == nil {
			if u.Lock(f, true) == nil {
				err = u.Dir.Remove(e.Name())
			}
			err = errors.Join(err, f.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the interrupted upload %s: %w", e.Name(), err)
		}
	}
	return nil
}

// syncAbove makes the names in the folder of a path and in its parents durable. On Windows, syncing
// a file does that.
func syncAbove(dir *os.Root, name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for {
		name = path.Dir(name)
		f, err := dir.Open(name)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil || name == "." {
			return err
		}
	}
}

// Failures returns the files that the last Sync could not read and that have not changed since.
func (u *Uploads) Failures() []Change {
	u.failuresMu.Lock()
	defer u.failuresMu.Unlock()
	return slices.Clone(u.failures)
}

// clearFailure removes a file, and the files in it, from the failures.
func (u *Uploads) clearFailure(name string) {
	u.failuresMu.Lock()
	defer u.failuresMu.Unlock()
	u.failures = slices.DeleteFunc(u.failures, func(c Change) bool { return c.Path == name || strings.HasPrefix(c.Path, name+"/") })
}

// Add stores a file under a name or a slash-separated path and replaces any existing file. If the
// file can't be read or the upload is interrupted, nothing is stored. meta is given to its
// documents as in [Uploads.Reread].
func (u *Uploads) Add(ctx context.Context, name string, content io.Reader, meta map[string]string) (c Change, err error) {
	if name, err = uploadName(name); err != nil {
		return c, err
	}
	if _, ok := formatOf(name); !ok && !isContainer(name) {
		return c, &SkipError{Reason: fmt.Sprintf("%s files are not read: Ibid reads %s", strings.ToLower(path.Ext(name)), Formats())}
	}
	file, temporary, err := u.receive(ctx, name, content)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, u.discard(file, temporary)) }()
	ctx, held, release, err := u.lockUpload(ctx, name)
	if err != nil {
		return c, err
	}
	defer release()
	known, others, err := u.storedDocuments(ctx, name)
	if err := cmp.Or(ctx.Err(), err, u.checkFree(name, others)); err != nil {
		return c, err
	}
	if u.Files != nil { // first, so that no document lacks its file
		if err := u.Files.Put(ctx, u.id(name), file); err != nil {
			return c, fmt.Errorf("saving the upload: %w", err)
		}
	}
	received := oneFile{name, func() (fs.File, error) { return u.Dir.Open(temporary) }}
	if c, err = u.read(ctx, held, name, received, known, meta); err != nil {
		return c, err
	}
	// After a crash here, the next sync removes the document or finishes the upload.
	if err := u.storeReceived(held, name, file, temporary); err != nil {
		return c, fmt.Errorf("saving the upload: %w", err)
	}
	u.clearFailure(name)
	return c, nil
}

// finish finishes an upload in Files whose server stopped. It discards the upload if none of its
// documents is stored, since its metadata is lost and its client got no reply.
func (u *Uploads) finish(ctx context.Context, name string) error {
	ctx, held, release, err := u.lockUpload(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	data, err := u.Files.Read(ctx, u.id(name), true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its server has finished it
	}
	known, _, failed := u.storedDocuments(ctx, name)
	if err := cmp.Or(err, failed); err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if doc, single := known[name]; len(known) == 0 || single && doc.Digest != hex.EncodeToString(sum[:]) {
		return u.Files.FinishPut(held, u.id(name), false)
	}
	if _, err := u.read(ctx, held, name, OneFile(name, data), known, nil); err != nil {
		if _, restored := err.(*UnreadableError); restored {
			return nil
		}
		return err
	}
	return u.Files.FinishPut(held, u.id(name), true)
}

func (u *Uploads) id(name string) string { return u.Root.Name + "/" + name }

// lockUpload prevents all other changes of an upload, including changes by other servers, until
// release is called. If the lock is lost, it cancels the contexts held and reading. reading is also
// cancelled with ctx.
func (u *Uploads) lockUpload(ctx context.Context, name string) (reading, held context.Context, release func(), err error) {
	held, end := context.WithoutCancel(ctx), func() {}
	if u.Files != nil {
		if held, end, err = u.Files.Hold(ctx, u.id(name)); err != nil {
			return nil, nil, nil, fmt.Errorf("waiting for other changes of the upload: %w", err)
		}
	}
	reading, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(held, cancel)
	u.mu.Lock()
	return reading, held, func() { u.mu.Unlock(); stop(); cancel(); end() }, nil
}

// read reads the file of an upload in folder and stores its documents. If that fails, it restores
// the earlier documents.
func (u *Uploads) read(
	ctx, held context.Context, name string, folder fs.FS, known map[string]Stored, meta map[string]string,
) (Change, error) {
	c, err := u.sync(ctx, u.syncer(known, meta), folder, name)
	if err != nil {
		err = errors.Join(err, u.restore(held, name, known))
	}
	return c, err
}

// sync is like [Syncer.SyncFile], but returns an error for a file that can't be read.
func (u *Uploads) sync(ctx context.Context, s *Syncer, folder fs.FS, name string) (Change, error) {
	c, err := s.SyncFile(ctx, u.Root, folder, name)
	if err == nil && (c.Action == Skipped || c.Action == Failed) {
		err = &UnreadableError{c.Reason}
	}
	return c, err
}

// restore stores the documents of the previous file of an upload again, and discards the received
// file. If there was no previous file, it deletes the new documents.
func (u *Uploads) restore(ctx context.Context, name string, known map[string]Stored) error {
	old, err := u.folderOf(ctx, name)
	if err == nil {
		_, err = u.syncer(known, nil).SyncFile(ctx, u.Root, old, name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		var now map[string]Stored
		now, _, err = u.storedDocuments(ctx, name)
		for p := range now {
			if _, before := known[p]; !before && err == nil {
				err = u.Syncer.Sink.Delete(ctx, u.id(p))
			}
		}
	}
	if err == nil && u.Files != nil {
		err = u.Files.FinishPut(ctx, u.id(name), false)
	}
	return err
}

// storeReceived moves a received file to its final place, replacing any previous file of that name.
func (u *Uploads) storeReceived(ctx context.Context, name string, file *os.File, temporary string) error {
	if u.Files != nil {
		return u.Files.FinishPut(ctx, u.id(name), true)
	}
	err := file.Close() // some systems do not rename open files
	if above := path.Dir(name); above != "." {
		err = errors.Join(err, u.Dir.MkdirAll(above, 0o700))
	}
	return errors.Join(err, u.Dir.Rename(temporary, name), syncAbove(u.Dir, name))
}

// folderOf returns a folder with the file of an upload.
func (u *Uploads) folderOf(ctx context.Context, name string) (fs.FS, error) {
	if u.Files != nil {
		data, err := u.Files.Read(ctx, u.id(name), false)
		return OneFile(name, data), err
	}
	return u.Dir.FS(), nil
}

// checkFree returns an error if the path is an existing folder or leads through a file, on this
// server or in the paths of other stored documents.
func (u *Uploads) checkFree(name string, others map[string]Stored) error {
	taken := ""
	for at := name; at != "."; at = path.Dir(at) {
		if info, err := u.Dir.Lstat(at); err == nil && info.IsDir() != (at != name) {
			taken = at
		}
	}
	for other := range others {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			taken = name[:min(len(name), len(other))]
		}
	}
	if taken != "" {
		return fmt.Errorf("%w: a file and a folder are both named %.200q: rename one", ErrUploadPath, taken)
	}
	return nil
}

// Reread reads an upload again. meta is kept as long as its documents are stored, and takes
// precedence over the metadata of their files. An empty value removes an entry. Metadata given
// before remains.
func (u *Uploads) Reread(ctx context.Context, name string, meta map[string]string) (Change, error) {
	if isPart(name) {
		return Change{}, fmt.Errorf("reading the upload again: %w", fs.ErrNotExist)
	}
	ctx, _, release, err := u.lockUpload(ctx, name)
	if err != nil {
		return Change{}, err
	}
	defer release()
	known, _, err := u.storedDocuments(ctx, name)
	if err != nil {
		return Change{}, err
	}
	syncer := u.syncer(known, meta)
	syncer.Force = true
	folder, err := u.folderOf(ctx, name)
	if err != nil {
		return Change{}, fmt.Errorf("reading the upload again: %w", err)
	}
	c, err := u.sync(ctx, syncer, folder, name)
	if err == nil {
		u.clearFailure(name)
	}
	return c, err
}

// storedDocuments returns the documents of an upload by path, including those of the files in it, and all
// other documents of the root.
func (u *Uploads) storedDocuments(ctx context.Context, name string) (own, others map[string]Stored, err error) {
	all, err := u.Syncer.Sink.StoredDocuments(ctx, u.Root)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the stored documents of the upload: %w", err)
	}
	own, others = make(map[string]Stored), make(map[string]Stored)
	for p, doc := range all {
		if p == name || isContainer(name) && strings.HasPrefix(p, name+"/") {
			own[p] = doc
		} else {
			others[p] = doc
		}
	}
	return own, others, nil
}

// isPart reports whether a path names a file inside an upload, which is not an upload itself.
func isPart(name string) bool {
	for at := path.Dir(name); at != "." && at != "/"; at = path.Dir(at) {
		if isContainer(at) {
			return true
		}
	}
	return false
}

// Remove deletes an upload and its documents. The error wraps [fs.ErrNotExist] if it does not
// exist.
func (u *Uploads) Remove(ctx context.Context, name string) error {
	info, missing := u.Dir.Lstat(name)
	if !fs.ValidPath(name) || strings.HasPrefix(name, ".") || isPart(name) || missing == nil && info.IsDir() {
		return fmt.Errorf("deleting the upload: %w", fs.ErrNotExist)
	}
	_, ctx, release, err := u.lockUpload(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	known, _, err := u.storedDocuments(ctx, name)
	if err != nil {
		return err
	}
	if u.Files != nil { // before the documents: without them, nobody could delete the file
		if err := u.Files.Remove(ctx, u.id(name)); err != nil {
			return err
		}
	}
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(known))) { // the upload itself last
		if err := u.Syncer.Sink.Delete(ctx, u.id(p)); err != nil {
			return err
		}
	}
	if u.Files != nil && len(known) > 0 {
		return nil
	}
	if err := u.Dir.Remove(name); err != nil && (!errors.Is(err, fs.ErrNotExist) || len(known) == 0) {
		return fmt.Errorf("deleting the upload: %w", err)
	}
	u.clearFailure(name)
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if err := u.Dir.Remove(above); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
		name = above // the folder was empty
	}
	return syncAbove(u.Dir, name) // otherwise, after a power cut, the next sync would add it again
}

// roomFor returns the largest allowed size of a file with this name.
func (u *Uploads) roomFor(ctx context.Context, name string) (int64, error) {
	left := cmp.Or(u.MaxTotal, DefaultMaxUploads)
	var err error
	for _, in := range u.All() {
		without := name
		if in != u {
			without = ""
		}
		size, failed := in.sizeWithout(without)
		left, err = left-size, cmp.Or(err, failed)
	}
	if err == nil && u.Files != nil {
		var stored int64
		stored, err = u.Files.Size(ctx, u.id(name))
		left -= stored
	}
	if err == nil && left <= 0 {
		err = ErrUploadSpace
	}
	return min(cmp.Or(u.MaxBytes, DefaultMaxBytes), left), err
}

// sizeWithout returns the size in bytes of all uploads of the folder except one.
func (u *Uploads) sizeWithout(name string) (size int64, err error) {
	err = fs.WalkDir(u.Dir.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && (e.IsDir() || p == name || strings.HasPrefix(p, uploadPrefix)) {
			return nil
		}
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		if err == nil {
			size += info.Size()
		} else if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			err = nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("listing the uploads: %w", err)
	}
	return size, nil
}

// CheckCollection returns [ErrCollection] unless a folder may have the name.
func CheckCollection(name string) error {
	if clean, err := cleanName(name); err != nil || clean != name {
		return ErrCollection
	}
	return nil
}

// receive writes the client's data to a hidden file.
func (u *Uploads) receive(ctx context.Context, name string, content io.Reader) (f *os.File, temporary string, err error) {
	room, err := u.roomFor(ctx, name)
	if err != nil {
		return nil, "", err
	}
	temporary = uploadPrefix + rand.Text()
	if f, err = u.Dir.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, "", fmt.Errorf("saving the upload: %w", err)
	}
	if err := u.write(f, content, room); err != nil {
		return nil, "", errors.Join(err, u.discard(f, temporary))
	}
	return f, temporary, nil
}

// discard closes and removes a received file unless it was stored.
func (u *Uploads) discard(f *os.File, temporary string) error {
	for _, err := range []error{f.Close(), u.Dir.Remove(temporary)} {
		if err != nil && !errors.Is(err, fs.ErrClosed) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the interrupted upload: %w", err)
		}
	}
	return nil
}

// write locks a new file, writes up to most bytes to it, and syncs it.
func (u *Uploads) write(f *os.File, content io.Reader, most int64) error {
	if err := u.Lock(f, true); err != nil {
		return fmt.Errorf("saving the upload: %w", err)
	}
	n, err := io.Copy(f, io.LimitReader(content, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%w: at most %d bytes are allowed", ErrUploadSize, most)
	}
	return cmp.Or(err, f.Sync(), u.Lock(f, false)) // let others read it on Windows
}

// uploadName cleans the path that a client sent, which may have folders. It keeps only the last
// element of an absolute path, or of a path with backslashes and no slash.
func uploadName(name string) (string, error) {
	if strings.HasPrefix(name, "/") || !strings.Contains(name, "/") {
		return cleanName(name[strings.LastIndexAny(name, `/\`)+1:])
	}
	parts := strings.Split(name, "/")
	if len(parts) > maxUploadFolders+1 {
		return "", fmt.Errorf("%w: it has more than %d folders", ErrUploadPath, maxUploadFolders)
	}
	for i, part := range parts {
		folder := i < len(parts)-1
		if folder && (part == "" || part[0] == '.') {
			return "", fmt.Errorf("%w: %.200q is hidden, or is not a valid folder name", ErrUploadPath, part)
		}
		clean, err := cleanName(part)
		if err != nil {
			return "", err
		}
		if folder && isContainer(clean) {
			return "", fmt.Errorf("%w: the folder %.200q is named like an archive: rename it", ErrUploadPath, clean)
		}
		parts[i] = clean
	}
	if name = strings.Join(parts, "/"); len(name) > maxPathBytes || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("%w: it is longer than %d bytes, or a name in it is reserved", ErrUploadPath, maxPathBytes)
	}
	return name, nil
}

// cleanName returns a file name without characters that some system or terminal can't show.
func cleanName(name string) (string, error) {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		case strings.ContainsRune(`<>:"|?*/\`, r): // not allowed in names on Windows
			return '-'
		}
		return r
	}, norm.NFC.String(name))
	name = strings.Trim(name, ". ")
	ending := path.Ext(name)
	base := strings.TrimRight(strings.TrimSuffix(name, ending), ". ")
	if base == "" || len(ending) > maxNameBytes/2 {
		return "", ErrUploadName
	}
	for len(base)+len(ending) > maxNameBytes {
		r := []rune(base)
		base = strings.TrimRight(string(r[:len(r)-1]), ". ")
	}
	return base + ending, nil
}

// A oneFile is a folder of one file.
type oneFile struct {
	name string
	open func() (fs.File, error)
}

func (f oneFile) Open(name string) (fs.File, error) {
	if name != f.name {
		return nil, fs.ErrNotExist
	}
	return f.open()
}

// OneFile returns a folder with one file.
func OneFile(name string, data []byte) fs.FS {
	return oneFile{name, func() (fs.File, error) { return dataFile{bytes.NewReader(data)}, nil }}
}

// A dataFile is an open file in memory.
type dataFile struct{ *bytes.Reader }

func (dataFile) Close() error                 { return nil }
func (f dataFile) Stat() (fs.FileInfo, error) { return f, nil }
func (dataFile) Name() string                 { return "" }
func (dataFile) Mode() fs.FileMode            { return 0o400 }
func (dataFile) ModTime() time.Time           { return time.Time{} }
func (dataFile) IsDir() bool                  { return false }
func (dataFile) Sys() any                     { return nil }

package ingest

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"testing/fstest"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Uploads is a folder of the program's own for uploaded files. They are read like
// those of any other folder.
type Uploads struct {
	Dir    *os.Root
	Root   Root // "uploads"
	Syncer *Syncer
	// MaxBytes is the largest file, 0 means [DefaultMaxBytes]; MaxTotal bounds
	// all files together, 0 means [DefaultMaxUploads].
	MaxBytes, MaxTotal int64
	// Shared means that other servers use the same store and may have the files of
	// some documents. Sync then adds and removes none.
	Shared bool
	// Files, if not nil, has the files, where all those servers find them. Dir then has only
	// those of earlier versions, and those that are being received.
	Files Files
	// All are the uploads of all folders, which have one MaxTotal; nil: there is one.
	All func() []*Uploads
	// Lock locks an open file until it is closed, exclusively or with others, without
	// waiting; nil: nothing else uses the folder while a Sync runs.
	Lock func(f *os.File, exclusive bool) error

	mu sync.Mutex // held while a document is stored or removed

	failuresMu sync.Mutex
	failures   []Change
}

// Files has uploaded files by their ids.
type Files interface {
	// Hold waits until no other process holds the id, and holds it until release is
	// called. The context that it returns ends if the hold is lost.
	Hold(ctx context.Context, id string) (held context.Context, release func(), err error)
	// Put stores a file in the place of the one with its id, durably and whole.
	Put(ctx context.Context, id string, content io.ReadSeeker) error
	// Read returns a file; the error wraps [fs.ErrNotExist] if there is none.
	Read(ctx context.Context, id string) ([]byte, error)
	// Remove deletes a file if there is one.
	Remove(ctx context.Context, id string) error
	// Size is the size of all files but one, in bytes.
	Size(ctx context.Context, without string) (int64, error)
}

// DefaultMaxUploads is the default size of all uploads together, in bytes.
const DefaultMaxUploads = 4 << 30

// Errors of an upload. Others are a [*SkipError] for a format that is not read,
// and an [*UnreadableError].
var (
	ErrUploadPath  = errors.New("the path of the file cannot be used")
	ErrUploadName  = errors.New("the name of the file cannot be used: give it letters or digits, and the ending of its format")
	ErrUploadSize  = errors.New("the file is too large")
	ErrUploadSpace = errors.New("there is no room for more uploads: delete some")
	ErrCollection  = errors.New("the name cannot be that of a collection with uploads: use letters, digits, '-' and '_', and no name that " +
		"differs from another only in upper and lower case")
)

// ErrElsewhere means that another server of the same store has the file.
var ErrElsewhere = errors.New("the file of this document is not on this server, " +
	"but on the one that reads its folder, or that it was uploaded to")

// ErrNotUploaded means that a document is not from an upload.
var ErrNotUploaded = errors.New("the document was not uploaded: change or delete the file in its folder")

// An UnreadableError says why a file cannot be read.
type UnreadableError struct{ Reason string }

func (e *UnreadableError) Error() string { return e.Reason }

const (
	// uploadPrefix begins the hidden name, which a sync ignores, of an upload that is not
	// stored yet. The process that receives it has locked it.
	uploadPrefix = ".upload-"
	maxNameBytes = 200
	// Limits of a path: the folders in it, and its length.
	maxUploadFolders = 16
	maxPathBytes     = 1000
)

// Sync updates the store from the files, unless they are Shared, and removes the
// files of interrupted uploads.
func (u *Uploads) Sync(ctx context.Context) error {
	if err := u.removeInterrupted(); err != nil {
		return err
	}
	if u.Shared {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var failures []Change
	for c, err := range u.Syncer.Sync(ctx, u.Root, u.Dir.FS()) {
		if err != nil {
			return fmt.Errorf("reading the uploads: %w", err)
		}
		if c.Action == Skipped || c.Action == Failed {
			failures = append(failures, c)
		}
	}
	u.failuresMu.Lock()
	defer u.failuresMu.Unlock()
	u.failures = failures
	return nil
}

// OpenUploads opens the folder of uploads at a path, and creates it so that it
// survives a power cut. The folder above it must exist.
func OpenUploads(path string) (*os.Root, error) {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		var above *os.Root
		if above, err = os.OpenRoot(filepath.Dir(path)); err == nil {
			err = errors.Join(syncFolder(above), above.Close())
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the folder of the uploads: %w", err)
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the uploads: %w", err)
	}
	return dir, nil
}

// removeInterrupted removes the files of uploads that no process has locked any more.
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
			if u.lock(f, true) == nil {
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

func (u *Uploads) lock(f *os.File, exclusive bool) error {
	if u.Lock == nil {
		return nil
	}
	return u.Lock(f, exclusive)
}

// syncFolder makes the names in a folder durable. Windows does it with their files.
func syncFolder(dir *os.Root) error { return syncAbove(dir, ".") }

// syncAbove does it for the folder of a path, and those above that.
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

// Failures returns the files that the last Sync could not read and that have not
// changed since.
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

// Add stores a file under a name, or a path with '/', and replaces the one that had it. A file that
// cannot be read or is interrupted leaves nothing. Metadata is given to its documents as
// by [Uploads.Reread].
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
	ctx, release, err := u.hold(ctx, name)
	if err != nil {
		return c, err
	}
	defer release()
	if err := cmp.Or(ctx.Err(), u.checkFree(name)); err != nil {
		return c, err
	}
	if c, err = u.read(ctx, name, temporary, meta); err != nil {
		return c, err
	}
	// After a crash here the next sync removes the document. In a shared store it
	// remains without its file, and the upload, which was not acknowledged, is sent
	// again.
	if err := u.keep(ctx, name, file, temporary); err != nil {
		return c, fmt.Errorf("saving the upload: %w", err)
	}
	u.clearFailure(name)
	return c, nil
}

// hold keeps everything else, on other servers as well, from changing an upload until
// release is called. The context ends if that cannot be kept up.
func (u *Uploads) hold(ctx context.Context, name string) (_ context.Context, release func(), err error) {
	end := func() {}
	if u.Files != nil {
		if ctx, end, err = u.Files.Hold(ctx, u.Root.Name+"/"+name); err != nil {
			return ctx, nil, fmt.Errorf("waiting for other changes of the upload: %w", err)
		}
	}
	u.mu.Lock()
	return ctx, func() { u.mu.Unlock(); end() }, nil
}

// read stores the documents of a received file under the name of its upload. If the file
// cannot be read, those that were stored remain.
func (u *Uploads) read(ctx context.Context, name, temporary string, meta map[string]string) (Change, error) {
	known, err := u.stored(ctx, name)
	if err != nil {
		return Change{}, err
	}
	c, err := u.syncer(known, meta).SyncFile(ctx, u.Root, standIn{u.Dir.FS(), temporary, name}, name)
	if err != nil || c.Action != Skipped && c.Action != Failed {
		return c, err
	}
	err = &UnreadableError{c.Reason}
	if c.Action == Skipped {
		// The skip removed the stored version of the file that is there.
		old, again := u.folderOf(ctx, name)
		if again == nil {
			_, again = u.syncer(known, nil).SyncFile(ctx, u.Root, old, name)
		}
		if !errors.Is(again, fs.ErrNotExist) {
			err = errors.Join(err, again)
		}
	}
	return c, err
}

// keep puts a received file where the others are, in the place of the one of its name.
func (u *Uploads) keep(ctx context.Context, name string, file *os.File, temporary string) error {
	if u.Files != nil {
		return u.Files.Put(ctx, u.Root.Name+"/"+name, file)
	}
	err := file.Close() // some systems do not rename open files
	if above := path.Dir(name); above != "." {
		err = errors.Join(err, u.Dir.MkdirAll(above, 0o700))
	}
	return errors.Join(err, u.Dir.Rename(temporary, name), syncAbove(u.Dir, name))
}

// folderOf returns a folder with the file of an upload, if there is one.
func (u *Uploads) folderOf(ctx context.Context, name string) (fs.FS, error) {
	if u.Files != nil {
		data, err := u.Files.Read(ctx, u.Root.Name+"/"+name)
		if err == nil {
			return OneFile(name, data), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return u.Dir.FS(), nil
}

// OneFile returns a folder with one file.
func OneFile(name string, data []byte) fs.FS { return fstest.MapFS{name: {Data: data}} }

// checkFree returns an error if the path needs a folder where a file is, or is that of a folder.
func (u *Uploads) checkFree(name string) error {
	for at := name; at != "."; at = path.Dir(at) {
		info, err := u.Dir.Lstat(at)
		if err == nil && info.IsDir() != (at != name) {
			return fmt.Errorf("%w: there is a file and a folder of the name %.200q: rename one", ErrUploadPath, at)
		}
	}
	return nil
}

// Reread reads an upload again. The metadata is given to its documents, over that of
// their files and for as long as they are stored; an empty value ends that. Metadata
// that they were given before remains.
func (u *Uploads) Reread(ctx context.Context, name string, meta map[string]string) (Change, error) {
	if isPart(name) {
		return Change{}, fmt.Errorf("reading the upload again: %w", fs.ErrNotExist)
	}
	ctx, release, err := u.hold(ctx, name)
	if err != nil {
		return Change{}, err
	}
	defer release()
	known, err := u.stored(ctx, name)
	if err != nil {
		return Change{}, err
	}
	syncer := u.syncer(known, meta)
	syncer.Force = true
	folder, err := u.folderOf(ctx, name)
	if err != nil {
		return Change{}, fmt.Errorf("reading the upload again: %w", err)
	}
	c, err := syncer.SyncFile(ctx, u.Root, folder, name)
	if err == nil && (c.Action == Skipped || c.Action == Failed) {
		err = &UnreadableError{c.Reason}
	} else if err == nil {
		u.clearFailure(name)
	}
	if u.Shared && errors.Is(err, fs.ErrNotExist) && len(known) > 0 {
		err = &UnreadableError{ErrElsewhere.Error()}
	}
	return c, err
}

// stored returns the documents of an upload by path: its own, and those of the files in it.
func (u *Uploads) stored(ctx context.Context, name string) (map[string]Stored, error) {
	known, err := u.Syncer.Sink.Known(ctx, u.Root)
	if err != nil {
		return nil, fmt.Errorf("reading the stored documents of the upload: %w", err)
	}
	maps.DeleteFunc(known, func(p string, _ Stored) bool {
		return p != name && !(isContainer(name) && strings.HasPrefix(p, name+"/"))
	})
	return known, nil
}

// isPart reports whether a path is that of a file in an upload, which is no upload itself.
func isPart(name string) bool {
	for at := path.Dir(name); at != "." && at != "/"; at = path.Dir(at) {
		if isContainer(at) {
			return true
		}
	}
	return false
}

// Remove deletes an upload and its documents. If there is none, the error wraps
// [fs.ErrNotExist].
func (u *Uploads) Remove(ctx context.Context, name string) error {
	info, missing := u.Dir.Lstat(name)
	if !fs.ValidPath(name) || strings.HasPrefix(name, ".") || isPart(name) || missing == nil && info.IsDir() {
		return fmt.Errorf("deleting the upload: %w", fs.ErrNotExist)
	}
	ctx, release, err := u.hold(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	known, err := u.stored(ctx, name)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if u.Files != nil { // before its documents: without them nobody could delete it
		if err := u.Files.Remove(ctx, u.Root.Name+"/"+name); err != nil {
			return err
		}
	}
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(known))) { // itself last
		if err := u.Syncer.Sink.Delete(ctx, u.Root.Name+"/"+p); err != nil {
			return err
		}
	}
	// In a shared store the file may be on another server. There no sync adds it again.
	if err := u.Dir.Remove(name); err != nil && (!errors.Is(err, fs.ErrNotExist) || len(known) == 0) {
		return fmt.Errorf("deleting the upload: %w", err)
	}
	u.clearFailure(name)
	for above := path.Dir(name); above != "." && u.Dir.Remove(above) == nil; above = path.Dir(above) {
		name = above // the folder was empty
	}
	if _, err := u.Dir.Lstat(path.Dir(name)); errors.Is(err, fs.ErrNotExist) {
		return nil // the file was on another server
	}
	return syncAbove(u.Dir, name) // after a power cut the next sync would add it again
}

// room returns how large a file of this name may be.
func (u *Uploads) room(ctx context.Context, name string) (int64, error) {
	left := cmp.Or(u.MaxTotal, DefaultMaxUploads)
	all := []*Uploads{u}
	if u.All != nil {
		all = u.All()
	}
	var err error
	for _, in := range all {
		without := name
		if in != u {
			without = ""
		}
		size, failed := in.sizeWithout(without)
		left, err = left-size, cmp.Or(err, failed)
	}
	if err == nil && u.Files != nil {
		var stored int64
		stored, err = u.Files.Size(ctx, u.Root.Name+"/"+name)
		left -= stored
	}
	if err == nil && left <= 0 {
		err = ErrUploadSpace
	}
	return min(cmp.Or(u.MaxBytes, DefaultMaxBytes), left), err
}

// sizeWithout is the size of all uploads of the folder but one, in bytes.
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

// CheckCollection returns [ErrCollection] unless a folder can have the name.
func CheckCollection(name string) error {
	if clean, err := cleanName(name); err != nil || clean != name {
		return ErrCollection
	}
	return nil
}

// receive writes what a client sends to a hidden file.
func (u *Uploads) receive(ctx context.Context, name string, content io.Reader) (f *os.File, temporary string, err error) {
	room, err := u.room(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if f, temporary, err = u.create(); err != nil {
		return nil, "", fmt.Errorf("saving the upload: %w", err)
	}
	if err := u.write(f, content, room); err != nil {
		return nil, "", errors.Join(err, u.discard(f, temporary))
	}
	return f, temporary, nil
}

// discard closes and removes a received file, unless it was kept.
func (u *Uploads) discard(f *os.File, temporary string) error {
	for _, err := range []error{f.Close(), u.Dir.Remove(temporary)} {
		if err != nil && !errors.Is(err, fs.ErrClosed) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the interrupted upload: %w", err)
		}
	}
	return nil
}

// create creates and locks the file of an upload, unless another process removed it before.
func (u *Uploads) create() (f *os.File, name string, err error) {
	for range 3 {
		name = uploadPrefix + rand.Text()
		if f, err = u.Dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return nil, "", err
		}
		if err = u.lock(f, true); err == nil {
			if _, err = u.Dir.Lstat(name); err == nil {
				return f, name, nil
			}
		}
		err = errors.Join(err, f.Close())
	}
	return nil, "", err
}

// write writes at most so many bytes to a locked file, and syncs it.
func (u *Uploads) write(f *os.File, content io.Reader, most int64) error {
	n, err := io.Copy(f, io.LimitReader(content, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%w: at most %d bytes are allowed", ErrUploadSize, most)
	}
	return cmp.Or(err, f.Sync(), u.lock(f, false)) // Windows lets others read it then
}

// uploadName makes a path of the one that a client sent, which may have folders.
// Of an absolute path, or one with a backslash and no '/', it takes the last part.
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
			return "", fmt.Errorf("%w: %.200q is hidden, or no name of a folder", ErrUploadPath, part)
		}
		clean, err := cleanName(part)
		if err != nil {
			return "", err
		}
		if folder && isContainer(clean) {
			return "", fmt.Errorf("%w: the folder %.200q is named like a file that holds others: rename it", ErrUploadPath, clean)
		}
		parts[i] = clean
	}
	if name = strings.Join(parts, "/"); len(name) > maxPathBytes || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("%w: it is longer than %d bytes, or a name in it is reserved", ErrUploadPath, maxPathBytes)
	}
	return name, nil
}

// cleanName returns a name of a file without characters that some system or terminal cannot show.
func cleanName(name string) (string, error) {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		case strings.ContainsRune(`<>:"|?*/\`, r): // no name has them on Windows
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

// A standIn is a folder of one file, under the name of another.
type standIn struct {
	fs.FS
	file, name string
}

func (s standIn) Open(name string) (fs.File, error) {
	if name != s.name {
		return nil, fs.ErrNotExist
	}
	return s.FS.Open(s.file)
}

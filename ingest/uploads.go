package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Uploads is the folder of the files that people send, which belongs to the
// program itself. Its files are read as those of any other folder.
type Uploads struct {
	Dir    *os.Root
	Root   Root // "uploads"
	Syncer *Syncer
	// MaxBytes is the largest file, 0 means [DefaultMaxBytes]; MaxTotal bounds
	// all files together, 0 means [DefaultMaxUploads].
	MaxBytes, MaxTotal int64
	// Shared says that documents may have been sent to another server of the
	// same store, so that their files are not here: Sync then takes none away,
	// and none in.
	Shared bool

	mu sync.Mutex // held while a document is stored or removed

	told     sync.Mutex // guards what follows
	troubles []Change
}

// DefaultMaxUploads is what all uploads together may have, in bytes.
const DefaultMaxUploads = 4 << 30

// What an upload is refused for, beside a [*SkipError] for a file of which
// nothing is read, and an [*UnreadableError].
var (
	ErrUploadName  = errors.New("the name of the file cannot be used: give it letters or digits, and the ending of its format")
	ErrUploadSize  = errors.New("the file is too large")
	ErrUploadSpace = errors.New("there is no room for more uploads: delete some")
)

// ErrElsewhere says that a file is with another server of the same store.
var ErrElsewhere = errors.New("the file that the document was read from is not on this server, but with the one that it was sent to, or that reads its folder")

// An UnreadableError says why a file cannot be read.
type UnreadableError struct{ Reason string }

func (e *UnreadableError) Error() string { return e.Reason }

// An upload is written under a hidden name, which no sync looks at, until it is
// stored. What a crash leaves of one is removed after maxUploading.
const (
	uploadPrefix = ".upload-"
	maxUploading = 24 * time.Hour
	maxNameBytes = 200
)

// Sync brings the store in step with the files that are there, unless they are
// Shared, and removes what was left of uploads that were broken off.
func (u *Uploads) Sync(ctx context.Context) error {
	entries, err := fs.ReadDir(u.Dir.FS(), ".")
	if err != nil {
		return fmt.Errorf("listing the uploads: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), uploadPrefix) && time.Since(info.ModTime()) > maxUploading {
			err = u.Dir.Remove(e.Name())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("looking through the uploads: %w", err)
		}
	}
	if u.Shared {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var troubles []Change
	for c, err := range u.Syncer.Sync(ctx, u.Root, u.Dir.FS()) {
		if err != nil {
			return fmt.Errorf("reading the uploads: %w", err)
		}
		if c.Action == Skipped || c.Action == Failed {
			troubles = append(troubles, c)
		}
	}
	u.told.Lock()
	defer u.told.Unlock()
	u.troubles = troubles
	return nil
}

// Troubles are the files that the last Sync could not read and that are still
// what they were.
func (u *Uploads) Troubles() []Change {
	u.told.Lock()
	defer u.told.Unlock()
	return slices.Clone(u.troubles)
}

// settled takes a file, and what is packed in it, out of the troubles.
func (u *Uploads) settled(name string) {
	u.told.Lock()
	defer u.told.Unlock()
	u.troubles = slices.DeleteFunc(u.troubles, func(c Change) bool { return c.Path == name || strings.HasPrefix(c.Path, name+"/") })
}

// Add takes in a file under a name, in place of the one that had it. It is kept
// when it can be read, and else leaves nothing, nor does what is broken off.
func (u *Uploads) Add(ctx context.Context, name string, content io.Reader) (c Change, err error) {
	if name, err = uploadName(name); err != nil {
		return c, err
	}
	if _, ok := formatOf(name); !ok && !isContainer(name) {
		return c, &SkipError{Reason: fmt.Sprintf("%s files are not taken: Ibid reads %s", strings.ToLower(path.Ext(name)), Formats())}
	}
	room, err := u.room(name)
	if err != nil {
		return c, err
	}
	temporary := uploadPrefix + rand.Text()
	defer func() {
		if gone := u.Dir.Remove(temporary); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("removing what was left of the upload: %w", gone))
		}
	}()
	if err := u.write(temporary, content, room); err != nil {
		return c, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return c, err
	}
	c, err = u.Syncer.SyncFile(ctx, u.Root, standIn{u.Dir.FS(), name, temporary}, name)
	if err == nil && (c.Action == Skipped || c.Action == Failed) {
		err = &UnreadableError{c.Reason}
		if c.Action == Skipped {
			// It may have been taken for the end of the one that is there.
			if _, old := u.Dir.Lstat(name); old == nil {
				_, again := u.Syncer.SyncFile(ctx, u.Root, u.Dir.FS(), name)
				err = errors.Join(err, again)
			}
		}
	}
	if err != nil {
		return c, err
	}
	// A crash before this has the next sync take out what was just stored.
	if err := u.Dir.Rename(temporary, name); err != nil {
		return c, fmt.Errorf("keeping the upload: %w", err)
	}
	u.settled(name)
	return c, nil
}

// Reread reads an upload anew.
func (u *Uploads) Reread(ctx context.Context, name string) (Change, error) {
	if strings.Contains(name, "/") { // it is a part of one
		return Change{}, fmt.Errorf("reading the upload anew: %w", fs.ErrNotExist)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	again := &Syncer{Sink: u.Syncer.Sink, Reader: u.Syncer.Reader, Split: u.Syncer.Split, Force: true}
	c, err := again.SyncFile(ctx, u.Root, u.Dir.FS(), name)
	if err == nil && (c.Action == Skipped || c.Action == Failed) {
		err = &UnreadableError{c.Reason}
	} else if err == nil {
		u.settled(name)
	}
	if u.Shared && errors.Is(err, fs.ErrNotExist) {
		if stored, known := u.stored(ctx, name); known == nil && len(stored) > 0 {
			err = &UnreadableError{ErrElsewhere.Error()}
		}
	}
	return c, err
}

// stored gives the ids of what is stored of an upload: of itself, and of what is
// packed in it or attached to it.
func (u *Uploads) stored(ctx context.Context, name string) (ids []string, err error) {
	known, err := u.Syncer.Sink.Known(ctx, u.Root)
	if err != nil {
		return nil, fmt.Errorf("reading what is stored of the upload: %w", err)
	}
	for _, p := range slices.Sorted(maps.Keys(known)) {
		if p == name || strings.HasPrefix(p, name+"/") {
			ids = append(ids, u.Root.Name+"/"+p)
		}
	}
	return ids, nil
}

// Remove deletes an upload with all that is stored of it. One that is not there
// gives an error that wraps [fs.ErrNotExist].
func (u *Uploads) Remove(ctx context.Context, name string) error {
	if strings.HasPrefix(name, ".") || strings.Contains(name, "/") {
		return fmt.Errorf("deleting the upload: %w", fs.ErrNotExist)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.Shared {
		// The file may be elsewhere. Here it goes last: no sync takes it in again.
		ctx = context.WithoutCancel(ctx)
		stored, err := u.forget(ctx, name)
		if err != nil {
			return err
		}
		if err := u.Dir.Remove(name); err != nil && (!errors.Is(err, fs.ErrNotExist) || !stored) {
			return fmt.Errorf("deleting the upload: %w", err)
		}
		u.settled(name)
		return nil
	}
	if err := u.Dir.Remove(name); err != nil {
		return fmt.Errorf("deleting the upload: %w", err)
	}
	u.settled(name)
	_, err := u.forget(context.WithoutCancel(ctx), name)
	return err
}

// forget takes an upload out of the store, with what is kept of it beside
// documents, and says whether there was a document.
func (u *Uploads) forget(ctx context.Context, name string) (stored bool, err error) {
	ids, err := u.stored(ctx, name)
	if err != nil {
		return false, err
	}
	stored = len(ids) > 0
	if id := u.Root.Name + "/" + name; !slices.Contains(ids, id) {
		ids = slices.Insert(ids, 0, id) // the listing of an archive
	}
	for _, id := range slices.Backward(ids) { // itself last
		if err := u.Syncer.Sink.Delete(ctx, id); err != nil {
			return stored, err
		}
	}
	return stored, nil
}

// room says how large a file of this name may be.
func (u *Uploads) room(name string) (int64, error) {
	most, total := u.MaxBytes, u.MaxTotal
	if most <= 0 {
		most = DefaultMaxBytes
	}
	if total <= 0 {
		total = DefaultMaxUploads
	}
	entries, err := fs.ReadDir(u.Dir.FS(), ".")
	if err != nil {
		return 0, fmt.Errorf("listing the uploads: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || e.Name() == name {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("listing the uploads: %w", err)
		}
		total -= info.Size()
	}
	if total <= 0 {
		return 0, ErrUploadSpace
	}
	return min(most, total), nil
}

// write puts at most so many bytes into a new file, on the disk.
func (u *Uploads) write(name string, content io.Reader, most int64) (err error) {
	f, err := u.Dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("keeping the upload: %w", err)
	}
	n, err := io.Copy(f, io.LimitReader(content, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%w: %d bytes are the most that is taken", ErrUploadSize, most)
	} else if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// uploadName makes a file's name of what a program calls it: the last part of a
// path, without what no system or terminal can show.
func uploadName(name string) (string, error) {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		case strings.ContainsRune(`<>:"|?*`, r): // no name has them on Windows
			return '-'
		}
		return r
	}, norm.NFC.String(name))
	name = strings.TrimRight(strings.TrimLeft(name, ". "), ". ")
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

// standIn shows one file of a folder under the name of another.
type standIn struct {
	fs.FS
	name, file string
}

func (s standIn) real(name string) string {
	if name == s.name {
		return s.file
	}
	return name
}

func (s standIn) Open(name string) (fs.File, error) { return s.FS.Open(s.real(name)) }

// Lstat and ReadLink make it a [fs.ReadLinkFS].
func (s standIn) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(s.FS, s.real(name)) }

func (s standIn) ReadLink(name string) (string, error) { return fs.ReadLink(s.FS, s.real(name)) }

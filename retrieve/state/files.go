package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ibid/retrieve/disk"
)

// lockName is the name of the file that is locked while a data directory is open.
const lockName = "ibid.lock"

// shareLock locks the data directory as in use. All processes that use it may hold this lock,
// except while one of them repairs the database. A read-only folder may lack the lock file.
func (s *Store) shareLock(ctx context.Context) error {
	path, flags := filepath.Join(s.dir, lockName), os.O_RDWR|os.O_CREATE
	if s.readOnly {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flags, 0o600)
	switch refused := errors.Is(err, fs.ErrPermission); {
	case s.readOnly && (refused || errors.Is(err, fs.ErrNotExist)):
		return nil
	case refused:
		return fmt.Errorf("%s cannot be opened: check its permissions and those of its folder: %w", path, fs.ErrPermission)
	case err != nil:
		return err
	}
	err = s.retry(ctx, s.wait, func() error {
		err := disk.Lock(f, false)
		if errors.Is(err, disk.ErrLocked) {
			return &failure{message: path + ": another process repairs the library", busy: true, err: err}
		}
		return err
	})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.lock = f
	return nil
}

// publish gives a complete and closed file its name. It never overwrites: if the name exists, the
// error is [fs.ErrExist].
func publish(partial, name string) error {
	if err := syncFile(partial); err != nil {
		return err
	}
	// A link, unlike a rename, never overwrites, but some file systems have no links.
	if err := os.Link(partial, name); errors.Is(err, fs.ErrExist) {
		return err
	} else if err != nil {
		if _, there := os.Lstat(name); there == nil {
			return fs.ErrExist
		}
		if err := os.Rename(partial, name); err != nil {
			return err
		}
	}
	return disk.SyncDir(filepath.Dir(name))
}

// removeDatabase removes a file and the files that SQLite keeps with it, if they exist.
func removeDatabase(path string) error {
	return removeFiles(path, path+"-wal", path+"-shm", path+"-journal")
}

// removeFiles removes files, if they exist.
func removeFiles(paths ...string) (err error) {
	for _, path := range paths {
		if gone := os.Remove(path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// syncFile makes a file's content durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// networkKinds are the types of network file systems, including FUSE.
var networkKinds = []string{
	"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "coda", "lustre", "ocfs2", "gfs2",
	"sshfs", "rclone", "s3fs", "goofys", "gcsfuse", "glusterfs", "davfs", "curlftpfs",
	"juicefs", "seaweedfs", "mount-s3", "blobfuse", "blobfuse2",
}

// refuseNetwork refuses a directory on a network file system: SQLite's shared memory and locks do
// not work across machines, and data would be lost. It checks nothing if the system has no /proc.
func refuseNetwork(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if kind := kindOf(string(mounts), dir); slices.Contains(networkKinds, kind) {
		return fmt.Errorf("it is on a network file system (%s), which does not support the locks that a library needs: "+
			"choose a local directory with --data", kind)
	}
	return nil
}

// kindOf returns the type of a directory's file system without "fuse.", from a table of mounts in
// the format of proc_pid_mountinfo(5).
func kindOf(mounts, dir string) (kind string) {
	longest := 0
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 {
			continue
		}
		at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4])
		if at != dir && !strings.HasPrefix(dir, strings.TrimSuffix(at, "/")+"/") || len(at) < longest {
			continue
		}
		name, _, _ := strings.Cut(after, " ")
		longest, kind = len(at), strings.TrimPrefix(name, "fuse.")
	}
	return kind
}

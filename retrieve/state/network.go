package state

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// networkKinds are the kinds of network file systems, those of FUSE included.
var networkKinds = []string{
	"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "coda", "lustre", "ocfs2", "gfs2",
	"sshfs", "rclone", "s3fs", "goofys", "gcsfuse", "glusterfs", "davfs", "curlftpfs",
	"juicefs", "seaweedfs", "mount-s3", "blobfuse", "blobfuse2",
}

// refuseNetwork refuses a directory on a network file system: SQLite's shared
// memory and locks do not work across machines, and data would be lost. Without
// /proc nothing is known of it.
func refuseNetwork(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if kind := kindOf(string(mounts), dir); slices.Contains(networkKinds, kind) {
		return fmt.Errorf("it is on a network file system (%s), where its locks do not hold: choose a local directory with --data", kind)
	}
	return nil
}

// kindOf returns the kind of the file system of a directory, by the table of
// mounts in the form of proc_pid_mountinfo(5); without "fuse.".
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

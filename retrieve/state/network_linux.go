package state

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// refuseNetwork refuses a directory on a network file system: SQLite's shared
// memory and locks do not work across machines, and data would be lost.
func refuseNetwork(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("find the file system of %s: %w", dir, err)
	}
	kind := networkKind(uint32(fs.Type))
	if uint32(fs.Type) == unix.FUSE_SUPER_MAGIC {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return fmt.Errorf("find the file system of %s: %w", dir, err)
		}
		kind = fuseKind(string(mounts), dir)
	}
	if kind != "" {
		return fmt.Errorf("it is on a network file system (%s), where its locks do not hold: choose a local directory with --data", kind)
	}
	return nil
}

// networkKind names a network file system by its magic number, from
// linux/magic.h and statfs(2); empty for all others.
func networkKind(magic uint32) string {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "SMB"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS"
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph"
	case unix.CODA_SUPER_MAGIC:
		return "Coda"
	case 0x0bd00bd0:
		return "Lustre"
	case 0x7461636f:
		return "OCFS2"
	case 0x01161970:
		return "GFS2"
	}
	return ""
}

// fuseKind names the network file system that a FUSE mount over dir
// connects to, by the table of mounts in the form of proc_pid_mountinfo(5); empty
// if it is local.
func fuseKind(mounts, dir string) string {
	longest, kind := 0, ""
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
		fsType, _, _ := strings.Cut(after, " ")
		longest, kind = len(at), strings.TrimPrefix(fsType, "fuse.")
	}
	switch kind {
	case "sshfs", "rclone", "s3fs", "goofys", "gcsfuse", "glusterfs", "davfs", "curlftpfs", "ceph",
		"juicefs", "seaweedfs", "mount-s3", "blobfuse", "blobfuse2":
		return kind
	}
	return ""
}

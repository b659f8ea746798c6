package state

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestNetworkKind(t *testing.T) {
	for magic, want := range map[uint32]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.CIFS_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CEPH_SUPER_MAGIC: "Ceph",
		unix.EXT4_SUPER_MAGIC: "", unix.BTRFS_SUPER_MAGIC: "", unix.XFS_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "", unix.OVERLAYFS_SUPER_MAGIC: "",
	} {
		if got := networkKind(magic); got != want {
			t.Errorf("networkKind(%#x) = %q, want %q", magic, got, want)
		}
	}
}

func TestFuseKind(t *testing.T) {
	const mounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home/ann/far rw,nosuid shared:2 - fuse.sshfs ann@far:/srv rw,user_id=1000
31 30 0:41 / /home/ann/far/near rw - ext4 /dev/sdb1 rw
32 22 0:42 / /mnt/my\040cloud rw - fuse.rclone remote: rw
33 22 0:43 / /mnt/disk rw - fuseblk /dev/sdc1 rw
34 22 0:44 / /mnt/merged rw - fuse.mergerfs a:b rw
a line that says nothing
`
	for dir, want := range map[string]string{
		"/home/ann":               "",
		"/home/ann/far":           "sshfs",
		"/home/ann/far/data":      "sshfs",
		"/home/ann/farther":       "",
		"/home/ann/far/near/data": "",
		"/mnt/my cloud/data":      "rclone",
		"/mnt/disk/data":          "",
		"/mnt/merged":             "",
	} {
		if got := fuseKind(mounts, dir); got != want {
			t.Errorf("fuseKind(%q) = %q, want %q", dir, got, want)
		}
	}
}

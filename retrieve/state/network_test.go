package state

import "testing"

func TestKindOf(t *testing.T) {
	const mounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home/ann/far rw,nosuid shared:2 - fuse.sshfs ann@far:/srv rw,user_id=1000
31 30 0:41 / /home/ann/far/near rw - ext4 /dev/sdb1 rw
32 22 0:42 / /mnt/my\040cloud rw - fuse.rclone remote: rw
33 22 0:43 / /mnt/disk rw - fuseblk /dev/sdc1 rw
34 22 0:44 / /mnt/auto rw - autofs systemd-1 rw
35 22 0:45 / /mnt/auto rw - nfs4 far:/srv rw
a line that says nothing
`
	for dir, want := range map[string]string{
		"/home/ann":               "ext4",
		"/home/ann/far":           "sshfs",
		"/home/ann/far/data":      "sshfs",
		"/home/ann/farther":       "ext4",
		"/home/ann/far/near/data": "ext4",
		"/mnt/my cloud/data":      "rclone",
		"/mnt/disk/data":          "fuseblk",
		"/mnt/auto/data":          "nfs4",
	} {
		if got := kindOf(mounts, dir); got != want {
			t.Errorf("kindOf(%q) = %q, want %q", dir, got, want)
		}
	}
}

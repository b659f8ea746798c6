package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ibid/data/datatest"
	"ibid/retrieve/disk"
)

// cut ends a mounted ext4 file system as a power cut does: nothing more is written to its
// disk, not even the journal (EXT4_IOC_SHUTDOWN without a flush).
func cut(t *testing.T, mounted string) {
	t.Helper()
	dir, err := os.Open(mounted)
	must(t, err)
	defer dir.Close()
	const shutdown, withoutFlush = 0x8004587d, 2
	must(t, unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, withoutFlush))
}

func mustExec(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("running %s %q: %v: %s", name, args, err, out)
	}
}

// TestPowerCut uploads documents to a server whose data directory is on a separate disk,
// has another process write the search index, and cuts the power. Afterwards every
// acknowledged document must be unchanged, and the library and its index must be undamaged.
// A file that was not made durable must be lost, which shows that the power cut works.
func TestPowerCut(t *testing.T) {
	datatest.CampaignOnly(t, "it mounts a disk")
	if os.Getuid() != 0 {
		t.Skip("mounting a disk needs root")
	}
	disk, mounted := filepath.Join(t.TempDir(), "disk"), t.TempDir()
	t.Cleanup(func() { _ = exec.Command("umount", "-q", "-l", mounted).Run() }) // after a failure
	mustExec(t, "truncate", "-s", "512M", disk)
	mustExec(t, "mkfs.ext4", "-q", "-F", disk)
	random := datatest.Rand(t)
	data, acknowledged := filepath.Join(mounted, "data"), make(map[string]string) // by name
	const rounds, uploads = 20, 6
	for round := range rounds {
		mustExec(t, "mount", "-o", "loop", disk, mounted)
		server := command(t.Context(), data, "serve", "--addr", "127.0.0.1:0")
		url := listening(t, server)
		for n := range uploads {
			name := fmt.Sprintf("%d-%d.md", round, n)
			text := strings.Repeat(fmt.Sprintf("# Boat %s\n\nThe boat %d sails on the day %d.\n\n", name, n, random.IntN(1e6)), 1+random.IntN(2000))
			resp, err := http.Post(url+"/api/documents?name="+name, "text/markdown", strings.NewReader(text))
			must(t, err)
			resp.Body.Close()
			if resp.StatusCode != http.StatusCreated {
				t.Fatalf("uploading %s: %s", name, resp.Status)
			}
			acknowledged[name] = text
		}
		search := command(t.Context(), data, "search", "boats")
		must(t, search.Start())
		time.Sleep(time.Duration(random.IntN(600)) * time.Millisecond)
		lost := filepath.Join(mounted, "lost")
		must(t, os.WriteFile(lost, []byte("not durable"), 0o600))
		cut(t, mounted)
		for _, p := range []*exec.Cmd{server, search} {
			_ = p.Process.Kill() // the process may have ended
			_ = p.Wait()
		}
		mustExec(t, "umount", mounted)
		mustExec(t, "mount", "-o", "loop", disk, mounted)
		if b, err := os.ReadFile(lost); err == nil && len(b) > 0 {
			t.Errorf("round %d: a file that was not made durable still exists", round+1)
		}
		for name, text := range acknowledged {
			if b, err := os.ReadFile(filepath.Join(data, "uploads", name)); err != nil || string(b) != text {
				t.Errorf("round %d: upload %s has %d of %d bytes, err = %v", round+1, name, len(b), len(text), err)
			}
		}
		// In separate processes, whose mapped files don't keep the disk busy.
		for _, args := range [][]string{{"verify"}, {"verify", "--index"}} {
			if out, err := command(t.Context(), data, args...).CombinedOutput(); err != nil {
				t.Errorf("round %d: %q: %v: %s", round+1, args, err, out)
			}
		}
		again := startProcess(t, data)
		if stored := documents(t, again.url); len(stored) != len(acknowledged) {
			t.Errorf("round %d: %d documents stored, want the %d acknowledged", round+1, len(stored), len(acknowledged))
		}
		again.stop()
		mustExec(t, "umount", mounted)
	}
	t.Logf("figure: %d power cuts, %d acknowledged uploads", rounds, len(acknowledged))
}

// TestFullDisk fills the disk of a server, which must not be ready if an upload may not
// fit, and must refuse an upload that doesn't.
func TestFullDisk(t *testing.T) {
	mounted := t.TempDir()
	if err := unix.Mount("tmpfs", mounted, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("mounting a disk needs root: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(mounted, unix.MNT_DETACH)) })
	url := serve(t, filepath.Join(mounted, "data"))
	for i, tt := range []struct {
		left          int64
		ready, upload int
	}{{4 << 20, 200, 201}, {1 << 20, 503, 201}, {0, 503, 507}, {4 << 20, 200, 201}} {
		fill := filepath.Join(mounted, "fill")
		must(t, os.WriteFile(fill, nil, 0o600))
		free, err := disk.Free(mounted)
		must(t, err)
		must(t, os.WriteFile(fill, make([]byte, free-tt.left), 0o600))
		fetch(t, "GET", url+"/readyz", "", "", tt.ready)
		said := fetch(t, "POST", fmt.Sprintf("%s/api/documents?name=%d.md", url, i), "text/markdown", "# Pier\n\nIt is open.\n", tt.upload)
		if tt.upload == 507 && !strings.Contains(string(said), "no_space") {
			t.Errorf("refusal = %s, want no_space", said)
		}
	}
}

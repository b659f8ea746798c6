package web

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ibid/ingest"
)

// counted is a listener that counts the bytes that its connections read.
type counted struct {
	net.Listener
	read *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.read}, err
}

type countedConn struct {
	net.Conn
	read *atomic.Int64
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// uploadFolder stores uploads in a temporary folder.
func uploadFolder(t *testing.T) *ingest.Uploads {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	must(t, err)
	t.Cleanup(func() { dir.Close() })
	u := &ingest.Uploads{Dir: dir, Root: ingest.Root{Name: "uploads"}, Syncer: &ingest.Syncer{Sink: digests{}},
		Lock: func(*os.File, bool) error { return nil }}
	u.All = func() []*ingest.Uploads { return []*ingest.Uploads{u} }
	return u
}

// TestRefusedUpload checks that almost nothing of a gigabyte without a key is read and that
// nothing is written, whether its length is known or not.
func TestRefusedUpload(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	uploads := uploadFolder(t)
	k := newKeyed(t, func(o *Options) { o.UploadFolders = oneFolder{Uploads: uploads} })
	t.Run("each way", func(t *testing.T) {
		for name, head := range map[string]string{
			"length": "Content-Length: 1073741824\r\n", "chunks": "Transfer-Encoding: chunked\r\n",
			"expect": "Content-Length: 1073741824\r\nExpect: 100-continue\r\n",
			"form":   "Content-Length: 1073741824\r\nContent-Type: multipart/form-data; boundary=x\r\n",
			"cookie": "Transfer-Encoding: chunked\r\nCookie: ibid_session=" + k.ended + "\r\n",
			"reader": "Transfer-Encoding: chunked\r\nAuthorization: Bearer " + k.read + "\r\n",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inner, err := net.Listen("tcp", "127.0.0.1:0")
				must(t, err)
				var read atomic.Int64
				srv := NewHTTPServer("", k)
				done := make(chan error, 1)
				go func() { done <- srv.Serve(counted{inner, &read}) }()
				client, err := net.Dial("tcp", inner.Addr().String())
				must(t, err)
				defer client.Close()
				_, err = fmt.Fprintf(client, "POST /api/documents?name=a.md HTTP/1.1\r\nHost: localhost\r\n%s\r\n", head)
				must(t, err)
				wrote := make(chan int)
				go func() {
					piece := []byte("8000\r\n" + strings.Repeat("x", 0x8000) + "\r\n")
					n := 0
					for n < 1<<30 {
						m, err := client.Write(piece)
						if n += m; err != nil {
							break
						}
					}
					wrote <- n
				}()
				reply := make([]byte, 12)
				if _, err := io.ReadFull(client, reply); err != nil || !strings.Contains("HTTP/1.1 401 HTTP/1.1 403", string(reply)) {
					t.Errorf("reply begins with %q, %v", reply, err)
				}
				// The server closes the connection although the client keeps sending.
				_, _ = io.Copy(io.Discard, client)
				client.Close()
				sent := <-wrote
				must(t, srv.Close())
				<-done
				if n := read.Load(); n > 64<<10 {
					t.Errorf("%d bytes were read, want at most 64 KB", n)
				}
				t.Logf("%d bytes of %d were read", read.Load(), sent)
			})
		}
	})
	for _, dir := range []string{temporary, uploads.Dir.Name()} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%s has %v, %v; want no files", dir, entries, err)
		}
	}
}

// TestSecretsStay checks that no key or token is in a reply or in the log, and that the log
// has no text of documents.
func TestSecretsStay(t *testing.T) {
	var log bytes.Buffer
	k := newKeyed(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
	})
	secrets := append([]string{k.read, k.write, k.revoked, k.expired, k.session, k.ended, k.keyRevoked, k.old, "CANARYQUESTION"},
		secretWords...)
	for _, r := range k.Routes() {
		path := concrete(r.Path)
		for variant, headers := range k.wrongCredentials(t) {
			w := k.send(t, r.Method, path+"?name="+k.write+"&key="+k.write, `{"question":"CANARYQUESTION","key":"`+k.write+`"}`, headers...)
			reply := w.Body.String() + fmt.Sprint(w.Header())
			for _, secret := range secrets[:9] {
				if strings.Contains(reply, secret) {
					t.Errorf("%s %s, %s: reply contains %q", r.Method, path, variant, secret)
				}
			}
		}
		for _, headers := range k.rightCredentials() { // replies may contain documents, but the log must not
			k.send(t, r.Method, path, `{"question":"CANARYQUESTION"}`, headers...)
			k.send(t, r.Method, path, `{"question":"breaks later"}`, append(headers, "Accept: text/event-stream")...)
			k.send(t, r.Method, path, `{"question":`+k.write, headers...)
		}
	}
	for _, secret := range secrets {
		if at := strings.Index(log.String(), secret); at >= 0 {
			t.Errorf("log contains %q: %s", secret, log.String()[max(0, at-200):at+len(secret)])
		}
	}
	if log.Len() < 10_000 {
		t.Errorf("log has only %d bytes", log.Len())
	}
}

// TestDrippedBodies checks that clients that send a question, a file or a key byte by byte
// are disconnected.
func TestDrippedBodies(t *testing.T) {
	for path, code := range map[string]string{"/api/ask": "unreadable_body", "/api/documents?name=a.md": "", "/key": "bad_form"} {
		t.Run(path, func(t *testing.T) {
			uploads := uploadFolder(t)
			synctest.Test(t, func(t *testing.T) {
				k := newKeyed(t, func(o *Options) { o.UploadFolders = oneFolder{Uploads: uploads} })
				client := pipeTo(t, k)
				if _, err := fmt.Fprintf(client, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: "+
					"application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n", path, k.write); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				dropped := make(chan struct{})
				defer close(dropped)
				go func() {
					tick := time.NewTicker(time.Second)
					defer tick.Stop()
					for {
						if _, err := client.Write([]byte("x")); err != nil {
							return
						}
						select {
						case <-tick.C:
						case <-dropped:
							return
						}
					}
				}()
				reply, err := io.ReadAll(client)
				if took := time.Since(began); took > bodyTimeout+time.Second {
					t.Errorf("disconnected after %v, %v", took, err)
				}
				if !strings.Contains(string(reply), code) {
					t.Errorf("reply = %s", reply)
				}
			})
		})
	}
}

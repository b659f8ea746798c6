//go:build unix

package state

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"ibid/retrieve"
	"ibid/retrieve/state/statetest"
)

const testPassword = "a-secret-never-shown"

// A serverChild is a server that a test starts and kills.
type serverChild struct {
	t       *testing.T
	name    string
	args    []string
	log     *bytes.Buffer
	cmd     *exec.Cmd
	gone    chan struct{}
	address string // host and port
}

// runAsNobody makes a program run as the user nobody, since servers refuse to run as root.
func runAsNobody(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	cmd.Dir = "/"
	return cmd
}

// makeNobodyFolder makes a folder that the user nobody can reach and write to.
func makeNobodyFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ibid-test-")
	must(t, err)
	t.Cleanup(func() {
		must(t, os.RemoveAll(dir))
	})
	if os.Getuid() == 0 {
		must(t, os.Chown(dir, 65534, 65534))
	}
	return dir
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

func (c *serverChild) start() {
	c.t.Helper()
	c.log = new(bytes.Buffer)
	c.cmd = runAsNobody(exec.Command(c.name, c.args...))
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	must(c.t, c.cmd.Start())
	gone := make(chan struct{})
	c.gone = gone
	go func() {
		_ = c.cmd.Wait() // killed
		close(gone)
	}()
	for range 6000 {
		if conn, err := net.Dial("tcp", c.address); err == nil {
			must(c.t, conn.Close())
			return
		}
		select {
		case <-gone:
			c.t.Fatalf("%s ended: %s", c.name, c.log)
		case <-time.After(50 * time.Millisecond):
		}
	}
	c.t.Fatalf("%s is not listening", c.name)
}

// kill ends the server and all its processes at once, like kill -9.
func (c *serverChild) kill() {
	select {
	case <-c.gone: // killed before
		return
	default:
	}
	must(c.t, syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL))
	<-c.gone
	// Processes that the server started are not children of this one.
	for syscall.Kill(-c.cmd.Process.Pid, 0) == nil {
		<-time.After(10 * time.Millisecond)
	}
}

// ownServer creates a PostgreSQL server for the test and starts it, with settings like
// "wal_level=minimal".
func ownServer(t *testing.T, settings ...string) (server *serverChild, address string) {
	t.Helper()
	bin := os.Getenv("IBID_TEST_POSTGRES_BIN")
	if bin == "" {
		t.Skip("IBID_TEST_POSTGRES_BIN is not set to the folder of PostgreSQL's programs: .ci/postgres installs them")
	}
	dir := makeNobodyFolder(t)
	secret := filepath.Join(dir, "password")
	must(t, os.WriteFile(secret, []byte(testPassword), 0o644))
	data := filepath.Join(dir, "data")
	out, err := runAsNobody(exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "ibid", "-E", "UTF8", "--locale=C",
		"--auth=scram-sha-256", "--pwfile="+secret, "--no-sync")).CombinedOutput()
	if err != nil {
		t.Fatalf("running initdb: %v: %s", err, out)
	}
	port := freePort(t)
	c := &serverChild{t: t, name: filepath.Join(bin, "postgres"), address: "127.0.0.1:" + port,
		args: []string{"-D", data, "-h", "127.0.0.1", "-p", port, "-c", "unix_socket_directories=", "-c", "max_connections=50"}}
	for _, setting := range settings {
		c.args = append(c.args, "-c", setting)
	}
	c.start()
	t.Cleanup(c.kill)
	return c, fmt.Sprintf("postgres://ibid:%s@127.0.0.1:%s/postgres", testPassword, port)
}

// TestServerKilled kills the server with -9 repeatedly while several writers store.
func TestServerKilled(t *testing.T) {
	server, address := ownServer(t)
	testOutlasting(t, address, func(store func(changes int64)) {
		for range 4 {
			store(25)
			server.kill()
			server.start()
		}
	})
}

// TestStandby kills a server with -9 while several writers store, and promotes its
// synchronous standby. Both are in the address.
func TestStandby(t *testing.T) {
	server, address := ownServer(t, "synchronous_standby_names=*")
	bin, dir, port := filepath.Dir(server.name), filepath.Join(makeNobodyFolder(t), "data"), freePort(t)
	run := func(name string, args ...string) {
		if out, err := runAsNobody(exec.Command(filepath.Join(bin, name), args...)).CombinedOutput(); err != nil {
			t.Fatalf("running %s: %v: %s", name, err, out)
		}
	}
	for exec.Command(filepath.Join(bin, "pg_isready"), "-d", address).Run() != nil {
		<-time.After(50 * time.Millisecond) // it listens before it accepts connections
	}
	run("pg_basebackup", "-d", address, "-D", dir, "-R", "-c", "fast", "--no-sync")
	standby := &serverChild{t: t, name: server.name, address: "127.0.0.1:" + port,
		args: []string{"-D", dir, "-h", "127.0.0.1", "-p", port, "-c", "unix_socket_directories=", "-c", "max_connections=50"}}
	standby.start()
	t.Cleanup(standby.kill)
	both := strings.Replace(address, server.address, server.address+","+standby.address, 1) + "?target_session_attrs=read-write"
	testOutlasting(t, both, func(store func(changes int64)) {
		store(50)
		server.kill()
		run("pg_ctl", "promote", "-D", dir)
		store(50)
	})
}

// testOutlasting has several writers store on a server while happens disturbs it: every acknowledged document
// must exist afterwards, undamaged; other documents do not count. The function that it passes to f
// waits until the given number of further changes are stored.
func testOutlasting(t *testing.T, address string, happens func(store func(changes int64))) {
	t.Helper()
	ctx := t.Context()
	const writers = 3
	var stores []*Store
	for range writers {
		stores = append(stores, openTest(t, address))
	}
	ready(t, stores[0], "a")
	var acknowledged [writers][5]atomic.Int64 // the version of each writer's documents
	var all atomic.Int64
	done := make(chan struct{})
	var writing sync.WaitGroup
	for w, e := range stores {
		writing.Go(func() {
			for version := int64(1); ; version++ {
				d := int(version) % 5
				if err := replace(e, "a", fmt.Sprintf("%d-%d", w, d),
					fmt.Sprintf("boat version%d", version), fmt.Sprintf("sea version%d", version)); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				acknowledged[w][d].Store(version)
				all.Add(1)
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	happens(func(changes int64) {
		for until := all.Load() + changes; all.Load() < until && !t.Failed(); {
			<-time.After(time.Millisecond)
		}
	})
	close(done)
	writing.Wait()
	reader := openTest(t, address)
	for w := range writers {
		for d := range 5 {
			version := acknowledged[w][d].Load()
			if version == 0 {
				continue
			}
			doc, err := reader.Document(ctx, fmt.Sprintf("a/%d-%d", w, d))
			must(t, err)
			if want := fmt.Sprintf("boat version%d\nsea version%[1]d", version); doc.Text != want {
				t.Errorf("%s = %q, but %q was acknowledged", doc.ID, doc.Text, want)
			}
		}
	}
	t.Logf("figure: %d changes of %d writers were acknowledged", all.Load(), writers)
	var f follower
	f.same(t, reader)
}

// TestServerOutage stops a server while a library is open: reading and writing must fail clearly and
// in time, and work again when the server is back. An operation that waits for the server reports
// that once.
func TestServerOutage(t *testing.T) {
	server, address := ownServer(t)
	ctx := t.Context()
	patient := openTest(t, address) // which waits until the server is stopped
	var reports atomic.Int64
	patient.report = func(error) { reports.Add(1) }
	e, err := Open(ctx, address, Options{Wait: 300 * time.Millisecond})
	must(t, err)
	defer e.Close()
	ready(t, e, "a")
	server.kill()
	_, err = e.Documents(ctx, retrieve.Filter{})
	for what, err := range map[string]error{"reading": err, "writing": e.Delete(ctx, "a/b")} {
		if !errors.Is(err, retrieve.ErrUnavailable) || !strings.Contains(err.Error(), "postgres://127.0.0.1:") ||
			!strings.Contains(err.Error(), "check that the server runs") || strings.Contains(err.Error(), testPassword) {
			t.Errorf("%s while the server is stopped: err = %v", what, err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := patient.Documents(limited, retrieve.Filter{}); err == nil {
		t.Error("a stopped server was read")
	}
	waiting := make(chan error)
	for outage := range int64(2) {
		server.kill() // the first attempt fails
		go func() { waiting <- patient.Delete(ctx, "a/none") }()
		for reports.Load() <= outage {
			<-time.After(10 * time.Millisecond)
		}
		server.start()
		if err := <-waiting; err != nil || reports.Load() != outage+1 {
			t.Errorf("waiting call: %v, %d reports, want one", err, reports.Load())
		}
	}
	if roots, err := e.Roots(ctx); err != nil || len(roots) != 1 {
		t.Errorf("Roots = %v, %v", roots, err)
	}
}

// TestPooler runs tests through PgBouncer in transaction mode, which gives each transaction a
// session that other transactions have used, with fewer sessions than clients.
func TestPooler(t *testing.T) {
	server := statetest.Server(t)
	pooler, err := exec.LookPath("pgbouncer")
	if err != nil {
		if pooler, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("PgBouncer is not installed (Debian package pgbouncer)")
		}
	}
	u, err := url.Parse(server)
	must(t, err)
	login := "user=" + u.User.Username()
	if password, set := u.User.Password(); set {
		login += " password=" + password
	}
	dir := makeNobodyFolder(t)
	port := freePort(t)
	settings := filepath.Join(dir, "pgbouncer.ini")
	err = os.WriteFile(settings, fmt.Appendf(nil, `[databases]
* = host=%s port=%s %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
`, u.Hostname(), u.Port(), login, port), 0o644)
	must(t, err)
	c := &serverChild{t: t, name: pooler, args: []string{settings}, address: "127.0.0.1:" + port}
	c.start()
	t.Cleanup(c.kill)
	pooled := fmt.Sprintf("postgres://ibid@127.0.0.1:%s%s?sslmode=disable", port, u.Path)
	t.Setenv(statetest.Env, pooled)
	for name, test := range map[string]func(*testing.T){"Stories": TestStories, "Together": TestTogether, "Odd": TestOdd} {
		t.Run(name, test)
	}
	t.Run("Plans", func(t *testing.T) {
		s := openTest(t, statetest.Schema(t))
		var readers errgroup.Group
		for range 8 { // more than there are sessions
			readers.Go(func() error {
				for range 50 {
					if _, _, err := s.Revision(t.Context()); err != nil {
						return err
					}
					if _, err := s.Era(t.Context(), 1); err != nil {
						return err
					}
				}
				return nil
			})
		}
		must(t, readers.Wait())
		if !s.planned.Load() {
			t.Error("no session lacked the statement of another")
		}
	})
}

// TestServerEra checks that a session on another server begins an era, and that a session on the
// same server does not.
func TestServerEra(t *testing.T) {
	s := openTest(t, statetest.Schema(t))
	session := func() int64 {
		s.write.SetMaxIdleConns(0) // closes the idle ones
		s.write.SetMaxIdleConns(1)
		_, _, err := s.Revision(t.Context())
		must(t, err)
		return s.era.Load()
	}
	before := session()
	if now := session(); now != before {
		t.Errorf("era = %d, want %d on the same server", now, before)
	}
	s.serverStarted.Add(1)
	if now := session(); now == before {
		t.Error("another server did not begin a new era")
	}
}

// A cutter proxies connections between a client and a server, and cuts the connection at the next
// COMMIT: before the server has received it, or before the client has received the reply.
type cutter struct {
	to            string
	before, after atomic.Bool
	cuts          atomic.Int64
	// away refuses connections from the next cut on, until it is unset.
	away, closed atomic.Bool
	// mute withholds all data from the server.
	mute atomic.Bool
}

func (c *cutter) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		if c.closed.Load() && c.away.Load() {
			_ = client.Close() // no byte was sent on it
			continue
		}
		go c.relay(client)
	}
}

func (c *cutter) relay(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer server.Close()
	var cut atomic.Bool
	go func() {
		defer client.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := server.Read(b)
			if err != nil || cut.Load() {
				return // the server's reply to COMMIT is not passed on
			}
			if c.mute.Load() {
				continue
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		if bytes.Contains(b[:n], []byte("COMMIT\x00")) {
			if c.before.CompareAndSwap(true, false) {
				c.closed.Store(true)
				c.cuts.Add(1)
				return
			}
			if c.after.CompareAndSwap(true, false) {
				c.cuts.Add(1)
				cut.Store(true)
			}
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
		if cut.Load() {
			<-time.After(200 * time.Millisecond) // for the server to commit
			return
		}
	}
}

// openThroughCutter opens the store at an address through a cutter.
func openThroughCutter(t *testing.T, address string) (c *cutter, through string, s *Store) {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	c = &cutter{to: u.Host}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	go c.serve(l)
	u.Host = l.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	q.Set("connect_timeout", "1")
	u.RawQuery = q.Encode()
	return c, u.String(), openTest(t, u.String())
}

// TestEncryption checks that errors of a server's encryption are reported immediately, since
// waiting would not help.
func TestEncryption(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	for _, c := range []struct{ sslmode, reply, want string }{
		{"require", "N", "accepts no encrypted connections"},
		{"verify-full", "S", "has a certificate that is not trusted"},
		{"verify-ca&sslrootcert=system", "S", "has a certificate that is not trusted"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		var server sync.WaitGroup
		tries := 0
		server.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				tries++
				if _, err := io.ReadFull(conn, make([]byte, 8)); err == nil {
					_, err = io.WriteString(conn, c.reply)
					if err == nil && c.reply == "S" {
						_ = tls.Server(conn, web.TLS).Handshake() // the client closes it
					}
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
		})
		_, err = Open(t.Context(), "postgres://ann@"+l.Addr().String()+"/x?sslmode="+c.sslmode, Options{Wait: time.Minute})
		must(t, l.Close())
		server.Wait()
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, retrieve.ErrUnavailable) || tries != 1 {
			t.Errorf("sslmode=%s: %v after %d tries, want %q", c.sslmode, err, tries, c.want)
		}
	}
}

// TestSilent has a server keep its connections without replying, as if its disk hung: opening,
// reading and writing must fail in time, and work again when it replies again.
func TestSilent(t *testing.T) {
	c, through, e := openThroughCutter(t, statetest.Schema(t))
	ctx := t.Context()
	ready(t, e, "a")
	e.wait, e.silence = 50*time.Millisecond, 200*time.Millisecond
	c.mute.Store(true)
	_, read := e.Roots(ctx)
	_, opened := Open(ctx, through, Options{Wait: e.wait, silence: e.silence})
	for what, err := range map[string]error{"opening": opened, "reading": read, "writing": e.Delete(ctx, "a/b")} {
		if !errors.Is(err, retrieve.ErrUnavailable) || !strings.Contains(err.Error(), "check that") {
			t.Errorf("%s while the server is silent: err = %v", what, err)
		}
	}
	c.mute.Store(false)
	e.wait, e.silence = serverWait, maxSilence
	if roots, err := e.Roots(ctx); err != nil || len(roots) != 1 {
		t.Errorf("Roots = %v, %v", roots, err)
	}
}

// TestCommitCut loses the connection during a COMMIT or its reply: each change must be made once.
func TestCommitCut(t *testing.T) {
	c, _, e := openThroughCutter(t, statetest.Schema(t))
	ctx := t.Context()
	ready(t, e, "a")
	put(t, e, "a", "first", "boat")
	for name, cut := range map[string]*atomic.Bool{"before": &c.before, "after": &c.after} {
		old, _, err := e.Revision(ctx)
		must(t, err)
		cuts := c.cuts.Load()
		cut.Store(true)
		if err := replace(e, "a", name, "boat"); err != nil {
			t.Fatalf("cut %s the commit: err = %v", name, err)
		}
		if c.cuts.Load() != cuts+1 {
			t.Fatalf("no connection was cut %s the commit, so the test shows nothing", name)
		}
		now, _, err := e.Revision(ctx)
		if err != nil || now != old+1 {
			t.Errorf("cut %s the commit: revision went from %d to %d: %v", name, old, now, err)
		}
	}
	new(follower).same(t, e)
}

// TestReusedTransactionNumber loses a COMMIT on its way to a server that then recovers from the death of
// one of its processes, without a restart, and assigns the number of the lost transaction to
// another. The change must still be made once.
func TestReusedTransactionNumber(t *testing.T) {
	// Uncommitted changes do not reach the disk before the crash.
	_, address := ownServer(t, "wal_level=minimal", "max_wal_senders=0", "wal_writer_delay=10s", "autovacuum=off")
	c, _, e := openThroughCutter(t, address)
	ctx := t.Context()
	ready(t, e, "a")
	put(t, e, "a", "first", "boat")
	for round := range 8 { // the server's own writes may come between
		old, _, err := e.Revision(ctx)
		must(t, err)
		direct, err := pgx.Connect(ctx, address)
		must(t, err)
		defer func() { _ = direct.Close(ctx) }() // whose process is killed; without a reference, its connection may be closed before
		var process int
		var started time.Time
		var next int64 // the number that the change gets
		must(t, direct.QueryRow(ctx, `SELECT pg_backend_pid(), pg_postmaster_start_time(),
			pg_snapshot_xmax(pg_current_snapshot())::text::bigint`).Scan(&process, &started, &next))
		cuts := c.cuts.Load()
		c.away.Store(true)
		c.before.Store(true)
		path := fmt.Sprint("lost", round)
		stored := make(chan error)
		go func() { stored <- replace(e, "a", path, "boat") }()
		for c.cuts.Load() == cuts {
			<-time.After(time.Millisecond)
		}
		again := recovered(t, address, process, started, next)
		c.away.Store(false)
		must(t, <-stored)
		if _, err := e.Document(ctx, "a/"+path); err != nil {
			t.Errorf("acknowledged change: %v", err)
		}
		if now, _, err := e.Revision(ctx); err != nil || now != old+1 {
			t.Errorf("revision went from %d to %d: %v", old, now, err)
		}
		new(follower).same(t, e)
		if again {
			return
		}
	}
	t.Fatal("no number was reused, so the test shows nothing")
}

// recovered kills a process of a server, which makes it recover, and reports whether the server
// then assigns the number of a transaction.
func recovered(t *testing.T, address string, process int, started time.Time, next int64) (again bool) {
	t.Helper()
	ctx := t.Context()
	witness, err := pgx.Connect(ctx, address)
	must(t, err)
	must(t, syscall.Kill(process, syscall.SIGKILL))
	// The server ends all other processes when it has noticed that.
	for witness.Ping(ctx) == nil {
		<-time.After(time.Millisecond)
	}
	var direct *pgx.Conn
	for range 6000 {
		if direct, err = pgx.Connect(ctx, address); err == nil {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	must(t, err)
	for range 20 {
		var number int64
		var now time.Time
		must(t, direct.QueryRow(ctx, `SELECT pg_current_xact_id()::text::bigint, pg_postmaster_start_time()`).Scan(&number, &now))
		if !now.Equal(started) {
			t.Fatal("the server was restarted, so the test shows nothing")
		}
		again = again || number == next
	}
	must(t, direct.Close(ctx))
	return again
}

// TestForeign refuses a schema with tables of another program.
func TestForeign(t *testing.T) {
	address := statetest.Schema(t)
	u, err := url.Parse(address)
	must(t, err)
	schema := pgx.Identifier{u.Query().Get("search_path")}.Sanitize()
	for _, table := range []string{"migrations (id int)", "documents (id int)"} {
		statetest.Exec(t, statetest.Server(t), `CREATE SCHEMA `+schema+`; CREATE TABLE `+schema+`.`+table)
		if _, err := Open(t.Context(), address, Options{}); err == nil || !strings.Contains(err.Error(), "another program") {
			t.Errorf("schema with the table %s: err = %v", table, err)
		}
		statetest.Exec(t, statetest.Server(t), `DROP SCHEMA `+schema+` CASCADE`)
	}
}

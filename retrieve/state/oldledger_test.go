package state

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"ibid/retrieve"
	"ibid/retrieve/state/statetest"
)

// oldLibrary opens a library of an older layout from its text.
func oldLibrary(t *testing.T, address string) *Store {
	t.Helper()
	if !strings.HasPrefix(address, "postgres") {
		text, err := os.ReadFile("testdata/layout1.sqlite.sql")
		must(t, err)
		s := fileStore(filepath.Join(t.TempDir(), FileName), Options{})
		must(t, s.connect())
		t.Cleanup(func() { must(t, s.disconnect()) })
		_, err = s.write.ExecContext(t.Context(), string(text))
		must(t, err)
		return s
	}
	text, err := os.ReadFile("testdata/layout2.postgres.sql")
	must(t, err)
	s := openTest(t, address+"_old")
	server, schema := os.Getenv(statetest.Env), pgx.Identifier{s.schema}.Sanitize()
	t.Cleanup(func() { onServer(t, server, `DROP SCHEMA `+schema+` CASCADE`) })
	// The tables of an old layout have the schema for themselves.
	onServer(t, server, `DROP SCHEMA `+schema+` CASCADE; CREATE SCHEMA `+schema+`; `+strings.ReplaceAll(string(text), "ibid.", schema+"."))
	return s
}

func TestCopyOldLedger(t *testing.T) {
	for _, damage := range []string{"", `UPDATE replies SET reply = x'00'`, `UPDATE specs SET spec = 1.5`,
		`UPDATE records SET caller = 'k2'`, `UPDATE record_events SET events = x'00'`,
		`UPDATE record_documents SET document = 'a/z' WHERE document = 'a/x'`, `UPDATE feedback SET rating = 0`,
		`UPDATE access_keys SET write = 1`, `UPDATE sessions SET started = started + 1`, `DROP TABLE access_keys`} {
		t.Run(damage, func(t *testing.T) {
			onBoth(t, func(t *testing.T, address string) {
				ctx := t.Context()
				if strings.HasPrefix(address, "postgres") && damage != "" {
					t.Skip("rows of a server had no checksums")
				}
				old, s := oldLibrary(t, address), openTest(t, address)
				if damage != "" {
					_, err := old.write.ExecContext(ctx, damage)
					must(t, err)
				}
				var lost []Damage
				must(t, s.update(ctx, func(into *tx) error {
					return old.view(ctx, func(from *tx) (err error) {
						lost, err = copyOldLedger(from, into)
						return err
					})
				}))
				if want := strings.HasPrefix(damage, "UPDATE"); (len(lost) > 0) != want {
					t.Errorf("lost: %v", lost)
				}
				if damage == "" {
					checkCopied(t, s)
					return
				}
				for table, lost := range map[string]bool{"specs": strings.Contains(damage, "specs"), "keys": strings.Contains(damage, "DROP")} {
					n := 0
					must(t, s.view(ctx, func(t *tx) error { return t.row(`SELECT count(*) FROM ` + table).Scan(&n) }))
					if (n == 0) != lost {
						t.Errorf("%d rows of %s", n, table)
					}
				}
			})
		})
	}
}

// checkCopied checks what the text of an old library holds.
func checkCopied(t *testing.T, s *Store) {
	t.Helper()
	ctx, l := t.Context(), s.Ledger()
	at := func(n int) time.Time { return time.Unix(4_000_000_000, 0).Add(time.Duration(n) * time.Second) }
	j, err := l.Latest(ctx, "ibid ask")
	must(t, err)
	want := retrieve.Job{ID: "job", Kind: "ibid ask", Started: at(0), Secret: []byte{0, 255}, Spec: []byte(`{"question":"When?"}`)}
	if diff := cmp.Diff(want, j); diff != "" {
		t.Errorf("the job (-want +got):\n%s", diff)
	}
	wantReply(t, s, "job", "k1", "reply", true)
	wantReply(t, s, "job", "k2", "", true)
	for i, documents := range [][]string{{"a/x", "a/y"}, nil} {
		want := retrieve.Record{ID: []string{"record 0", "record 1"}[i], Kind: "ask", By: "k1", Shared: i == 0, State: "done",
			Started: at(i), Ended: at(i + 5), Expires: at(1000), Spec: []byte("{}"), Events: []byte("event: done\n"), Documents: documents}
		got, err := l.Record(ctx, want.ID)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("a record: %v (-want +got):\n%s", err, diff)
		}
	}
	feedback, err := l.Feedback(ctx, 0, 10)
	must(t, err)
	if diff := cmp.Diff([]retrieve.Feedback{{Key: 2, Run: "record 0", By: "k1", Citation: 2, Rating: -1, Comment: "No: 'é\"", At: at(2)},
		{Key: 1, Run: "record 0", By: "k1", Citation: -1, Rating: 1, At: at(1)}}, feedback); diff != "" {
		t.Errorf("the feedback (-want +got):\n%s", diff)
	}
	ring, err := s.Keyring().Ring(ctx)
	must(t, err)
	if diff := cmp.Diff(retrieve.Ring{Keys: []retrieve.Key{
		{ID: "k1", Name: "the page", Digest: sha256.Sum256([]byte("one")), Write: true, Created: at(0)},
		{ID: "k2", Name: "a bot", Digest: sha256.Sum256([]byte("two")), Collections: []string{"law"},
			Created: at(1), Expires: at(100), Used: at(50)},
	}, Sessions: []retrieve.Session{session("k1", "token", at(3))}}, ring); diff != "" {
		t.Errorf("the keyring (-want +got):\n%s", diff)
	}
}

// What is before and after a damaged page is copied.
func TestCopyOldPages(t *testing.T) {
	ctx, s := t.Context(), openTest(t, filepath.Join(t.TempDir(), "data"))
	old := oldLibrary(t, "")
	const n = 500
	must(t, old.update(ctx, func(t *tx) error {
		for i := range n {
			key, reply := fmt.Sprintf("x%03d", i), bytes.Repeat([]byte{byte(i)}, 100)
			_, err := t.exec(`INSERT INTO replies (run, key, sum, reply) VALUES ('job', CAST(? AS TEXT), ?, ?)`,
				key, rowSum("job", key, reply), reply)
			if err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, old.disconnect())
	file, err := os.ReadFile(old.place)
	must(t, err)
	// The replies are in the last pages.
	at := bytes.Index(file, bytes.Repeat([]byte{n / 2 % 256}, 100)) / pageSize * pageSize
	clear(file[at : at+pageSize])
	must(t, os.WriteFile(old.place, file, 0o600))
	must(t, old.connect())
	var lost []Damage
	must(t, s.update(ctx, func(into *tx) error {
		return old.view(ctx, func(from *tx) (err error) {
			lost, err = copyOldLedger(from, into)
			return err
		})
	}))
	kept := 0
	must(t, s.view(ctx, func(t *tx) error { return t.row(`SELECT count(*) FROM replies`).Scan(&kept) }))
	if len(lost) != 1 || kept < n-2*copyPage-2*pageSize/100 || kept >= n+2 {
		t.Errorf("%d of %d replies are kept; lost: %v", kept, n, lost)
	}
	wantReply(t, s, "job", "k1", "reply", true)
	wantReply(t, s, "job", fmt.Sprintf("x%03d", n-1), string(bytes.Repeat([]byte{(n - 1) % 256}, 100)), true)
}

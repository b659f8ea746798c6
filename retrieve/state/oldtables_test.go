package state

import (
	"crypto/sha256"
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

func TestCopyOldTables(t *testing.T) {
	for _, damage := range []string{"", `UPDATE records SET caller = 'k2'`,
		`UPDATE record_events SET events = x'00'`, `UPDATE record_documents SET document = 'a/z' WHERE document = 'a/x'`,
		`UPDATE feedback SET rating = 1.5`, `UPDATE access_keys SET write = 1`, `DROP TABLE access_keys`} {
		t.Run(damage, func(t *testing.T) {
			onBoth(t, func(t *testing.T, address string) {
				if strings.HasPrefix(address, "postgres") && damage != "" {
					t.Skip("rows of a server had no checksums")
				}
				old, s := oldLibrary(t, address), openTest(t, address)
				if damage != "" {
					_, err := old.write.ExecContext(t.Context(), damage)
					must(t, err)
				}
				must(t, copyOldTables(t, old, s))
				lost, err := s.Damaged(t.Context())
				must(t, err)
				if want := strings.HasPrefix(damage, "UPDATE"); (len(lost) > 0) != want {
					t.Errorf("lost: %v", lost)
				}
				if damage == "" {
					checkCopied(t, s)
					return
				}
				if n := count(t, s, `SELECT count(*) FROM ibid.keys`); (n == 0) != strings.HasPrefix(damage, "DROP") {
					t.Errorf("%d keys", n)
				}
			})
		})
	}
}

func copyOldTables(t *testing.T, from, into *Store) error {
	m := migration{from: from, into: into, earlier: oldFile()}
	if from.dir == "" {
		m.earlier = oldServer()
	}
	must(t, into.update(t.Context(), func(t *tx) { t.set(settingSource, "x") }))
	return m.together(t.Context(), m.tail)
}

// checkCopied checks the copy of an old library.
func checkCopied(t *testing.T, s *Store) {
	t.Helper()
	ctx, l := t.Context(), s.Ledger()
	at := func(n int) time.Time { return time.Unix(4_000_000_000, 0).Add(time.Duration(n) * time.Second) }
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
	}}, ring); diff != "" {
		t.Errorf("the keyring (-want +got):\n%s", diff)
	}
}

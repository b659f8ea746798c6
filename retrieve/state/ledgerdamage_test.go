package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ibid/data/datatest"
	"ibid/retrieve"
)

// sampleRows is the number of rows of each kind in a ledgerSample.
const sampleRows = 60

// ledgerSample fills the ledger and the keyring of a new library, adds and deletes as many rows
// again, and returns its file.
func ledgerSample(t *testing.T) []byte {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "sample"), Options{})
	must(t, err)
	ctx := ready(t, s, "a")
	put(t, s, "a", "x", "boat")
	for _, gone := range []bool{true, false} {
		must(t, s.update(ctx, func(t *tx) {
			for i := range sampleRows {
				j, r, f, k, x := sampleRow(i, gone)
				t.insert("specs", specColumns, "", []any{j.ID, j.Kind, j.Started.UnixMicro(), j.Secret, j.Spec})
				t.insert("replies", replyColumns, "", []any{j.ID, "k", len(j.Spec), j.Spec})
				t.insertRecord(r)
				t.insertFeedback(f)
				t.insertKey(k)
				t.insert("sessions", sessionColumns, "", []any{x.Digest, x.Key, retrieve.Seconds(x.Started)})
			}
			t.mendLedger()
		}))
		for i := range sampleRows {
			if j, r, f, k, _ := sampleRow(i, gone); gone {
				must(t, errors.Join(s.Ledger().End(ctx, j.ID), s.Ledger().ForgetRecord(ctx, r.ID), s.Keyring().Revoke(ctx, k.ID)))
				execute(t, s, `DELETE FROM feedback WHERE key = ?`, f.Key)
			}
		}
	}
	must(t, s.Close())
	file, err := os.ReadFile(s.place)
	must(t, err)
	return file
}

// sampleRow returns the rows with a number, or the rows that are deleted again.
func sampleRow(i int, gone bool) (retrieve.Job, retrieve.Record, retrieve.Feedback, retrieve.Key, retrieve.Session) {
	id := fmt.Sprintf("%03d", i)
	if gone {
		id = "gone " + id
	}
	at := time.Unix(4_000_000_000+int64(i), 0)
	spec := bytes.Repeat([]byte(id), 40)
	return retrieve.Job{ID: id, Kind: "ask", Started: at, Secret: []byte(id), Spec: spec},
		retrieve.Record{ID: id, Kind: "ask", By: "k", State: "done", Started: at, Ended: at, Expires: at, Spec: spec, Events: spec,
			Documents: []string{"a/x"}},
		retrieve.Feedback{Key: int64(i + 1), Run: id, By: "k", Rating: 1, At: at, Comment: id},
		retrieve.Key{ID: id, Name: "key " + id, Digest: sha256.Sum256([]byte(id)), Created: at, Collections: []string{id}},
		session(id, id, at)
}

// readLedger reads all rows of a ledgerSample.
func readLedger(ctx context.Context, s *Store) error {
	_, keys := s.Keyring().Ring(ctx)
	_, feedback := s.Ledger().Feedback(ctx, 0, 10*sampleRows)
	all := []error{keys, feedback}
	for i := range sampleRows {
		id := fmt.Sprintf("%03d", i)
		_, job := s.Ledger().Job(ctx, id)
		_, _, reply := s.Ledger().Reply(ctx, id, "k")
		_, record := s.Ledger().Record(ctx, id)
		all = append(all, job, reply, record)
	}
	return errors.Join(all...)
}

// addToLedger begins a job and adds a key.
func addToLedger(ctx context.Context, s *Store, id string) error {
	at := time.Unix(4_000_000_000, 0)
	err := s.Ledger().Begin(ctx, retrieve.Job{ID: id, Started: at, Worker: "w", Left: time.Minute})
	if err == nil {
		err = s.Ledger().KeepReply(ctx, id, "w", "k", []byte("reply"))
	}
	return errors.Join(err, s.Keyring().Add(ctx, retrieve.Key{ID: id, Name: id, Created: at}))
}

// checkLedger checks that all existing rows are unchanged and that no deleted row exists. It
// returns the number of lost rows.
func checkLedger(t *testing.T, s *Store) (lost int) {
	t.Helper()
	ctx, l := t.Context(), s.Ledger()
	ring, err := s.Keyring().Ring(ctx)
	must(t, err)
	feedback, err := l.Feedback(ctx, 0, 10*sampleRows)
	must(t, err)
	n := 0
	for i := range sampleRows {
		j, r, f, k, x := sampleRow(i, false)
		job, err := l.Job(ctx, j.ID)
		lost += missingOr(t, j, job, err)
		reply, ok, err := l.Reply(ctx, j.ID, "k")
		if must(t, err); ok && !bytes.Equal(reply, j.Spec) || !ok && len(reply) > 0 {
			t.Errorf("reply = %q", reply)
		}
		record, err := l.Record(ctx, r.ID)
		lost += missingOr(t, r, record, err)
		for _, other := range feedback {
			if other.Key == f.Key {
				n += 1 - missingOr(t, f, other, nil)
			}
		}
		for _, other := range ring.Keys {
			if other.ID == k.ID {
				n += 1 - missingOr(t, k, other, nil)
			}
		}
		for _, other := range ring.Sessions {
			if other.Digest == x.Digest {
				n += 1 - missingOr(t, x, other, nil)
			}
		}
		gone, _, _, _, _ := sampleRow(i, true)
		if _, err := l.Job(ctx, gone.ID); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("deleted job: err = %v, want ErrNotFound", err)
		}
		if _, err := l.Record(ctx, gone.ID); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("deleted record: err = %v, want ErrNotFound", err)
		}
	}
	for _, k := range ring.Keys {
		if k.ID == "last" || strings.HasPrefix(k.ID, "new ") {
			n++
			lost++
		}
	}
	if all := len(feedback) + len(ring.Keys) + len(ring.Sessions); all != n {
		t.Errorf("%d rows do not belong to the sample", all-n)
	}
	return lost + 3*sampleRows - n
}

func missingOr[V any](t *testing.T, want, got V, err error) int {
	t.Helper()
	if errors.Is(err, retrieve.ErrNotFound) || errors.Is(err, errRow) {
		return 1
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("err = %v (-want +got):\n%s", err, diff)
	}
	return 0
}

// TestLedgerDamage damages a file that consists mostly of the ledger.
func TestLedgerDamage(t *testing.T) {
	t.Parallel()
	file := ledgerSample(t)
	random := rand.New(rand.NewPCG(5, 6))
	lost, cases := 0, datatest.Cases(t, 400)
	for n := range cases + 1 {
		ctx, dir := context.Background(), t.TempDir()
		damaged, what := bytes.Clone(file), "nothing"
		if n == 0 { // all rows are saved from an undamaged file
			must(t, os.WriteFile(filepath.Join(dir, marker), nil, 0o600))
		} else {
			damaged, what = damageFile(damaged, random, n)
		}
		t.Run(what, func(t *testing.T) {
			must(t, os.WriteFile(filepath.Join(dir, FileName), damaged, 0o600))
			s, err := Open(ctx, dir, Options{})
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			for n := 0; n < 3 && errors.Is(errors.Join(readLedger(ctx, s), addToLedger(ctx, s, fmt.Sprint("new ", n))), ErrDamaged); n++ {
				must(t, s.Close()) // the next start repairs it
				s, err = Open(ctx, dir, Options{})
				must(t, err)
			}
			must(t, addToLedger(ctx, s, "last"))
			n := checkLedger(t, s)
			t.Logf("%d lost", n)
			if lost += n; what == "nothing" && n > 0 {
				t.Errorf("%d rows are lost", n)
			}
		})
	}
	t.Logf("%d rows of %d in %d files were lost", lost, 5*sampleRows*cases, cases)
}

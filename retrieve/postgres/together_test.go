package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// checkCounts compares what is counted with the rows that there are, and looks
// for rows that belong to no document.
func checkCounts(t *testing.T, e *Engine) {
	t.Helper()
	ctx := t.Context()
	err := e.view(ctx, func(s *session) error {
		got, _, err := readTotals(ctx, s)
		if err != nil {
			return err
		}
		var want totals
		err = s.row(ctx, `SELECT (SELECT count(*) FROM ibid.documents), (SELECT count(*) FROM ibid.chunks)`).Scan(&want.documents, &want.chunks)
		if err != nil {
			return err
		}
		frequency := make(map[string]int)
		rows, err := s.query(ctx, `SELECT terms FROM ibid.chunks`)
		if err != nil {
			return err
		}
		var packed []byte
		_, err = pgx.ForEachRow(rows, []any{&packed}, func() error {
			terms, err := unpack(packed)
			want.length += int64(terms.length)
			for _, c := range terms.counts {
				frequency[c.Term]++
			}
			return err
		})
		if err != nil {
			return err
		}
		if got != want {
			t.Errorf("the totals are %+v, want %+v", got, want)
		}
		rows, err = s.query(ctx, `SELECT term, sum(chunks) FROM ibid.postings GROUP BY term`)
		if err != nil {
			return err
		}
		var term []byte
		var n int
		_, err = pgx.ForEachRow(rows, []any{&term, &n}, func() error {
			if frequency[string(term)] != n {
				t.Errorf("%q stands in %d chunks, and %d are counted", term, frequency[string(term)], n)
			}
			delete(frequency, string(term))
			return nil
		})
		if err != nil {
			return err
		}
		if len(frequency) > 0 {
			t.Errorf("these terms have no postings: %v", frequency)
		}
		spaces, err := readSpaces(ctx, s)
		if err != nil {
			return err
		}
		for _, v := range spaces {
			if v.dimensions == 0 || v.next {
				continue
			}
			var vectors int64
			if err := s.row(ctx, `SELECT count(*) FROM `+v.table()).Scan(&vectors); err != nil {
				return err
			}
			if vectors != want.chunks {
				t.Errorf("there are %d vectors of %d chunks", vectors, want.chunks)
			}
		}
		var stray int
		err = s.row(ctx, `SELECT (SELECT count(*) FROM ibid.chunks WHERE key >> 20 NOT IN (SELECT key FROM ibid.documents))
			+ (SELECT count(*) FROM ibid.texts WHERE document NOT IN (SELECT key FROM ibid.documents))`).Scan(&stray)
		if stray != 0 {
			t.Errorf("%d rows belong to no document", stray)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestOpenTogether has several servers lay out one schema at once.
func TestOpenTogether(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		address := newSchema(t, server)
		var starting sync.WaitGroup
		for i := range 6 {
			starting.Go(func() {
				e, err := Open(t.Context(), address, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := e.AddRoot(t.Context(), fmt.Sprintf("/srv/%d/a", i%3), ""); err != nil {
					t.Error(err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		starting.Wait()
		roots, err := openTest(t, address).Roots(t.Context())
		if err != nil || len(roots) != 3 || roots[0].Name != "a" || roots[2].Name != "a-3" {
			t.Errorf("the roots are %v, %v", roots, err)
		}
	})
}

// TestTogether has several servers change the same documents at once, while
// another one watches the revision: what it sees changes only with it, and in
// the end everything is counted.
func TestTogether(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		address := newSchema(t, server)
		ctx := t.Context()
		first := openTest(t, address)
		if err := first.SetSpace(ctx, "enginetest/4"); err != nil {
			t.Fatal(err)
		}
		for _, root := range []string{"a", "b"} {
			if _, err := first.AddRoot(ctx, "/srv/"+root, ""); err != nil {
				t.Fatal(err)
			}
		}
		var writing, watching sync.WaitGroup
		for w := range 4 {
			e := openTest(t, address)
			writing.Go(func() {
				r := rand.New(rand.NewPCG(3, uint64(w)))
				for i := range 40 {
					if err := change(ctx, e, r, fmt.Sprintf("%d-%d", w, i)); err != nil {
						t.Errorf("the writer %d: %v", w, err)
						return
					}
				}
			})
		}
		done := make(chan struct{})
		watcher := openTest(t, address)
		watching.Go(func() {
			var last int64
			var seen string
			for {
				select {
				case <-done:
					return
				default:
				}
				var revision int64
				var now string
				err := watcher.view(ctx, func(s *session) (err error) {
					if _, revision, err = readTotals(ctx, s); err != nil {
						return err
					}
					return s.row(ctx, `SELECT coalesce(string_agg(encode(id, 'hex') || ':' || key, ' ' ORDER BY key), '') FROM ibid.documents`).Scan(&now)
				})
				switch {
				case err != nil:
					t.Error(err)
					return
				case revision < last:
					t.Errorf("the revision went back from %d to %d", last, revision)
				case revision == last && now != seen:
					t.Errorf("the documents changed, and the revision stayed %d", revision)
				}
				last, seen = revision, now
			}
		})
		writing.Wait()
		close(done)
		watching.Wait()
		checkCounts(t, first)
	})
}

// change does something to one of few documents.
func change(ctx context.Context, e *Engine, r *rand.Rand, version string) error {
	root, path := []string{"a", "b"}[r.IntN(2)], fmt.Sprint(r.IntN(4))
	var texts []string
	var vectors [][]float32
	for i := range 1 + r.IntN(4) {
		texts = append(texts, fmt.Sprintf("boat %d of version %s", i, version))
		vectors = append(vectors, enginetest.Vector(float64(r.IntN(90))))
	}
	doc, chunks := enginetest.Document(root, path, texts...)
	var err error
	switch r.IntN(8) {
	case 0:
		err = e.Delete(ctx, doc.ID)
	case 1:
		var stored *ingest.Document
		if stored, err = e.Document(ctx, doc.ID); err == nil {
			to := *stored
			to.Path, to.Title = fmt.Sprint(r.IntN(4)), "Another title "+version
			to.ID = to.Root + "/" + to.Path
			if err = e.Rename(ctx, doc.ID, &to); err != nil && strings.Contains(err.Error(), "another content") {
				err = nil // another writer was first
			}
		}
	default:
		err = e.Replace(ctx, doc, chunks, vectors)
	}
	if errors.Is(err, retrieve.ErrNotFound) {
		return nil
	}
	return err
}

// TestFold folds the totals while others add to them: the sum stays.
func TestFold(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		address := newSchema(t, server)
		ctx := t.Context()
		const writers, rounds = 4, 60
		var writing sync.WaitGroup
		for range writers {
			e := openTest(t, address)
			writing.Go(func() {
				for range rounds {
					if err := e.update(ctx, func(s *session) error { return e.changed(ctx, s, totals{1, 2, 3}) }); err != nil {
						t.Error(err)
					}
					if err := e.update(ctx, func(s *session) error { return fold(ctx, s) }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		writing.Wait()
		err := openTest(t, address).view(ctx, func(s *session) error {
			got, revision, err := readTotals(ctx, s)
			if want := (totals{writers * rounds, 2 * writers * rounds, 3 * writers * rounds}); got != want || revision != writers*rounds {
				t.Errorf("the totals are %+v at revision %d, want %+v", got, revision, want)
			}
			var rows int
			if err := s.row(ctx, `SELECT count(*) FROM ibid.totals`).Scan(&rows); err != nil {
				return err
			}
			if rows > 20 {
				t.Errorf("the totals have %d rows", rows)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestPrune deletes the rows of old transactions while others are adding theirs,
// and no newer ones.
func TestPrune(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		address := newSchema(t, server)
		ctx := t.Context()
		e := openTest(t, address)
		count := func() (rows int) {
			t.Helper()
			if err := e.view(ctx, func(s *session) error { return s.row(ctx, `SELECT count(*) FROM ibid.commits`).Scan(&rows) }); err != nil {
				t.Fatal(err)
			}
			return rows
		}
		const old = 3000
		err := e.update(ctx, func(s *session) error {
			_, err := s.exec(ctx, `INSERT INTO ibid.commits SELECT gen_random_uuid(), clock_timestamp() - interval '2 hours' FROM generate_series(1, $1)`, old)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		newer := count() - old
		if newer < 1 {
			t.Fatalf("%d rows are newer: this proves nothing", newer)
		}
		var pruning sync.WaitGroup
		const servers, rounds = 3, 4
		for range servers {
			other := openTest(t, address)
			newer++ // laying out
			pruning.Go(func() {
				for range rounds {
					if err := other.update(ctx, func(s *session) error { return prune(ctx, s, commitsKept) }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		pruning.Wait()
		if rows := count(); rows != newer+servers*rounds {
			t.Errorf("%d rows are left, want %d", rows, newer+servers*rounds)
		}
	})
}

// TestBytes stores what PostgreSQL's text refuses, in every place: NUL, bytes that
// are no UTF-8, and names that no index takes.
func TestBytes(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		ctx := t.Context()
		e := openTest(t, newSchema(t, server))
		if err := e.SetSpace(ctx, "enginetest/4"); err != nil {
			t.Fatal(err)
		}
		root, err := e.AddRoot(ctx, "/srv/a\xff'\\b", "col\x00\xfe")
		if err != nil {
			t.Fatal(err)
		}
		odd := "x\xff\x00\\'\"%_\u2028 é " + strings.Repeat("long/", 900)
		doc, chunks := enginetest.Document(root.Name, "folder\xfe/"+odd, "boat \x00 harbour\xff", "sea \\x00 {\"a,b\"} NULL")
		doc.Title, doc.Format = "title\x00\xfe", "fmt\xff"
		chunks[0].Heading, chunks[0].Anchor = "head\x00\xff", "anchor\x00"
		if err := e.Replace(ctx, doc, chunks, [][]float32{enginetest.Vector(0), enginetest.Vector(40)}); err != nil {
			t.Fatal(err)
		}
		got, err := e.Document(ctx, doc.ID)
		if err != nil || got.Text != doc.Text || got.Title != doc.Title || got.Path != doc.Path {
			t.Errorf("the document is %+v, %v", got, err)
		}
		for _, f := range []retrieve.Filter{{Root: root.Name}, {Collection: root.Collection}, {Document: doc.ID}, {PathPrefix: "folder\xfe/x\xff\x00"}, {PathPrefix: doc.Path}, {Format: doc.Format}} {
			ids, err := e.Dense(ctx, enginetest.Vector(0), 5, f)
			if err != nil || !slices.Equal(ids, []string{chunks[0].ID, chunks[1].ID}) {
				t.Errorf("Dense with %+v: %q, %v", f, ids, err)
			}
			ids, err = e.Lexical(ctx, retrieve.Terms("harbour"), 5, f)
			if err != nil || !slices.Equal(ids, []string{chunks[0].ID}) {
				t.Errorf("Lexical with %+v: %q, %v", f, ids, err)
			}
		}
		for _, f := range []retrieve.Filter{{PathPrefix: "folder\xff"}, {PathPrefix: doc.Path + "x"}, {PathPrefix: "folder\xfe/x\xff\x00\xff"}} {
			if any, err := e.Holds(ctx, f); err != nil || any {
				t.Errorf("Holds(%+v) = %v, %v", f, any, err)
			}
		}
		found, err := e.Candidates(ctx, []string{chunks[1].ID, chunks[0].ID})
		if err != nil || len(found) != 2 || found[0].Chunk != chunks[1] || found[1].Chunk != chunks[0] {
			t.Errorf("Candidates = %+v, %v", found, err)
		}
		part, err := e.Excerpt(ctx, doc.ID, 5, 7)
		if err != nil || part != doc.Text[5:7] {
			t.Errorf("Excerpt = %q, %v", part, err)
		}
		if err := e.KeepListing(ctx, root.Name, doc.ID, []byte{0, 255}); err != nil {
			t.Error(err)
		}
		if ids, err := e.Listings(ctx, root.Name); err != nil || !slices.Equal(ids, []string{doc.ID}) {
			t.Errorf("Listings = %q, %v", ids, err)
		}
		if n, err := e.DeleteRoot(ctx, root.Name); err != nil || n != 1 {
			t.Errorf("DeleteRoot = %d, %v", n, err)
		}
		checkCounts(t, e)
	})
}

// TestNewer refuses a schema that a newer program laid out.
func TestNewer(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		address := newSchema(t, server)
		e := openTest(t, address)
		err := e.update(t.Context(), func(s *session) error {
			_, err := s.exec(t.Context(), `INSERT INTO ibid.migrations (number) VALUES (9000)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), address, Options{}); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "9000") {
			t.Errorf("opening what is newer: %v", err)
		}
	})
}

// TestRenew opens a library whose terms an older version counted.
func TestRenew(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		address := newSchema(t, server)
		ctx := t.Context()
		e := openTest(t, address)
		if err := e.SetSpace(ctx, "enginetest/4"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.AddRoot(ctx, "/srv/a", ""); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"1", "2", "3"} {
			doc, chunks := enginetest.Document("a", path, "boats in harbours", "sea")
			if err := e.Replace(ctx, doc, chunks, [][]float32{enginetest.Vector(0), enginetest.Vector(40)}); err != nil {
				t.Fatal(err)
			}
		}
		err := e.update(ctx, func(s *session) error {
			key, err := keyOf(ctx, s, "a/2")
			if err != nil {
				return err
			}
			old := []chunkTerms{{[]retrieve.TermCount{{Term: "old", Count: 1}}, 1}, {[]retrieve.TermCount{{Term: "old", Count: 2}}, 2}}
			terms, err := readTerms(ctx, s, key)
			if err != nil {
				return err
			}
			if err := deletePostings(ctx, s, key, terms); err != nil {
				return err
			}
			if err := insertPostings(ctx, s, key, old); err != nil {
				return err
			}
			for i, o := range old {
				if _, err := s.exec(ctx, `UPDATE ibid.chunks SET terms = $2 WHERE key = $1`, chunkKey(key, i+1), o.pack()); err != nil {
					return err
				}
			}
			if _, err := s.exec(ctx, `UPDATE ibid.documents SET analysis = analysis - 1 WHERE key = $1`, key); err != nil {
				return err
			}
			return e.changed(ctx, s, totals{length: lengthOf(old) - lengthOf(terms)})
		})
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, e)
		told := 0
		again, err := Open(ctx, address, Options{Renewing: func(n int) { told += n }})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if told != 1 {
			t.Errorf("%d documents were told of", told)
		}
		ids, err := again.Lexical(ctx, retrieve.Terms("boat"), 9, retrieve.Filter{})
		if err != nil || !slices.Equal(ids, []string{"a/1#1", "a/2#1", "a/3#1"}) {
			t.Errorf("Lexical = %q, %v", ids, err)
		}
		checkCounts(t, again)
	})
}

// TestDimensions stores and finds vectors with every kind of index, and without.
func TestDimensions(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		for _, dimensions := range []int{3, maxPlainDimensions + 1, maxIndexedDimensions, maxIndexedDimensions + 1, maxHalvedDimensions, maxHalvedDimensions + 1, maxDimensions} {
			t.Run(fmt.Sprint(dimensions), func(t *testing.T) {
				ctx := t.Context()
				e := openTest(t, newSchema(t, server))
				e.few = 4
				if err := e.SetSpace(ctx, "enginetest/x"); err != nil {
					t.Fatal(err)
				}
				if _, err := e.AddRoot(ctx, "/srv/a", ""); err != nil {
					t.Fatal(err)
				}
				at := func(angle float64) []float32 {
					return append(make([]float32, dimensions-3), enginetest.Vector(angle)[:3]...)
				}
				var want []string
				for i := range 6 {
					doc, chunks := enginetest.Document("a", fmt.Sprint(i), "boat", "sea")
					if err := e.Replace(ctx, doc, chunks, [][]float32{at(float64(20 * i)), at(float64(20*i + 5))}); err != nil {
						t.Fatal(err)
					}
					want = append(want, chunks[0].ID, chunks[1].ID)
				}
				ids, err := e.Dense(ctx, at(0), 12, retrieve.Filter{})
				if err != nil || !slices.Equal(ids, want) {
					t.Errorf("Dense = %q, %v", ids, err)
				}
				var indexed bool
				err = e.view(ctx, func(s *session) error {
					spaces, err := readSpaces(ctx, s)
					if err == nil {
						indexed = spaces[0].indexed
					}
					return err
				})
				if err != nil || indexed != (dimensions <= maxHalvedDimensions) {
					t.Errorf("that there is an index is %v: %v", indexed, err)
				}
			})
		}
		t.Run("TooMany", func(t *testing.T) {
			ctx := t.Context()
			e := openTest(t, newSchema(t, server))
			if err := e.SetSpace(ctx, "enginetest/x"); err != nil {
				t.Fatal(err)
			}
			if _, err := e.AddRoot(ctx, "/srv/a", ""); err != nil {
				t.Fatal(err)
			}
			doc, chunks := enginetest.Document("a", "x", "boat")
			v := make([]float32, maxDimensions+1)
			v[0] = 1
			if err := e.Replace(ctx, doc, chunks, [][]float32{v}); err == nil || !strings.Contains(err.Error(), "16000 at most") {
				t.Errorf("storing a vector of too many dimensions: %v", err)
			}
		})
	})
}

// TestDeleteByTerms: what stands in the lists of terms is found by them, also
// where the server counted rows before the document came.
func TestDeleteByTerms(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		ctx := t.Context()
		e := openTest(t, newSchema(t, server))
		if err := e.SetSpace(ctx, "enginetest/4"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.AddRoot(ctx, "/srv/a", ""); err != nil {
			t.Fatal(err)
		}
		texts, vectors := make([]string, 3000), make([][]float32, 3000)
		for i := range texts {
			texts[i], vectors[i] = fmt.Sprintf("boat number%d", i), enginetest.Vector(20)
		}
		doc, chunks := enginetest.Document("a", "x", texts...)
		for range 2 {
			if err := e.Replace(ctx, doc, chunks, vectors); err != nil {
				t.Fatal(err)
			}
			err := e.update(ctx, func(s *session) error {
				_, err := s.exec(ctx, `ANALYZE ibid.postings`)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		terms := make([][]byte, 2000)
		for i := range terms {
			terms[i] = fmt.Appendf(nil, "number%d", i)
		}
		first, last := keyRange(1000) // which is not there yet
		err := e.update(ctx, func(s *session) error {
			rows, err := s.query(ctx, `EXPLAIN `+deleteTerms, terms, first, last)
			if err != nil {
				return err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if plan := strings.Join(lines, "\n"); err == nil && !strings.Contains(plan, "Index Cond: ((term = t.term) AND (key >= ") {
				t.Errorf("it is not looked up by its terms:\n%s", plan)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := e.DeleteRoot(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, e)
	})
}

// TestFarFromFilter finds what a filter lets through also where all of it is far
// from the question, and the index gives up before it comes there.
func TestFarFromFilter(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		ctx := t.Context()
		e := openTest(t, newSchema(t, server))
		e.few, e.scanned = 0, 1
		if err := e.SetSpace(ctx, "enginetest/4"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"near", "far"} {
			if _, err := e.AddRoot(ctx, "/srv/"+name, ""); err != nil {
				t.Fatal(err)
			}
		}
		for name, angle := range map[string]float64{"near": 0, "far": 150} {
			texts, vectors := make([]string, 2000), make([][]float32, 2000)
			if name == "far" {
				texts, vectors = texts[:100], vectors[:100] // more than one in exactShare
			}
			for i := range texts {
				texts[i], vectors[i] = "boat", enginetest.Vector(angle+float64(i)/100)
			}
			doc, chunks := enginetest.Document(name, "x", texts...)
			if err := e.Replace(ctx, doc, chunks, vectors); err != nil {
				t.Fatal(err)
			}
		}
		ids, err := e.Dense(ctx, enginetest.Vector(0), 3, retrieve.Filter{Root: "far"})
		if want := []string{"far/x#1", "far/x#2", "far/x#3"}; err != nil || !slices.Equal(ids, want) {
			t.Errorf("found %q, %v; want %q", ids, err, want)
		}
	})
}

// TestMigrate brings every older schema up to date, with what is in it.
func TestMigrate(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		ctx := t.Context()
		steps, err := fs.Glob(migrations, "migrations/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for newest := 1; newest < len(steps); newest++ {
			address := newSchema(t, server)
			before := openTest(t, address)
			err := pgx.BeginFunc(ctx, before.pool, func(tx pgx.Tx) error {
				s := &session{tx, before}
				if _, err := s.exec(ctx, `DROP SCHEMA `+pgx.Identifier{before.schema}.Sanitize()+` CASCADE`); err != nil {
					return err
				}
				if _, err := s.exec(ctx, `CREATE SCHEMA `+pgx.Identifier{before.schema}.Sanitize()); err != nil {
					return err
				}
				if _, err := s.exec(ctx, `CREATE TABLE ibid.migrations (number int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())`); err != nil {
					return err
				}
				for i, name := range steps[:newest] {
					text, err := migrations.ReadFile(name)
					if err != nil {
						return err
					}
					if _, err := s.exec(ctx, string(text)+fmt.Sprintf("; INSERT INTO ibid.migrations (number) VALUES (%d); INSERT INTO ibid.roots VALUES ('a', '/srv/a', 'default') ON CONFLICT DO NOTHING", i+1)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			e := openTest(t, address)
			if err := e.SetSpace(ctx, "enginetest/4"); err != nil {
				t.Fatal(err)
			}
			doc, chunks := enginetest.Document("a", "x", "boat")
			if err := e.Replace(ctx, doc, chunks, [][]float32{enginetest.Vector(0)}); err != nil {
				t.Errorf("at migration %d: %v", newest, err)
			}
			if err := e.Ledger().Begin(ctx, retrieve.Job{ID: "run", Kind: "test", Started: time.Now()}); err != nil {
				t.Errorf("at migration %d: %v", newest, err)
			}
			if err := e.Keyring().Add(ctx, retrieve.Key{ID: "key", Name: "key", Created: time.Now()}); err != nil {
				t.Errorf("at migration %d: %v", newest, err)
			}
			checkCounts(t, e)
		}
	})
}

// TestForeignSchema refuses a schema that another program uses, and one of which a
// part is missing, with what to do about it.
func TestForeignSchema(t *testing.T) {
	onServers(t, func(t *testing.T, server string) {
		for name, c := range map[string]struct{ before, after, want string }{
			"documents":  {before: `CREATE TABLE ibid.documents (x int)`, want: "not Ibid's"},
			"migrations": {before: `CREATE TABLE ibid.migrations (id int, migration text)`, want: "another program's"},
			"table":      {after: `DROP TABLE ibid.postings`, want: "it lacks postings, postings_term"},
			"index":      {after: `DROP INDEX ibid.documents_id`, want: "it lacks documents_id"},
			"all":        {before: `CREATE TABLE ibid.migrations (number int, applied timestamptz); INSERT INTO ibid.migrations VALUES (1)`, want: "it lacks"},
		} {
			t.Run(name, func(t *testing.T) {
				address := newSchema(t, server)
				at, err := url.Parse(address)
				if err != nil {
					t.Fatal(err)
				}
				schema := pgx.Identifier{at.Query().Get("search_path")}.Sanitize()
				do := func(sql string) {
					t.Helper()
					conn, err := pgx.Connect(t.Context(), server)
					if err != nil {
						t.Fatal(err)
					}
					_, err = conn.Exec(t.Context(), "BEGIN; "+strings.ReplaceAll(sql, "ibid.", schema+".")+"; COMMIT", pgx.QueryExecModeSimpleProtocol)
					if err := errors.Join(err, conn.Close(t.Context())); err != nil {
						t.Fatal(err)
					}
				}
				if c.before != "" {
					do("CREATE SCHEMA " + schema + "; " + c.before)
				} else {
					if err := openTest(t, address).Close(); err != nil {
						t.Fatal(err)
					}
					do(c.after)
				}
				_, err = Open(t.Context(), address, Options{Wait: time.Second})
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "search_path") {
					t.Errorf("opening says %v, want an error with %q", err, c.want)
				}
			})
		}
	})
}

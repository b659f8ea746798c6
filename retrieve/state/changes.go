package state

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"ibid/ingest"
	"ibid/retrieve"
)

// A change is a row of the table of changes.
type change struct {
	document int64 // 0 if the change does not concern a document
	revision int64 // set when it is written
	deleted  bool
	id       string // empty for a deleted document
	era      int64  // set when changes are listed
	aside    bool   // the document is damaged; set by latest
}

const changeColumns = "document, revision, deleted, id"

func (c *change) dest() []any { return []any{&c.document, &c.revision, &c.deleted, &c.id} }

func scanChange(r scanner) (c change, err error) {
	err = scanChecked(r, c.dest()...)
	return c, err
}

// recordChanges writes the changes of a transaction. It must be the last step before the commit: in
// PostgreSQL other transactions with changes wait from here until the commit, so that a follower
// never misses a revision that becomes visible after a higher one.
func (t *tx) recordChanges(changes ...change) {
	if len(changes) == 0 {
		return
	}
	// In PostgreSQL a statement must not change a row twice.
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.document, b.document) })
	t.written = value[int64](t, t.s.dialect.nextRevision, len(changes))
	revision := t.written - int64(len(changes))
	if revision < t.s.latest.Load() { // changes that this process has seen were lost
		t.s.era.Store(newEra())
	}
	if era := t.s.era.Load(); t.s.begun.Load() != era {
		t.exec(`DELETE FROM ibid.eras WHERE first > ?`, revision) // eras of lost changes
		t.insert("eras", "first, era", "", []any{revision + 1, era})
		t.began = era
	}
	rows := make([][]any, len(changes))
	for i, c := range changes {
		revision++
		rows[i] = []any{c.document, revision, c.deleted, c.id}
	}
	t.insert("changes", changeColumns,
		`ON CONFLICT (document) DO UPDATE SET revision = excluded.revision, deleted = excluded.deleted,
			id = excluded.id, sum = excluded.sum`, rows...)
}

// revision is the statement for the latest revision and its era.
const revision = `SELECT coalesce(max(revision), 0), ` +
	`coalesce((SELECT era FROM ibid.eras ORDER BY first DESC LIMIT 1), 0) FROM ibid.changes`

// Revision returns the revision and era of the latest change by any process.
func (s *Store) Revision(ctx context.Context) (n, era int64, err error) {
	err = inTransaction(ctx, s.viewOnce, func(t *tx) { check(t.row(revision).Scan(&n, &era)) }, "reading the revision")
	if err == nil {
		s.noteRevision(n)
	}
	return n, era, err
}

// noteRevision records that a revision was stored.
func (s *Store) noteRevision(n int64) {
	for latest := s.latest.Load(); n > latest && !s.latest.CompareAndSwap(latest, n); latest = s.latest.Load() {
	}
}

// Era returns the era of a revision.
func (s *Store) Era(ctx context.Context, revision int64) (era int64, err error) {
	err = s.viewOnce(ctx, func(t *tx) {
		for _, e := range t.eras(`WHERE first <= ? ORDER BY first DESC LIMIT 1`, revision) {
			era = e.era
		}
	})
	return era, err
}

// A begunEra is a row of the table of eras.
type begunEra struct{ first, era int64 }

// eras returns the selected rows of the table of eras. A damaged row has a number that no searcher
// knows, which makes searchers read all documents again; that is harmless.
func (t *tx) eras(which string, args ...any) []begunEra {
	whole, damaged := rowsOf(t, func(r scanner) (e begunEra, err error) {
		err = r.Scan(&e.first, &e.era)
		return e, err
	}, `SELECT first, era FROM ibid.eras `+which, args...)
	return append(whole, damaged...)
}

// The largest numbers of changes and chunks that one transaction reads.
const (
	changesAtOnce = maxList
	chunksAtOnce  = 4096
)

// Changes yields the changes after a revision, ordered by revision; see [retrieve.State]. Changes
// made meanwhile come last.
func (s *Store) Changes(ctx context.Context, space string, after int64) iter.Seq2[retrieve.Change, error] {
	return func(yield func(retrieve.Change, error) bool) {
		list, err := s.listChanges(ctx, space, after)
		for len(list) > 0 && err == nil {
			var changes []retrieve.Change
			var n int
			if changes, n, err = s.readChanges(ctx, space, list); err != nil {
				break
			}
			for _, c := range changes {
				if !yield(c, nil) {
					return
				}
			}
			after = list[n-1].revision
			if list = list[n:]; len(list) == 0 {
				list, err = s.listChanges(ctx, space, after)
			}
		}
		if err != nil {
			yield(retrieve.Change{}, fmt.Errorf("reading the changes after revision %d: %w", after, err))
		}
	}
}

// listChanges lists the changes after a revision.
func (s *Store) listChanges(ctx context.Context, space string, after int64) (list []change, err error) {
	err = s.view(ctx, func(t *tx) {
		t.spaceOf(space)
		condition := `revision > ? ORDER BY revision`
		if after == 0 {
			// The whole table is read in its own order, because a damaged index might hide rows.
			condition = `document >= ? ORDER BY document`
		}
		var bad []change
		list, bad = rowsOf(t, scanChange, `SELECT `+changeColumns+`, sum FROM ibid.changes WHERE `+condition, after)
		for _, c := range bad {
			t.markDamaged(c.document, damagedChange)
		}
		if after > 0 && slices.ContainsFunc(list, func(c change) bool { return c.revision <= after }) {
			check(s.requestRepair(&failure{message: fmt.Sprintf("%v: the index of the changes of %s contradicts their table", ErrDamaged, s.place),
				damaged: true}))
		}
		eras := t.eras(`ORDER BY first DESC`)
		for i, c := range list {
			if at := slices.IndexFunc(eras, func(e begunEra) bool { return e.first <= c.revision }); at >= 0 {
				list[i].era = eras[at].era
			}
		}
		if after > 0 {
			return
		}
		slices.SortFunc(list, func(a, b change) int { return cmp.Compare(a.revision, b.revision) })
		for _, number := range column[int64](t, `SELECT number FROM ibid.documents WHERE `+whole+`
			AND NOT EXISTS (SELECT 1 FROM ibid.changes WHERE changes.document = documents.number AND deleted = 0)`) {
			t.markDamaged(number, unlisted)
		}
	})
	return list, err
}

// spaceOf returns the space with the given name, and whether it is in use. If no vector of it is
// stored but documents are stored in another space, the error is a [*retrieve.SpaceError].
func (t *tx) spaceOf(name string) (of space, used bool) {
	all := t.spaces()
	if of = all.byName(name); of.Number == 0 {
		if stored := t.spaceOfDocuments(); stored != "" {
			check(&retrieve.SpaceError{Stored: stored, Wanted: name})
		}
	}
	return of, of.Number == all.Used
}

// readChanges reads as many of the first listed changes as fit into memory, and returns the number
// of listed changes that it has handled. It omits changes to documents that have changed again,
// because those are listed again.
func (s *Store) readChanges(ctx context.Context, space string, list []change) (changes []retrieve.Change, n int, err error) {
	err = s.view(ctx, func(t *tx) {
		of, used := t.spaceOf(space)
		changes, n = t.readChanges(of.Number, used, list[:min(len(list), changesAtOnce)])
	})
	return changes, n, err
}

// readChanges reads the first of the changes. In the space in use, a document that lacks a vector is
// damaged.
func (t *tx) readChanges(space int64, used bool, list []change) (changes []retrieve.Change, n int) {
	numbers := make([]int64, len(list))
	for i, c := range list {
		numbers[i] = c.document
	}
	documents := t.documents(numbers)
	latest := t.latest(numbers)
	chunks := 0
	var whole []int64
	for _, c := range list {
		d, there := documents[c.document]
		if n > 0 && chunks+d.Chunks > chunksAtOnce {
			break
		}
		n, chunks = n+1, chunks+d.Chunks
		now := latest[c.document]
		if now.revision != c.revision {
			continue
		}
		if there {
			whole = append(whole, c.document)
		} else if c.document != 0 && !now.deleted && !now.aside {
			t.markDamaged(c.document, "its row in the list of documents is missing")
		}
		changes = append(changes, retrieve.Change{Revision: c.revision, Era: c.era, Document: c.document, Deleted: c.document != 0 && !there})
	}
	rows, vectors := t.contents(space, whole)
	for i := range changes {
		if d, ok := documents[changes[i].Document]; ok {
			t.fillChange(&changes[i], &d, rows[d.Number], vectors, used)
		}
	}
	return changes, n
}

// Reasons why documents are damaged.
const (
	damagedRow    = "its row in the list of documents is damaged"
	damagedChange = "its row in the list of changes is damaged"
	unlisted      = "it is missing in the list of changes"
)

// documents returns up to maxList documents by number, if they are stored and undamaged.
func (t *tx) documents(numbers []int64) map[int64]documentRow {
	documents := make(map[int64]documentRow)
	list, args := inList(numbers)
	found, bad := rowsOf(t, scanDocument, `SELECT `+documentColumns+` FROM ibid.documents WHERE number IN `+list+` AND `+whole, args...)
	for _, d := range found {
		documents[d.Number] = d
	}
	for _, d := range bad {
		t.markDamaged(d.Number, damagedRow)
	}
	return documents
}

// contents returns the chunks of documents by document number, and their vectors by digest.
func (t *tx) contents(space int64, numbers []int64) (rows map[int64]documentChunks, vectors map[string][]float32) {
	slices.Sort(numbers)
	rows = make(map[int64]documentChunks)
	var digests []string
	for len(numbers) > 0 {
		n := 1 // consecutive numbers are read at once
		for n < len(numbers) && numbers[n] == numbers[n-1]+1 {
			n++
		}
		found := t.chunksBetween(numbers[0], numbers[n-1])
		maps.Copy(rows, found)
		for _, of := range found {
			digests = append(digests, digestsOf(of.rows)...)
		}
		numbers = numbers[n:]
	}
	slices.Sort(digests)
	return rows, t.vectors(space, slices.Compact(digests))
}

// latest returns the latest changes to up to maxList documents, if their rows are undamaged.
func (t *tx) latest(numbers []int64) map[int64]change {
	latest := make(map[int64]change, len(numbers))
	list, args := inList(numbers)
	for r := range t.rows(`SELECT `+changeColumns+`, sum, EXISTS (SELECT 1 FROM ibid.damage WHERE damage.document = changes.document)
		FROM ibid.changes WHERE document IN `+list, args...) {
		var c change
		var sum int64
		err := r.Scan(append(c.dest(), &sum, &c.aside)...)
		if err != nil || rowSum(c.dest()...) != sum {
			t.markDamaged(c.document, damagedChange)
			continue
		}
		latest[c.document] = c
	}
	return latest
}

// fillChange adds the document's data for searchers to a change. A damaged document becomes a deletion.
func (t *tx) fillChange(c *retrieve.Change, d *documentRow, chunks documentChunks, vectors map[string][]float32, used bool) {
	if damaged := chunks.damage(d); damaged != nil {
		c.Deleted = true
		t.damaged = append(t.damaged, damaged)
		return
	}
	c.Info = d.DocumentInfo
	c.Chunks = make([]retrieve.IndexChunk, len(chunks.rows))
	for i := range chunks.rows {
		row := &chunks.rows[i]
		v := vectors[string(row.digest)]
		if v == nil {
			*c = retrieve.Change{Revision: c.Revision, Document: c.Document, Deleted: true}
			if used {
				t.damaged = append(t.damaged, vectorError(d, row.Ordinal))
			}
			return
		}
		c.Chunks[i] = retrieve.IndexChunk{Text: ingest.EmbeddingText(d.Title, row.Chunk), Vector: v}
	}
}

package state

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ibid/retrieve"
)

// recordsLock is held by transactions that store a record or delete the records of documents.
const recordsLock = "records"

func (l ledger) KeepRecord(ctx context.Context, r retrieve.Record) error {
	stored, err := l.Finish(ctx, []retrieve.Record{r}, nil)
	if err == nil && !stored[0] {
		err = fmt.Errorf("storing the record of the run %s: %w", r.ID, retrieve.ErrNotFound)
	}
	return err
}

func (l ledger) Finish(ctx context.Context, records []retrieve.Record, jobs []string) (stored []bool, err error) {
	err = inTransaction(ctx, l.s.update, func(t *tx) {
		stored = make([]bool, len(records))
		for i, r := range records {
			stored[i] = t.keepRecord(r)
		}
		for _, id := range jobs {
			t.deleteJobs(`id = ?`, id)
		}
	}, "storing %d records and ending %d runs", len(records), len(jobs))
	if err != nil {
		clear(stored)
	}
	return stored, err
}

// keepRecord changes nothing and returns false if one of the record's documents has been deleted.
func (t *tx) keepRecord(r retrieve.Record) bool {
	r.Documents = slices.Compact(slices.Sorted(slices.Values(r.Documents)))
	t.lock(recordsLock)
	for _, d := range r.Documents {
		if !value[bool](t, `SELECT EXISTS (SELECT 1 FROM ibid.documents WHERE key = ?)`, retrieve.DigestOf(d)) {
			return false
		}
	}
	t.deleteRecords(`id = ? OR expires <= ?`, r.ID, r.Ended.UnixMicro())
	t.insertRecord(r)
	t.makeRoom("records", "started", r.ID, t.s.limits.records, t.s.limits.recordBytes, func(id string) { t.deleteRecords(`id = ?`, id) })
	return true
}

const (
	recordColumns = "id, kind, caller, shared, state, started, ended, expires, size, spec"
	eventColumns  = "record, documents, events"
	quoteColumns  = "record, number, key, document"
)

func (t *tx) insertRecord(r retrieve.Record) {
	t.insert("records", recordColumns, "", []any{r.ID, r.Kind, r.By, r.Shared, r.State,
		r.Started.UnixMicro(), r.Ended.UnixMicro(), r.Expires.UnixMicro(), len(r.Spec) + len(r.Events), r.Spec})
	t.insert("events", eventColumns, "", []any{r.ID, len(r.Documents), r.Events})
	var quotes [][]any
	for i, d := range r.Documents {
		quotes = append(quotes, []any{r.ID, i, retrieve.DigestOf(d), d})
	}
	t.insert("quoted", quoteColumns, "", quotes...)
}

// deleteRecords deletes the records that satisfy a condition.
func (t *tx) deleteRecords(condition string, args ...any) {
	t.deleteWhole("records", condition, args, `events WHERE record`, `quoted WHERE record`)
}

// forgetQuoting deletes the records that quote the document or root with the given id, or a
// document below it. It also deletes all replies, because they may contain the documents' words.
func (t *tx) forgetQuoting(id string) {
	t.lock(recordsLock)
	const quoting = `id IN (SELECT record FROM ibid.quoted WHERE key = ? OR document > ? AND document < ?)`
	t.deleteRecords(quoting, retrieve.DigestOf(id), id+"/", id+"0") // "0" follows "/"
	t.deleteReplies()
}

// renameInRecords gives a document its new id in the records that quote it, in the transaction that
// renames the document. It deletes records that also quote the document that had the new id,
// because that document is deleted.
func (t *tx) renameInRecords(from, to string) {
	t.lock(recordsLock)
	const quoting = `id IN (SELECT record FROM ibid.quoted WHERE key = ?)`
	t.deleteRecords(quoting+` AND `+quoting, retrieve.DigestOf(from), retrieve.DigestOf(to))
	var quotes [][]any
	for row := range t.rows(`DELETE FROM ibid.quoted WHERE key = ? RETURNING record, number`, retrieve.DigestOf(from)) {
		var record string
		var number int64
		check(row.Scan(&record, &number))
		quotes = append(quotes, []any{record, number, retrieve.DigestOf(to), to})
	}
	t.insert("quoted", quoteColumns, "", quotes...)
}

// scanRecord reads a row of the columns recordColumns and sum.
func scanRecord(row scanner) (r retrieve.Record, err error) {
	var started, ended, expires, size int64
	err = scanChecked(row, &r.ID, &r.Kind, &r.By, &r.Shared, &r.State, &started, &ended, &expires, &size, &r.Spec)
	r.Started, r.Ended, r.Expires = time.UnixMicro(started), time.UnixMicro(ended), time.UnixMicro(expires)
	return r, err
}

func (l ledger) Record(ctx context.Context, id string) (r retrieve.Record, err error) {
	err = l.s.view(ctx, func(t *tx) {
		var of string
		var documents int
		r, err = scanRecord(t.row(`SELECT `+recordColumns+`, sum FROM ibid.records WHERE id = ?`, id))
		whole := err == nil &&
			scanChecked(t.row(`SELECT `+eventColumns+`, sum FROM ibid.events WHERE record = ?`, id), &of, &documents, &r.Events) == nil
		for row := range t.rows(`SELECT `+quoteColumns+`, sum FROM ibid.quoted WHERE record = ? ORDER BY document`, id) {
			var number int64
			var key []byte
			var document string
			whole = scanChecked(row, &of, &number, &key, &document) == nil && whole
			r.Documents = append(r.Documents, document)
		}
		// If a row in quoted is lost, deleting its document would not delete the record.
		if !whole || len(r.Documents) != documents || !r.Expires.After(time.Now()) {
			check(retrieve.ErrNotFound)
		}
	})
	if err != nil {
		return retrieve.Record{}, err
	}
	return r, nil
}

func (l ledger) Records(ctx context.Context, by string, after retrieve.Record, n int) (list []retrieve.Record, err error) {
	before := int64(math.MaxInt64)
	if after.ID != "" {
		before = after.Started.UnixMicro()
	}
	err = l.s.view(ctx, func(t *tx) {
		list, _ = rowsOf(t, scanRecord, `SELECT `+recordColumns+`, sum FROM ibid.records
			WHERE caller = ? AND (started, id) < (?, ?) AND expires > ?
			ORDER BY started DESC, id DESC LIMIT ?`, by, before, after.ID, time.Now().UnixMicro(), n)
	})
	return list, err
}

func (l ledger) ForgetRecord(ctx context.Context, id string) error {
	return l.s.update(ctx, func(t *tx) { t.deleteRecords(`id = ?`, id) })
}

func (l ledger) ForgetQuoting(ctx context.Context, document string) error {
	return inTransaction(ctx, l.s.update, func(t *tx) { t.forgetQuoting(document) }, "deleting the records that quote %s", document)
}

func (l ledger) KeepFeedback(ctx context.Context, f retrieve.Feedback) error {
	return l.s.update(ctx, func(t *tx) {
		t.lock("feedback") // keys must grow in commit order
		t.exec(`DELETE FROM ibid.feedback WHERE run = ? AND caller = ? AND citation = ?`, f.Run, f.By, f.Citation)
		f.Key = value[int64](t, `SELECT 1 + coalesce(max(key), 0) FROM ibid.feedback`)
		t.insertFeedback(f)
		t.exec(`DELETE FROM ibid.feedback WHERE key <= (SELECT key FROM ibid.feedback ORDER BY key DESC LIMIT 1 OFFSET ?)`,
			l.s.limits.feedback)
	})
}

const feedbackColumns = "key, run, caller, citation, rating, at, comment"

func (t *tx) insertFeedback(f retrieve.Feedback) {
	t.insert("feedback", feedbackColumns, "", []any{f.Key, f.Run, f.By, f.Citation, f.Rating, f.At.UnixMicro(), f.Comment})
}

func (l ledger) Feedback(ctx context.Context, after int64, n int) (list []retrieve.Feedback, err error) {
	if after == 0 {
		after = math.MaxInt64
	}
	err = l.s.view(ctx, func(t *tx) {
		list, _ = rowsOf(t, scanFeedback, `SELECT `+feedbackColumns+`, sum FROM ibid.feedback WHERE key < ? ORDER BY key DESC LIMIT ?`, after, n)
	})
	return list, err
}

func scanFeedback(row scanner) (f retrieve.Feedback, err error) {
	var at int64
	err = scanChecked(row, &f.Key, &f.Run, &f.By, &f.Citation, &f.Rating, &at, &f.Comment)
	f.At = time.UnixMicro(at)
	return f, err
}

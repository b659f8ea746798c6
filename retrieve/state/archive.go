package state

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

	"ibid/retrieve"
)

// recordsLock is held by transactions that store a record, and by those that
// delete the records of documents.
const recordsLock = "records"

func (l ledger) KeepRecord(ctx context.Context, r retrieve.Record) error {
	return within(ctx, l.s.update, func(t *tx) error { return t.keepRecord(r) }, "storing the record of the run %s", r.ID)
}

func (l ledger) Finish(ctx context.Context, records []retrieve.Record, jobs []string) (stored []bool, err error) {
	err = within(ctx, l.s.update, func(t *tx) error {
		stored = make([]bool, len(records))
		for i, r := range records {
			err := t.keepRecord(r)
			if err != nil && !errors.Is(err, retrieve.ErrNotFound) {
				return err
			}
			stored[i] = err == nil
		}
		for _, id := range jobs {
			if err := t.deleteJobs(`id = ?`, id); err != nil {
				return err
			}
		}
		return nil
	}, "storing %d records and ending %d runs", len(records), len(jobs))
	if err != nil {
		clear(stored)
	}
	return stored, err
}

// keepRecord changes nothing when one of the record's documents has been deleted.
func (t *tx) keepRecord(r retrieve.Record) error {
	most := t.s.limits.OrDefault()
	r.Documents = slices.Compact(slices.Sorted(slices.Values(r.Documents)))
	if err := t.lock(recordsLock); err != nil {
		return err
	}
	for _, d := range r.Documents {
		n := 0
		if err := sought(t.row(`SELECT 1 FROM ibid.documents WHERE key = ?`, keyOf(d)).Scan(&n)); err != nil {
			return err
		}
	}
	if err := t.deleteRecords(`id = ? OR expires <= ?`, r.ID, r.Ended.UnixMicro()); err != nil {
		return err
	}
	if err := t.insertRecord(r); err != nil {
		return err
	}
	drop := func(id string) error { return t.deleteRecords(`id = ?`, id) }
	return t.makeRoom("records", "started", r.ID, most.Records, most.RecordBytes, drop)
}

const (
	recordColumns = "id, kind, caller, shared, state, started, ended, expires, size, spec"
	eventColumns  = "record, documents, events"
	quoteColumns  = "record, number, key, document"
)

func (t *tx) insertRecord(r retrieve.Record) error {
	err := t.insert("records", recordColumns, "", []any{r.ID, r.Kind, r.By, r.Shared, r.State,
		r.Started.UnixMicro(), r.Ended.UnixMicro(), r.Expires.UnixMicro(), len(r.Spec) + len(r.Events), r.Spec})
	if err == nil {
		err = t.insert("events", eventColumns, "", []any{r.ID, len(r.Documents), r.Events})
	}
	if err != nil {
		return err
	}
	var quotes [][]any
	for i, d := range r.Documents {
		quotes = append(quotes, []any{r.ID, i, keyOf(d), d})
	}
	return t.insert("quoted", quoteColumns, "", quotes...)
}

// deleteRecords deletes the records for which a condition holds.
func (t *tx) deleteRecords(condition string, args ...any) error {
	return t.deleteWhole("records", condition, args, `events WHERE record`, `quoted WHERE record`)
}

// forgetQuoting deletes the records that quote a document or one below it, or
// below a root. It deletes all replies too, because they may contain the
// documents' words.
func (t *tx) forgetQuoting(id string) error {
	if err := t.lock(recordsLock); err != nil {
		return err
	}
	const quoting = `id IN (SELECT record FROM ibid.quoted WHERE key = ? OR document > ? AND document < ?)`
	if err := t.deleteRecords(quoting, keyOf(id), id+"/", id+"0"); err != nil { // "0" follows "/"
		return err
	}
	return t.deleteReplies()
}

// renameInRecords gives a document its new id in the records that quote it, in the
// transaction that renames the document. Records that also quote the document
// that had the id, and so is deleted, are deleted.
func (t *tx) renameInRecords(from, to string) error {
	if err := t.lock(recordsLock); err != nil {
		return err
	}
	const quoting = `id IN (SELECT record FROM ibid.quoted WHERE key = ?)`
	if err := t.deleteRecords(quoting+` AND `+quoting, keyOf(from), keyOf(to)); err != nil {
		return err
	}
	var quotes [][]any
	err := t.each(func(row scanner) error {
		var record string
		var number int64
		err := row.Scan(&record, &number)
		quotes = append(quotes, []any{record, number, keyOf(to), to})
		return err
	}, `DELETE FROM ibid.quoted WHERE key = ? RETURNING record, number`, keyOf(from))
	if err != nil {
		return err
	}
	return t.insert("quoted", quoteColumns, "", quotes...)
}

// scanRecord reads a row of the columns recordColumns and sum.
func scanRecord(row scanner) (r retrieve.Record, err error) {
	var started, ended, expires, size int64
	err = checked(row, &r.ID, &r.Kind, &r.By, &r.Shared, &r.State, &started, &ended, &expires, &size, &r.Spec)
	r.Started, r.Ended, r.Expires = time.UnixMicro(started), time.UnixMicro(ended), time.UnixMicro(expires)
	return r, err
}

// unlessWhole turns the error of a row that is missing or damaged into
// [retrieve.ErrNotFound].
func unlessWhole(err error) error {
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, errRow) {
		return retrieve.ErrNotFound
	}
	return err
}

func (l ledger) Record(ctx context.Context, id string) (r retrieve.Record, err error) {
	err = l.s.view(ctx, func(t *tx) (err error) {
		r, err = scanRecord(t.row(`SELECT `+recordColumns+`, sum FROM ibid.records WHERE id = ?`, id))
		if err != nil {
			return unlessWhole(err)
		}
		var of string
		var documents int
		events := t.row(`SELECT `+eventColumns+`, sum FROM ibid.events WHERE record = ?`, id)
		if err := unlessWhole(checked(events, &of, &documents, &r.Events)); err != nil {
			return err
		}
		err = t.each(func(row scanner) error {
			var number int64
			var key []byte
			var document string
			err := checked(row, &of, &number, &key, &document)
			r.Documents = append(r.Documents, document)
			return unlessWhole(err)
		}, `SELECT `+quoteColumns+`, sum FROM ibid.quoted WHERE record = ? ORDER BY document`, id)
		// Without one of its documents it would outlive that.
		if err == nil && (len(r.Documents) != documents || !r.Expires.After(time.Now())) {
			err = retrieve.ErrNotFound
		}
		return err
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
	err = l.s.view(ctx, func(t *tx) error {
		list, _, err = rowsOf(t, scanRecord, `SELECT `+recordColumns+`, sum FROM ibid.records
			WHERE caller = ? AND (started, id) < (?, ?) AND expires > ?
			ORDER BY started DESC, id DESC LIMIT ?`, by, before, after.ID, time.Now().UnixMicro(), n)
		return err
	})
	return list, err
}

func (l ledger) ForgetRecord(ctx context.Context, id string) error {
	return l.s.update(ctx, func(t *tx) error { return t.deleteRecords(`id = ?`, id) })
}

func (l ledger) ForgetQuoting(ctx context.Context, document string) error {
	return within(ctx, l.s.update, func(t *tx) error { return t.forgetQuoting(document) }, "deleting the records that quote %s", document)
}

func (l ledger) KeepFeedback(ctx context.Context, f retrieve.Feedback) error {
	return l.s.update(ctx, func(t *tx) error {
		if err := t.lock("feedback"); err != nil { // so that keys are in the order in which others see them
			return err
		}
		_, err := t.exec(`DELETE FROM ibid.feedback WHERE run = ? AND caller = ? AND citation = ?`, f.Run, f.By, f.Citation)
		if err != nil {
			return err
		}
		if err := t.row(`SELECT 1 + coalesce(max(key), 0) FROM ibid.feedback`).Scan(&f.Key); err != nil {
			return err
		}
		if err := t.insertFeedback(f); err != nil {
			return err
		}
		_, err = t.exec(`DELETE FROM ibid.feedback WHERE key <= (SELECT key FROM ibid.feedback ORDER BY key DESC LIMIT 1 OFFSET ?)`,
			l.s.limits.OrDefault().Feedback)
		return err
	})
}

const feedbackColumns = "key, run, caller, citation, rating, at, comment"

func (t *tx) insertFeedback(f retrieve.Feedback) error {
	return t.insert("feedback", feedbackColumns, "", []any{f.Key, f.Run, f.By, f.Citation, f.Rating, f.At.UnixMicro(), f.Comment})
}

func (l ledger) Feedback(ctx context.Context, after int64, n int) (list []retrieve.Feedback, err error) {
	if after == 0 {
		after = math.MaxInt64
	}
	err = l.s.view(ctx, func(t *tx) error {
		list, _, err = rowsOf(t, scanFeedback, `SELECT `+feedbackColumns+`, sum FROM ibid.feedback WHERE key < ? ORDER BY key DESC LIMIT ?`,
			after, n)
		return err
	})
	return list, err
}

func scanFeedback(row scanner) (f retrieve.Feedback, err error) {
	var at int64
	err = checked(row, &f.Key, &f.Run, &f.By, &f.Citation, &f.Rating, &at, &f.Comment)
	f.At = time.UnixMicro(at)
	return f, err
}

package local

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ibid/retrieve"
)

// recordSchema is laid out when the first record is kept, as ledgerSchema is
// with the first run. What is listed stands apart from the events, which are
// long. A document is found by its id in record_documents when it is deleted.
const recordSchema = `
CREATE TABLE records (
	id      TEXT PRIMARY KEY,
	caller  TEXT NOT NULL,
	started INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	size    INTEGER NOT NULL,
	sum     INTEGER NOT NULL,
	head    BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX records_by_caller ON records (caller, started, id);
CREATE INDEX records_by_start ON records (started, id);
CREATE TABLE record_events (
	record TEXT PRIMARY KEY,
	sum    INTEGER NOT NULL,
	events BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE record_documents (
	document TEXT NOT NULL,
	record   TEXT NOT NULL,
	sum      INTEGER NOT NULL,
	PRIMARY KEY (document, record)
) WITHOUT ROWID;
CREATE INDEX record_documents_by_record ON record_documents (record);
CREATE TABLE feedback (
	key      INTEGER PRIMARY KEY AUTOINCREMENT,
	run      TEXT NOT NULL,
	caller   TEXT NOT NULL,
	citation INTEGER NOT NULL,
	rating   INTEGER NOT NULL,
	at       INTEGER NOT NULL,
	sum      INTEGER NOT NULL,
	comment  TEXT NOT NULL,
	UNIQUE (run, caller, citation)
);
`

// recordHead is what the list of records shows of one.
type recordHead struct {
	Kind   string `json:"kind"`
	State  string `json:"state"`
	Shared bool   `json:"shared,omitempty"`
	Ended  int64  `json:"ended"`
	Spec   []byte `json:"spec"`
	// Documents counts the rows of record_documents.
	Documents int `json:"documents"`
}

func headSum(id, by string, started, expires int64, head []byte) int64 {
	var s sum
	s.text(id)
	s.text(by)
	s.number(started)
	s.number(expires)
	s.bytes(head)
	return s.value()
}

func eventsSum(id string, events []byte) int64 {
	var s sum
	s.text(id)
	s.bytes(events)
	return s.value()
}

func feedbackSum(f retrieve.Feedback) int64 {
	var s sum
	s.text(f.Run)
	s.text(f.By)
	s.number(int64(f.Citation))
	s.number(int64(f.Rating))
	s.number(f.At.UnixMicro())
	s.text(f.Comment)
	return s.value()
}

// recorded tells whether a record or an opinion has ever been kept here.
func recorded(ctx context.Context, tx *sql.Tx) (bool, error) { return hasTable(ctx, tx, "records") }

// layOutRecords makes the tables if they are not there.
func layOutRecords(ctx context.Context, tx *sql.Tx) error {
	if yes, err := recorded(ctx, tx); err != nil || yes {
		return err
	}
	_, err := tx.ExecContext(ctx, recordSchema)
	return err
}

func (l ledger) KeepRecord(ctx context.Context, r retrieve.Record) error {
	r.Documents = slices.Compact(slices.Sorted(slices.Values(r.Documents)))
	head, err := json.Marshal(recordHead{r.Kind, r.State, r.Shared, r.Ended.UnixMicro(), r.Spec, len(r.Documents)})
	if err != nil {
		return fmt.Errorf("keep the record of the run %s: %w", r.ID, err)
	}
	started, expires, size := r.Started.UnixMicro(), r.Expires.UnixMicro(), int64(len(head)+len(r.Events))
	err = l.commit(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, d := range r.Documents {
			// One that was deleted while the run went on is not to outlive that here.
			if key, err := keyOf(ctx, tx, d); err != nil || key == 0 {
				return errors.Join(err, notFound(key != 0))
			}
		}
		if err := layOutRecords(ctx, tx); err != nil {
			return err
		}
		if err := forgetRecord(ctx, tx, r.ID); err != nil {
			return err
		}
		if err := makeRecordRoom(ctx, tx, l.limits.OrDefault(), r.Ended.UnixMicro(), size); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO records (id, caller, started, expires, size, sum, head) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			r.ID, r.By, started, expires, size, headSum(r.ID, r.By, started, expires, head), head)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO record_events (record, sum, events) VALUES (?, ?, ?)`, r.ID, eventsSum(r.ID, r.Events), notNil(r.Events))
		for _, d := range r.Documents {
			if err != nil {
				return err
			}
			err = insertRecorded(ctx, tx, d, r.ID)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the record of the run %s: %w", r.ID, err)
	}
	return nil
}

// makeRecordRoom forgets the records that have expired at a time, and the oldest
// that are too many beside a new one of a size.
func makeRecordRoom(ctx context.Context, tx *sql.Tx, most retrieve.Limits, at, bytes int64) error {
	gone, err := column[string](ctx, tx, `SELECT id FROM records WHERE expires <= ?`, at)
	if err != nil {
		return err
	}
	for _, id := range gone {
		if err := forgetRecord(ctx, tx, id); err != nil {
			return err
		}
	}
	for {
		var count int
		var size int64
		if err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(size), 0) FROM records`).Scan(&count, &size); err != nil {
			return err
		}
		if count == 0 || count < most.Records && size+bytes <= most.RecordBytes {
			return nil
		}
		var oldest string
		if err := tx.QueryRowContext(ctx, `SELECT id FROM records ORDER BY started, id LIMIT 1`).Scan(&oldest); err != nil {
			return err
		}
		if err := forgetRecord(ctx, tx, oldest); err != nil {
			return err
		}
	}
}

func forgetRecord(ctx context.Context, tx *sql.Tx, id string) error {
	for _, rows := range []string{`record_documents WHERE record = ?`, `record_events WHERE record = ?`, `records WHERE id = ?`} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+rows, id); err != nil {
			return err
		}
	}
	return nil
}

// forgetRecordsOf removes the records in which words of a document stand: they
// would outlive it.
func forgetRecordsOf(ctx context.Context, tx *sql.Tx, document string) error {
	return forgetRecordsWhere(ctx, tx, `document = ?`, document)
}

// forgetRecordsBelow is forgetRecordsOf for all documents of a root.
func forgetRecordsBelow(ctx context.Context, tx *sql.Tx, root string) error {
	return forgetRecordsWhere(ctx, tx, `document > ? AND document < ?`, root+"/", root+"0") // "0" follows "/"
}

func forgetRecordsWhere(ctx context.Context, tx *sql.Tx, which string, args ...any) error {
	if yes, err := recorded(ctx, tx); err != nil || !yes {
		return err
	}
	ids, err := column[string](ctx, tx, `SELECT DISTINCT record FROM record_documents WHERE `+which, args...)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := forgetRecord(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// renameInRecords has the records of a document go with it under its new id.
func renameInRecords(ctx context.Context, tx *sql.Tx, from, to string) error {
	if yes, err := recorded(ctx, tx); err != nil || !yes {
		return err
	}
	ids, err := column[string](ctx, tx, `SELECT record FROM record_documents WHERE document = ?`, from)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := insertRecorded(ctx, tx, to, id); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM record_documents WHERE document = ?`, from)
	return err
}

func recordedSum(document, record string) int64 {
	var s sum
	s.text(document)
	s.text(record)
	return s.value()
}

func insertRecorded(ctx context.Context, tx *sql.Tx, document, record string) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO record_documents (document, record, sum) VALUES (?, ?, ?)`, document, record, recordedSum(document, record))
	return err
}

// scanRecord reads what a list shows of a record. A damaged one is ErrNotFound.
// It has so many documents.
func scanRecord(scan func(...any) error) (r retrieve.Record, documents int, err error) {
	var started, expires, stored int64
	var head []byte
	if err := scanned(scan(&r.ID, &r.By, &started, &expires, &stored, &head)); err != nil {
		if errors.Is(err, errRow) || errors.Is(err, sql.ErrNoRows) {
			err = retrieve.ErrNotFound
		}
		return retrieve.Record{}, 0, err
	}
	var h recordHead
	if headSum(r.ID, r.By, started, expires, head) != stored || json.Unmarshal(head, &h) != nil {
		return retrieve.Record{}, 0, retrieve.ErrNotFound
	}
	r.Kind, r.State, r.Shared, r.Spec = h.Kind, h.State, h.Shared, h.Spec
	r.Started, r.Ended, r.Expires = time.UnixMicro(started), time.UnixMicro(h.Ended), time.UnixMicro(expires)
	return r, h.Documents, nil
}

// documentsOf reads the ids of the documents of a record, without damaged ones.
func documentsOf(ctx context.Context, tx *sql.Tx, record string) (ids []string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT document, sum FROM record_documents WHERE record = ? ORDER BY document`, record)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		var stored int64
		err := scanned(rows.Scan(&id, &stored))
		if errors.Is(err, errRow) || err == nil && recordedSum(id, record) != stored {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

func (l ledger) Record(ctx context.Context, id string) (r retrieve.Record, err error) {
	err = l.view(ctx, func(tx *sql.Tx) error {
		r = retrieve.Record{}
		if yes, err := recorded(ctx, tx); err != nil || !yes {
			return errors.Join(err, notFound(yes))
		}
		row := tx.QueryRowContext(ctx, `SELECT id, caller, started, expires, sum, head FROM records WHERE id = ? AND expires > ?`, id, time.Now().UnixMicro())
		var count int
		if r, count, err = scanRecord(row.Scan); err != nil {
			return err
		}
		var stored int64
		err := scanned(tx.QueryRowContext(ctx, `SELECT sum, events FROM record_events WHERE record = ?`, id).Scan(&stored, &r.Events))
		if errors.Is(err, sql.ErrNoRows) || errors.Is(err, errRow) || err == nil && eventsSum(id, r.Events) != stored {
			return retrieve.ErrNotFound
		}
		if err != nil {
			return err
		}
		if r.Documents, err = documentsOf(ctx, tx, id); err == nil && len(r.Documents) != count {
			err = retrieve.ErrNotFound // it would outlive a document of which it holds words
		}
		return err
	})
	if err != nil {
		return retrieve.Record{}, fmt.Errorf("look for the record of the run %q: %w", id, err)
	}
	return r, nil
}

func (l ledger) Records(ctx context.Context, by string, after retrieve.Record, n int) (list []retrieve.Record, err error) {
	before, id := int64(1<<62), ""
	if after.ID != "" {
		before, id = after.Started.UnixMicro(), after.ID
	}
	err = l.view(ctx, func(tx *sql.Tx) error {
		list = nil
		if yes, err := recorded(ctx, tx); err != nil || !yes {
			return err
		}
		rows, err := tx.QueryContext(ctx, `SELECT id, caller, started, expires, sum, head FROM records
			WHERE caller = ? AND (started, id) < (?, ?) AND expires > ? ORDER BY started DESC, id DESC LIMIT ?`, by, before, id, time.Now().UnixMicro(), n)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			r, _, err := scanRecord(rows.Scan)
			if errors.Is(err, retrieve.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			list = append(list, r)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	return list, nil
}

func (l ledger) ForgetRecord(ctx context.Context, id string) error {
	err := l.commit(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if yes, err := recorded(ctx, tx); err != nil || !yes {
			return err
		}
		return forgetRecord(ctx, tx, id)
	})
	if err != nil {
		return fmt.Errorf("forget the record of the run %s: %w", id, err)
	}
	return nil
}

func (l ledger) KeepFeedback(ctx context.Context, f retrieve.Feedback) error {
	err := l.commit(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := layOutRecords(ctx, tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO feedback (run, caller, citation, rating, at, sum, comment) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			f.Run, f.By, f.Citation, f.Rating, f.At.UnixMicro(), feedbackSum(f), f.Comment)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM feedback WHERE key IN (SELECT key FROM feedback ORDER BY key DESC LIMIT -1 OFFSET ?)`, l.limits.OrDefault().Feedback)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep what is thought of the run %s: %w", f.Run, err)
	}
	return nil
}

func (l ledger) Feedback(ctx context.Context, after int64, n int) (list []retrieve.Feedback, err error) {
	if after == 0 {
		after = 1 << 62
	}
	err = l.view(ctx, func(tx *sql.Tx) error {
		list = nil
		if yes, err := recorded(ctx, tx); err != nil || !yes {
			return err
		}
		rows, err := tx.QueryContext(ctx, `SELECT key, run, caller, citation, rating, at, sum, comment FROM feedback WHERE key < ? ORDER BY key DESC LIMIT ?`, after, n)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var f retrieve.Feedback
			var at, stored int64
			err := scanned(rows.Scan(&f.Key, &f.Run, &f.By, &f.Citation, &f.Rating, &at, &stored, &f.Comment))
			if f.At = time.UnixMicro(at); errors.Is(err, errRow) || err == nil && feedbackSum(f) != stored {
				continue // damaged
			}
			if err != nil {
				return err
			}
			list = append(list, f)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list what is thought of runs: %w", err)
	}
	return list, nil
}

package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ibid/retrieve"
)

func (l ledger) KeepRecord(ctx context.Context, r retrieve.Record) error {
	documents := make([][]byte, 0, len(r.Documents))
	for _, d := range slices.Compact(slices.Sorted(slices.Values(r.Documents))) {
		documents = append(documents, []byte(d))
	}
	err := l.update(ctx, func(s *session) error {
		// One that was deleted while the run went on is not to outlive that here.
		if len(documents) > 0 {
			if err := l.lockDocuments(ctx, s, r.Documents...); err != nil {
				return err
			}
			var there int
			if err := s.row(ctx, `SELECT count(*) FROM ibid.documents WHERE sha256(id) IN (SELECT sha256(d) FROM unnest($1::bytea[]) AS d)`, documents).Scan(&there); err != nil {
				return err
			}
			if there < len(documents) {
				return retrieve.ErrNotFound
			}
		}
		if err := l.lock(ctx, s, recordsLock); err != nil {
			return err
		}
		if _, err := s.exec(ctx, `DELETE FROM ibid.records WHERE id = $1`, []byte(r.ID)); err != nil {
			return err
		}
		if err := l.makeRecordRoom(ctx, s, r); err != nil {
			return err
		}
		_, err := s.exec(ctx, `INSERT INTO ibid.records (id, kind, caller, shared, state, started, ended, expires, size, spec, events) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			[]byte(r.ID), []byte(r.Kind), []byte(r.By), r.Shared, []byte(r.State), r.Started.UnixMicro(), r.Ended.UnixMicro(), r.Expires.UnixMicro(),
			len(r.Spec)+len(r.Events), notNil(r.Spec), notNil(r.Events))
		if err != nil || len(documents) == 0 {
			return err
		}
		_, err = s.exec(ctx, `INSERT INTO ibid.record_documents (record, document) SELECT $1, d FROM unnest($2::bytea[]) AS d`, []byte(r.ID), documents)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the record of the run %s: %w", r.ID, err)
	}
	return nil
}

// makeRecordRoom forgets the records that have expired when a new one ended, and
// the oldest that are too many beside it.
func (l ledger) makeRecordRoom(ctx context.Context, s *session, r retrieve.Record) error {
	most := l.limits.OrDefault()
	if _, err := s.exec(ctx, `DELETE FROM ibid.records WHERE expires <= $1`, r.Ended.UnixMicro()); err != nil {
		return err
	}
	var count int
	var size int64
	if err := s.row(ctx, `SELECT count(*), coalesce(sum(size), 0)::bigint FROM ibid.records`).Scan(&count, &size); err != nil {
		return err
	}
	left := most.RecordBytes - int64(len(r.Spec)+len(r.Events))
	if count < most.Records && size <= left {
		return nil
	}
	_, err := s.exec(ctx, `DELETE FROM ibid.records WHERE id IN (
		SELECT id FROM (
			SELECT id, row_number() OVER newest AS n, sum(size) OVER newest AS size FROM ibid.records
			WINDOW newest AS (ORDER BY started DESC, id DESC)) AS others
		WHERE n > $1 OR size > $2)`, most.Records-1, left)
	return err
}

// forgetRecordsOf has the records go in whose events are words of documents that
// are being deleted. It is called in the transaction that deletes them, whose
// locks on the documents are held.
func (e *Engine) forgetRecordsOf(ctx context.Context, s *session, documents ...string) error {
	ids := make([][]byte, len(documents))
	for i, d := range documents {
		ids[i] = []byte(d)
	}
	_, err := s.exec(ctx, `DELETE FROM ibid.records WHERE id IN (
		SELECT record FROM ibid.record_documents WHERE sha256(document) IN (SELECT sha256(d) FROM unnest($1::bytea[]) AS d))`, ids)
	return err
}

// renameInRecords has the records of a document go with it under its new id.
func (e *Engine) renameInRecords(ctx context.Context, s *session, from, to string) error {
	_, err := s.exec(ctx, `INSERT INTO ibid.record_documents (record, document)
		SELECT record, $2 FROM ibid.record_documents WHERE sha256(document) = sha256($1) ON CONFLICT DO NOTHING`, []byte(from), []byte(to))
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, `DELETE FROM ibid.record_documents WHERE sha256(document) = sha256($1)`, []byte(from))
	return err
}

const recordColumns = `id, kind, caller, shared, state, started, ended, expires, spec`

func scanRecord(row pgx.Row, more ...any) (r retrieve.Record, err error) {
	var id, kind, caller, state []byte
	var started, ended, expires int64
	if err := row.Scan(append([]any{&id, &kind, &caller, &r.Shared, &state, &started, &ended, &expires, &r.Spec}, more...)...); err != nil {
		return retrieve.Record{}, found(err)
	}
	r.ID, r.Kind, r.By, r.State = string(id), string(kind), string(caller), string(state)
	r.Started, r.Ended, r.Expires = time.UnixMicro(started), time.UnixMicro(ended), time.UnixMicro(expires)
	return r, nil
}

func (l ledger) Record(ctx context.Context, id string) (r retrieve.Record, err error) {
	err = l.view(ctx, func(s *session) error {
		var events []byte
		var documents [][]byte
		r, err = scanRecord(s.row(ctx, `SELECT `+recordColumns+`, events, ARRAY (SELECT document FROM ibid.record_documents WHERE record = id ORDER BY document)
			FROM ibid.records WHERE id = $1 AND expires > `+current, []byte(id)), &events, &documents)
		r.Events = events
		for _, d := range documents {
			r.Documents = append(r.Documents, string(d))
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
	err = l.view(ctx, func(s *session) error {
		rows, err := s.query(ctx, `SELECT `+recordColumns+` FROM ibid.records
			WHERE caller = $1 AND (started, id) < ($2, $3) AND expires > `+current+` ORDER BY started DESC, id DESC LIMIT $4`, []byte(by), before, []byte(id), n)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (retrieve.Record, error) { return scanRecord(row) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	return list, nil
}

func (l ledger) ForgetRecord(ctx context.Context, id string) error {
	err := l.update(ctx, func(s *session) error {
		_, err := s.exec(ctx, `DELETE FROM ibid.records WHERE id = $1`, []byte(id))
		return err
	})
	if err != nil {
		return fmt.Errorf("forget the record of the run %s: %w", id, err)
	}
	return nil
}

func (l ledger) KeepFeedback(ctx context.Context, f retrieve.Feedback) error {
	err := l.update(ctx, func(s *session) error {
		// One after the other, so that their keys are in the order in which others
		// see them.
		if err := l.lock(ctx, s, feedbackLock); err != nil {
			return err
		}
		if _, err := s.exec(ctx, `DELETE FROM ibid.feedback WHERE run = $1 AND caller = $2 AND citation = $3`, []byte(f.Run), []byte(f.By), f.Citation); err != nil {
			return err
		}
		_, err := s.exec(ctx, `INSERT INTO ibid.feedback (run, caller, citation, rating, at, comment) VALUES ($1, $2, $3, $4, $5, $6)`,
			[]byte(f.Run), []byte(f.By), f.Citation, f.Rating, f.At.UnixMicro(), []byte(f.Comment))
		if err != nil {
			return err
		}
		_, err = s.exec(ctx, `DELETE FROM ibid.feedback WHERE key <= (SELECT key FROM ibid.feedback ORDER BY key DESC LIMIT 1 OFFSET $1)`, l.limits.OrDefault().Feedback)
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
	err = l.view(ctx, func(s *session) error {
		rows, err := s.query(ctx, `SELECT key, run, caller, citation, rating, at, comment FROM ibid.feedback WHERE key < $1 ORDER BY key DESC LIMIT $2`, after, n)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f retrieve.Feedback, err error) {
			var run, caller, comment []byte
			var at int64
			err = row.Scan(&f.Key, &run, &caller, &f.Citation, &f.Rating, &at, &comment)
			f.Run, f.By, f.Comment, f.At = string(run), string(caller), string(comment), time.UnixMicro(at)
			return f, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list what is thought of runs: %w", err)
	}
	return list, nil
}

package local

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"ibid/ingest"
	"ibid/retrieve"
)

// readRow reads a document's row by id and checks it, its chunks included.
func readRow(ctx context.Context, tx *sql.Tx, id string) (*documentRow, error) {
	var row documentRow
	err := row.scan(tx.QueryRowContext(ctx, `SELECT `+documentColumns+` FROM documents WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, retrieve.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	first, last := keyRange(row.key)
	sums, err := column[int64](ctx, tx, `SELECT sum FROM chunks WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
	if err != nil {
		return nil, err
	}
	if documentSum(&row, sums) != row.sum {
		return nil, fmt.Errorf("it is damaged, ingest it again: %w", errRow)
	}
	return &row, nil
}

const chunkColumns = `key, start, end, page, tokens, sum, heading, anchor, terms, text`

// readChunk reads a chunk's row and checks it. Its id, document and ordinal are
// not set.
func readChunk(row interface{ Scan(...any) error }) (c chunkRow, key int64, err error) {
	var stored, place int64
	err = scanned(row.Scan(&key, &c.Start, &c.End, &place, &c.Tokens, &stored, &c.Heading, &c.Anchor, &c.terms, &c.Text))
	setPlace(&c.Chunk, place)
	if err == nil && chunkSum(key, &c.Chunk, c.terms) != stored {
		err = errRow
	}
	return c, key, err
}

// Document gives a stored document with its text.
func (e *Engine) Document(ctx context.Context, id string) (doc *ingest.Document, err error) {
	err = e.view(ctx, func(tx *sql.Tx) error {
		row, err := readRow(ctx, tx, id)
		if err != nil {
			return err
		}
		doc, err = row.document()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the document %q: %w", id, err)
	}
	return doc, nil
}

// Excerpt gives a part of a stored document's text. It is not compared with a
// checksum, which is one over the whole text: the caller knows what to expect.
func (e *Engine) Excerpt(ctx context.Context, id string, start, end int) (text string, err error) {
	err = e.view(ctx, func(tx *sql.Tx) error {
		var part []byte
		err := tx.QueryRowContext(ctx, `SELECT substr(CAST(text AS BLOB), ?, ?) FROM documents WHERE id = ?`, start+1, end-start, id).Scan(&part)
		if errors.Is(err, sql.ErrNoRows) || err == nil && len(part) != end-start {
			return retrieve.ErrNotFound
		}
		text = string(part)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read bytes %d to %d of the document %q: %w", start, end, id, err)
	}
	return text, nil
}

// Sections gives the sections of a stored document, in order. They are not
// compared with a checksum, which is one over the whole document.
func (e *Engine) Sections(ctx context.Context, id, digest string) ([]ingest.Section, error) {
	var text []byte
	err := e.view(ctx, func(tx *sql.Tx) error {
		return scanned(tx.QueryRowContext(ctx, `SELECT outline FROM documents WHERE id = ? AND digest = ?`, id, digest).Scan(&text))
	})
	var o outline
	if err == nil {
		if wrong := json.Unmarshal(text, &o); wrong != nil {
			err = fmt.Errorf("%w: %w", errRow, wrong)
		}
	}
	if errors.Is(err, sql.ErrNoRows) || isDamage(err) {
		err = fmt.Errorf("%w: %w", retrieve.ErrNotFound, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the sections of the document %q: %w", id, err)
	}
	return o.Sections, nil
}

// Documents lists what is stored, by id, without texts.
func (e *Engine) Documents(ctx context.Context, f retrieve.Filter) ([]retrieve.DocumentInfo, error) {
	if err := e.refresh(ctx); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.memory.list(f), nil
}

// Holds says whether any document passes the filter.
func (e *Engine) Holds(ctx context.Context, f retrieve.Filter) (bool, error) {
	if err := e.refresh(ctx); err != nil {
		return false, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.memory.holds(f), nil
}

// Candidates gives chunks with their vectors by id, in the order of the ids.
// Each is read from the database and checked; one that has vanished or changed
// since it was found, or is damaged, is left out.
func (e *Engine) Candidates(ctx context.Context, ids []string) ([]retrieve.Candidate, error) {
	if err := e.refresh(ctx); err != nil {
		return nil, err
	}
	found, err := e.remember(ctx, ids)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	keys := make([]int64, len(found))
	owners := make([]int64, len(found))
	for i, c := range found {
		keys[i], owners[i] = c.key, c.document
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	documents, err := json.Marshal(owners)
	if err != nil {
		return nil, err
	}
	var metas map[int64]map[string]string
	rows := make(map[int64]chunkRow, len(keys))
	err = e.view(ctx, func(tx *sql.Tx) (err error) {
		clear(rows)
		if metas, err = readMetas(ctx, tx, string(documents)); err != nil {
			return err
		}
		r, err := tx.QueryContext(ctx, `SELECT `+chunkColumns+` FROM chunks WHERE key IN (SELECT value FROM json_each(?))`, string(list))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		for r.Next() {
			c, key, err := readChunk(r)
			if errors.Is(err, errRow) {
				continue
			}
			if err != nil {
				return err
			}
			rows[key] = c
		}
		return r.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("read the chunks found: %w", err)
	}
	out := make([]retrieve.Candidate, 0, len(found))
	for _, c := range found {
		row, ok := rows[c.key]
		if !ok || chunkSum(c.key, &row.Chunk, row.terms) != c.sum {
			continue
		}
		known := c.candidate
		known.Meta = metas[c.document]
		known.Start, known.End, known.Page, known.Line, known.Tokens = row.Start, row.End, row.Page, row.Line, row.Tokens
		known.Heading, known.Anchor, known.Text = row.Heading, row.Anchor, row.Text
		// Terms of an earlier analysis are counted again by the index.
		if counts, length, current, err := retrieve.UnpackTerms(row.terms); err == nil && current {
			known.Terms, known.Length = counts, length
		}
		out = append(out, known)
	}
	return out, nil
}

// readMetas gives the metadata of the documents whose keys are listed in JSON.
// That of a damaged row is left out: its chunks have sums of their own.
func readMetas(ctx context.Context, tx *sql.Tx, keys string) (metas map[int64]map[string]string, err error) {
	r, err := tx.QueryContext(ctx, `SELECT key, meta FROM documents WHERE key IN (SELECT value FROM json_each(?))`, keys)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	metas = make(map[int64]map[string]string)
	for r.Next() {
		var key int64
		var text []byte
		if err := r.Scan(&key, &text); err != nil {
			return nil, err
		}
		var meta map[string]string
		if json.Unmarshal(text, &meta) == nil {
			metas[key] = meta
		}
	}
	return metas, r.Err()
}

// A remembered chunk is what memory knows of one.
type remembered struct {
	key, sum  int64
	document  int64 // its key
	candidate retrieve.Candidate
}

// remember looks up chunks in memory.
func (e *Engine) remember(ctx context.Context, ids []string) ([]remembered, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	m := e.memory
	out := make([]remembered, 0, len(ids))
	for _, id := range ids {
		s, ok := m.find(id)
		if !ok {
			continue
		}
		d := m.slots[s].document
		ordinal := int(s-d.first) + 1
		held, err := m.vectors.GetByID(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("find the vector of %s: %w", id, err)
		}
		out = append(out, remembered{
			key: chunkKey(d.key, ordinal), sum: m.slots[s].sum, document: d.key,
			candidate: retrieve.Candidate{
				Chunk: ingest.Chunk{ID: id, Document: d.info.ID, Ordinal: ordinal},
				Root:  d.info.Root, Path: d.info.Path, Title: d.info.Title, Format: d.info.Format, Digest: d.info.Digest,
				Vector: held.Embedding,
			},
		})
	}
	return out, nil
}

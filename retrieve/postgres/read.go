package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"ibid/ingest"
	"ibid/retrieve"
)

// Document gives a stored document with its text.
func (e *Engine) Document(ctx context.Context, id string) (doc *ingest.Document, err error) {
	err = e.view(ctx, func(s *session) error {
		var root, path, title, format, digest, meta, parts, text []byte
		err := s.row(ctx, `SELECT d.root, d.path, d.title, d.format, d.digest, d.meta, t.outline, t.text
			FROM ibid.documents d JOIN ibid.texts t ON t.document = d.key WHERE sha256(d.id) = sha256($1)`, []byte(id)).
			Scan(&root, &path, &title, &format, &digest, &meta, &parts, &text)
		if err != nil {
			return found(err)
		}
		var o outline
		if err := json.Unmarshal(parts, &o); err != nil {
			return err
		}
		doc = &ingest.Document{ID: id, Root: string(root), Path: string(path), Title: string(title), Format: string(format),
			Digest: string(digest), Text: string(text), Sections: o.Sections, Pages: o.Pages}
		return json.Unmarshal(meta, &doc.Meta)
	})
	if err != nil {
		return nil, fmt.Errorf("read the document %q: %w", id, err)
	}
	return doc, nil
}

// found tells that there is no row as [retrieve.ErrNotFound].
func found(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return retrieve.ErrNotFound
	}
	return err
}

// Excerpt gives a part of a stored document's text. The server reads no more of
// a long text than that part.
func (e *Engine) Excerpt(ctx context.Context, id string, start, end int) (text string, err error) {
	err = retrieve.ErrNotFound
	if start >= 0 && start <= end && end <= math.MaxInt32 {
		err = e.view(ctx, func(s *session) error {
			var part []byte
			err := s.row(ctx, `SELECT substring(t.text FROM $2::int + 1 FOR $3::int) FROM ibid.documents d JOIN ibid.texts t ON t.document = d.key
				WHERE sha256(d.id) = sha256($1) AND d.bytes >= $4`, []byte(id), start, end-start, end).Scan(&part)
			text = string(part)
			return found(err)
		})
	}
	if err != nil {
		return "", fmt.Errorf("read bytes %d to %d of the document %q: %w", start, end, id, err)
	}
	return text, nil
}

// Sections gives the sections of a stored document, in order.
func (e *Engine) Sections(ctx context.Context, id, digest string) (sections []ingest.Section, err error) {
	err = e.view(ctx, func(s *session) error {
		var parts []byte
		err := s.row(ctx, `SELECT t.outline FROM ibid.documents d JOIN ibid.texts t ON t.document = d.key WHERE sha256(d.id) = sha256($1) AND d.digest = $2`,
			[]byte(id), []byte(digest)).Scan(&parts)
		if err != nil {
			return found(err)
		}
		var o outline
		err = json.Unmarshal(parts, &o)
		sections = o.Sections
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the sections of the document %q: %w", id, err)
	}
	return sections, nil
}

// Documents lists what is stored, by id, without texts.
func (e *Engine) Documents(ctx context.Context, f retrieve.Filter) (list []retrieve.DocumentInfo, err error) {
	c := where(f)
	err = e.view(ctx, func(s *session) error {
		rows, err := s.query(ctx, `SELECT d.id, d.root, d.path, d.title, d.format, d.digest, d.meta, d.collection, d.chunks, d.pages, d.bytes
			FROM ibid.documents d WHERE `+c.sql+` ORDER BY d.id`, c.args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d retrieve.DocumentInfo, err error) {
			var id, root, path, title, format, digest, meta, collection []byte
			if err := row.Scan(&id, &root, &path, &title, &format, &digest, &meta, &collection, &d.Chunks, &d.Pages, &d.Bytes); err != nil {
				return d, err
			}
			d.ID, d.Root, d.Path, d.Title, d.Format, d.Digest, d.Collection = string(id), string(root), string(path), string(title), string(format), string(digest), string(collection)
			return d, json.Unmarshal(meta, &d.Meta)
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the documents: %w", err)
	}
	return list, nil
}

// Holds says whether any document passes the filter.
func (e *Engine) Holds(ctx context.Context, f retrieve.Filter) (any bool, err error) {
	c := where(f)
	err = e.view(ctx, func(s *session) error {
		return s.row(ctx, `SELECT EXISTS (SELECT 1 FROM ibid.documents d WHERE `+c.sql+`)`, c.args...).Scan(&any)
	})
	if err != nil {
		return false, fmt.Errorf("look for a document: %w", err)
	}
	return any, nil
}

// Candidates gives chunks with their vectors by id, in the order of the ids.
// One that has vanished is left out.
func (e *Engine) Candidates(ctx context.Context, ids []string) (out []retrieve.Candidate, err error) {
	var documents [][]byte // the digests of their ids
	seen := make(map[string]bool)
	for _, id := range ids {
		if document, _, ok := retrieve.SplitChunkID(id); ok && !seen[document] {
			seen[document] = true
			digest := sha256.Sum256([]byte(document))
			documents = append(documents, digest[:])
		}
	}
	if len(documents) == 0 {
		return nil, nil
	}
	err = e.view(ctx, func(s *session) error {
		out = nil
		used, all, err := readUsed(ctx, s)
		if err != nil || all.chunks == 0 {
			return err
		}
		owners, err := readOwners(ctx, s, documents)
		if err != nil {
			return err
		}
		var keys []int64
		for _, id := range ids {
			document, ordinal, ok := retrieve.SplitChunkID(id)
			if owner, there := owners[document]; ok && there && ordinal <= maxChunks {
				keys = append(keys, chunkKey(owner.key, ordinal))
			}
		}
		chunks, err := readChunks(ctx, s, used, keys)
		if err != nil {
			return err
		}
		for _, id := range ids {
			document, ordinal, _ := retrieve.SplitChunkID(id)
			owner := owners[document]
			c, there := chunks[chunkKey(owner.key, ordinal)]
			if !there {
				continue
			}
			c.ID, c.Document, c.Ordinal = id, document, ordinal
			c.Root, c.Path, c.Title, c.Format, c.Digest, c.Meta = owner.Root, owner.Path, owner.Title, owner.Format, owner.Digest, owner.Meta
			out = append(out, c)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the chunks found: %w", err)
	}
	return out, nil
}

// An owner is a document of chunks that were found.
type owner struct {
	ingest.Document
	key int64
}

// readOwners gives documents, by id, by the SHA-256 digests of their ids.
func readOwners(ctx context.Context, s *session, digests [][]byte) (map[string]owner, error) {
	rows, err := s.query(ctx, `SELECT key, id, root, path, title, format, digest, meta FROM ibid.documents WHERE sha256(id) = ANY ($1::bytea[])`, digests)
	if err != nil {
		return nil, err
	}
	owners := make(map[string]owner, len(digests))
	var key int64
	var id, root, path, title, format, digest, meta []byte
	_, err = pgx.ForEachRow(rows, []any{&key, &id, &root, &path, &title, &format, &digest, &meta}, func() error {
		o := owner{ingest.Document{ID: string(id), Root: string(root), Path: string(path), Title: string(title), Format: string(format), Digest: string(digest)}, key}
		if err := json.Unmarshal(meta, &o.Meta); err != nil {
			return err
		}
		owners[o.ID] = o
		return nil
	})
	return owners, err
}

// readChunks gives chunks by their keys, with what stands in their own rows.
func readChunks(ctx context.Context, s *session, used vectorSpace, keys []int64) (map[int64]retrieve.Candidate, error) {
	rows, err := s.query(ctx, `SELECT c.key, c.start, c."end", c.place, c.tokens, c.heading, c.anchor, c.terms,
			substring(t.text FROM c.start + 1 FOR c."end" - c.start), vec.vector_send(v.vector)
		FROM ibid.chunks c JOIN ibid.texts t ON t.document = c.key >> 20 JOIN `+used.table()+` v ON v.key = c.key
		WHERE c.key = ANY ($1::bigint[]) AND v.key = ANY ($1::bigint[])`, keys)
	if err != nil {
		return nil, err
	}
	chunks := make(map[int64]retrieve.Candidate, len(keys))
	var key int64
	var place int32
	var heading, anchor, terms, text, vector []byte
	var c retrieve.Candidate
	_, err = pgx.ForEachRow(rows, []any{&key, &c.Start, &c.End, &place, &c.Tokens, &heading, &anchor, &terms, &text, &vector}, func() (err error) {
		setPlace(&c.Chunk, place)
		c.Heading, c.Anchor, c.Text = string(heading), string(anchor), string(text)
		// Terms of another analysis are counted again by the index.
		c.Terms, c.Length = nil, 0
		if counts, length, current, err := retrieve.UnpackTerms(terms); err == nil && current {
			c.Terms, c.Length = counts, length
		}
		c.Vector, err = unpackVector(vector)
		chunks[key] = c
		return err
	})
	return chunks, err
}

// unpackVector reads what vector_send of pgvector makes: the number of
// dimensions and a zero in two bytes each, then the components.
func unpackVector(b []byte) ([]float32, error) {
	if len(b) < 4 || len(b) != 4+4*int(binary.BigEndian.Uint16(b)) {
		return nil, fmt.Errorf("a vector of %d bytes cannot be read", len(b))
	}
	b = b[4:]
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.BigEndian.Uint32(b[4*i:]))
	}
	return v, nil
}

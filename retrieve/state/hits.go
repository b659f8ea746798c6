package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ibid/retrieve"
)

// Chunks returns the chunks of the hits, in their order.
func (s *Store) Chunks(ctx context.Context, hits []retrieve.Hit) ([]retrieve.Candidate, error) {
	rows := make(map[retrieve.Hit]retrieve.Candidate, len(hits))
	var damaged []*damagedError
	var err error
	for part := range slices.Chunk(hits, maxList) {
		err = s.glance(ctx, func(t *tx) error {
			found, err := t.candidates(part, rows)
			damaged = append(damaged, found...)
			return err
		})
		if err != nil {
			break
		}
	}
	found := make([]retrieve.Candidate, 0, len(hits))
	var lacking []retrieve.Hit
	for _, h := range hits {
		if c, ok := rows[h]; ok {
			found = append(found, c)
		} else {
			lacking = append(lacking, h)
		}
	}
	if err == nil && len(lacking) > 0 {
		err = s.view(ctx, func(t *tx) error {
			lost, err := t.vanished(lacking)
			damaged = append(damaged, lost...)
			return err
		})
	}
	if err == nil && len(damaged) > 0 {
		err = s.setAside(ctx, damaged...)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the chunks found: %w", err)
	}
	return found, nil
}

// qualified returns columns with the name of their table.
func qualified(table, columns string) string {
	return table + "." + strings.ReplaceAll(columns, ", ", ", "+table+".")
}

// candidates adds the chunks of hits whose generation is stored, in one statement.
// It returns the documents of which a row is damaged.
func (t *tx) candidates(hits []retrieve.Hit, into map[retrieve.Hit]retrieve.Candidate) (damaged []*damagedError, err error) {
	wanted := make(map[retrieve.Hit]bool, len(hits))
	keys := make([]int64, 0, len(hits))
	for _, h := range hits {
		if h.Ordinal > 0 && h.Ordinal <= maxChunks {
			wanted[h] = true
			keys = append(keys, chunkKey(h.Document, h.Ordinal))
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	list, args := in(keys)
	err = t.each(func(r scanner) error {
		var d documentRow
		var c chunkRow
		var sum, revision int64
		columns := append(append(d.dest(), &sum), append(c.dest(), &c.sum, &revision)...)
		if err := r.Scan(columns...); err != nil && !errors.Is(err, errRow) {
			return err
		}
		info, bad := d.info()
		if bad != nil || rowSum(d.dest()...) != sum || rowSum(c.dest()...) != c.sum {
			damaged = append(damaged, &damagedError{c.key >> ordinalBits, "", "its rows are damaged"})
			return nil
		}
		c.at()
		if hit := (retrieve.Hit{Document: d.number, Generation: revision, Ordinal: c.Ordinal}); wanted[hit] {
			into[hit] = retrieve.Candidate{Hit: hit, Chunk: *c.of(d.id), Root: d.root, Path: d.path, Title: d.title,
				Format: d.format, Digest: d.digest, Meta: info.Meta}
		}
		return nil
	}, `SELECT `+qualified("documents", documentColumns)+`, `+qualified("chunks", chunkColumns)+`, changes.revision
		FROM ibid.chunks JOIN ibid.documents ON documents.number = chunks.key >> 20 JOIN ibid.changes ON changes.document = documents.number
		WHERE chunks.key IN `+list+` AND `+whole, args...)
	return damaged, err
}

// vanished returns the documents of hits that should be stored and lack a row.
func (t *tx) vanished(hits []retrieve.Hit) (damaged []*damagedError, err error) {
	for part := range slices.Chunk(hits, maxList) {
		numbers := make([]int64, len(part))
		for i, h := range part {
			numbers[i] = h.Document
		}
		latest, err := t.latest(numbers)
		if err != nil {
			return nil, err
		}
		for _, h := range part {
			if c := latest[h.Document]; h.Document != 0 && c.revision == h.Generation && !c.deleted && !c.aside && h.Ordinal > 0 {
				damaged = append(damaged, &damagedError{h.Document, "", fmt.Sprintf("its chunk %d is missing", h.Ordinal)})
			}
		}
	}
	return damaged, nil
}

package state

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ibid/retrieve"
)

// Chunks returns the chunks of the hits, in their order.
func (s *Store) Chunks(ctx context.Context, hits []retrieve.Hit) ([]retrieve.Candidate, error) {
	rows := make(map[retrieve.Hit]retrieve.Candidate, len(hits))
	for part := range slices.Chunk(hits, maxList) {
		err := within(ctx, s.viewOnce, func(t *tx) { t.candidates(part, rows) }, "reading the chunks found")
		if err != nil {
			return nil, err
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
	if len(lacking) == 0 {
		return found, nil
	}
	err := within(ctx, s.view, func(t *tx) { t.vanished(lacking) }, "looking for missing chunks")
	return found, err
}

// qualified returns columns with the name of their table.
func qualified(table, columns string) string {
	return table + "." + strings.ReplaceAll(columns, ", ", ", "+table+".")
}

// candidates adds the chunks of hits, of the generation that is stored, in one statement.
func (t *tx) candidates(hits []retrieve.Hit, into map[retrieve.Hit]retrieve.Candidate) {
	keys := make([]int64, len(hits))
	for i, h := range hits {
		keys[i] = chunkKey(h.Document, h.Ordinal)
	}
	list, args := in(keys)
	for r := range t.rows(`SELECT `+qualified("documents", documentColumns)+`, `+qualified("chunks", chunkColumns)+`, 
		`+qualified("changes", changeColumns)+`, changes.sum
		FROM ibid.chunks JOIN ibid.documents ON documents.number = chunks.key >> 20 JOIN ibid.changes ON changes.document = documents.number
		WHERE chunks.key IN `+list+` AND `+whole, args...) {
		var d documentRow
		var c chunkRow
		var ch change
		var sum, changeSum int64
		err := r.Scan(slices.Concat(d.dest(), []any{&sum}, c.dest(), []any{&c.sum}, ch.dest(), []any{&changeSum})...)
		info, bad := d.info()
		if err != nil || bad != nil || rowSum(d.dest()...) != sum || rowSum(c.dest()...) != c.sum || rowSum(ch.dest()...) != changeSum {
			t.markDamaged(d.number, "its rows are damaged")
			continue
		}
		c.at()
		hit := retrieve.Hit{Document: d.number, Generation: ch.revision, Ordinal: c.Ordinal}
		into[hit] = retrieve.Candidate{Hit: hit, Chunk: *c.of(d.id), Root: d.root, Path: d.path, Title: d.title,
			Format: d.format, Digest: d.digest, Meta: info.Meta}
	}
}

// vanished looks for documents of hits that should be stored and lack a row.
func (t *tx) vanished(hits []retrieve.Hit) {
	for part := range slices.Chunk(hits, maxList) {
		numbers := make([]int64, len(part))
		for i, h := range part {
			numbers[i] = h.Document
		}
		latest, documents := t.latest(numbers), t.documents(numbers)
		for _, h := range part {
			c, listed := latest[h.Document]
			if _, there := documents[h.Document]; there && !listed {
				t.markDamaged(h.Document, unlisted)
			} else if h.Document != 0 && c.revision == h.Generation && !c.deleted && !c.aside && h.Ordinal > 0 {
				t.markDamaged(h.Document, fmt.Sprintf("its chunk %d is missing", h.Ordinal))
			}
		}
	}
}

package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ibid/ingest"
	"ibid/retrieve"
)

// whole is the condition that a document has not been found damaged.
const whole = `NOT EXISTS (SELECT 1 FROM ibid.damage WHERE damage.document = documents.number)`

// document returns the row of a document. If it is missing, the error is [retrieve.ErrNotFound].
func (t *tx) document(id string) *documentRow {
	d, err := scanDocument(t.row(`SELECT `+documentColumns+` FROM ibid.documents WHERE key = ? AND `+whole, retrieve.DigestOf(id)))
	if errors.Is(err, sql.ErrNoRows) {
		check(retrieve.ErrNotFound)
	}
	if err != nil || d.ID != id {
		check(&damagedError{d.Number, id, damagedRow})
	}
	return &d
}

// Document returns a stored document with its text.
func (s *Store) Document(ctx context.Context, id string) (doc *ingest.Document, err error) {
	err = inTransaction(ctx, s.view, func(t *tx) { doc = t.textOf(t.document(id)) }, "reading the document %q", id)
	return doc, err
}

// textOf returns a document with its text, after checking it.
func (t *tx) textOf(d *documentRow) *ingest.Document {
	var number, outlineSum, sum int64
	var stored []byte
	var text string
	damaged := func(what string) { check(&damagedError{d.Number, d.ID, what}) }
	err := t.row(`SELECT number, outline, outline_sum, text, sum FROM ibid.texts WHERE number = ?`, d.Number).
		Scan(&number, &stored, &outlineSum, &text, &sum)
	if err != nil || rowSum(number, stored, outlineSum, text) != sum || sum != d.textSum {
		damaged("its text is damaged")
	}
	var o retrieve.Outline
	if err := json.Unmarshal(stored, &o); err != nil {
		damaged("its outline is damaged")
	}
	doc := d.Document
	doc.Text, doc.Sections, doc.Pages = text, o.Sections, o.Pages
	return &doc
}

// Excerpts returns an excerpt for each span, in order.
func (s *Store) Excerpts(ctx context.Context, spans []retrieve.Span) ([]retrieve.Excerpt, error) {
	found := make([]retrieve.Excerpt, len(spans))
	var values []string
	var args []any
	for i, p := range spans {
		if p.Outline || p.Start < p.End {
			row := "(?, ?, ?, ?, ?, ?)"
			if values == nil { // the first row determines the types of the columns
				row = "(CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS integer), CAST(? AS integer), CAST(? AS integer))"
			}
			values = append(values, row)
			args = append(args, i, p.Version.Document, p.Version.Generation, p.Start+1, p.End-p.Start, p.Outline)
		}
	}
	if values == nil {
		return found, nil
	}
	query := `WITH wanted (place, number, revision, start, length, outlined) AS (VALUES ` + strings.Join(values, ", ") + `)
		SELECT place, length, outlined, texts.number, CASE WHEN outlined = 1 THEN outline END, outline_sum,
			CASE WHEN length > 0 THEN substr(text, start, length) END
		FROM wanted JOIN ibid.changes ON changes.document = wanted.number AND changes.revision = wanted.revision
			JOIN ibid.texts ON texts.number = wanted.number
		WHERE NOT EXISTS (SELECT 1 FROM ibid.damage WHERE damage.document = wanted.number)`
	err := inTransaction(ctx, s.viewOnce, func(t *tx) {
		for r := range t.rows(query, args...) {
			var place, length, outlined int
			var number, sum int64
			var stored, text []byte
			if r.Scan(&place, &length, &outlined, &number, &stored, &sum, &text) != nil {
				continue
			}
			var o retrieve.Outline
			if len(text) == max(0, length) && (outlined == 0 || rowSum(number, stored) == sum && json.Unmarshal(stored, &o) == nil) {
				found[place] = retrieve.Excerpt{Stored: true, Text: string(text), Outline: o}
			}
		}
	}, "reading parts of documents")
	if err != nil {
		return nil, err
	}
	return found, nil
}

// filterCondition returns a condition that holds for every document that the filter matches. If exact is
// true, it holds for no other document.
func filterCondition(f retrieve.Filter) (condition string, args []any, exact bool) {
	parts := []string{whole}
	add := func(part string, values ...any) {
		parts, args = append(parts, part), append(args, values...)
	}
	for _, c := range [][2]string{{"collection", f.Collection}, {"root", f.Root}, {"format", f.Format}} {
		if c[1] != "" {
			add(c[0]+" = ?", c[1])
		}
	}
	if f.Document != "" {
		add("key = ?", retrieve.DigestOf(f.Document))
	}
	if n := len(f.Digests); 0 < n && n <= maxList {
		list, values := inList(f.Digests)
		add("digest IN "+list, values...)
	}
	exact = len(f.Digests) <= maxList && len(f.Tags)+len(f.Documents) == 0 &&
		f.PathPrefix+f.Author+string(f.Language)+string(f.Since)+string(f.Until) == ""
	if n := len(f.Collections); n > maxList {
		exact = false
	} else if n > 0 {
		list, values := inList(f.Collections)
		add("collection IN "+list, values...)
	}
	return strings.Join(parts, " AND "), args, exact
}

// eachDocument calls f for each undamaged document that the filter matches.
func (t *tx) eachDocument(filter retrieve.Filter, f func(*retrieve.DocumentInfo)) {
	condition, args, exact := filterCondition(filter)
	for r := range t.rows(`SELECT `+documentColumns+` FROM ibid.documents WHERE `+condition, args...) {
		d, err := scanDocument(r)
		if err != nil {
			t.markDamaged(d.Number, damagedRow)
			continue
		}
		if exact || filter.Matches(&d.DocumentInfo, retrieve.LabelsOf(d.Meta)) {
			f(&d.DocumentInfo)
		}
	}
}

// Documents lists the stored documents, ordered by id, without texts.
func (s *Store) Documents(ctx context.Context, f retrieve.Filter) (list []retrieve.DocumentInfo, err error) {
	err = s.view(ctx, func(t *tx) {
		list = nil
		t.eachDocument(f, func(d *retrieve.DocumentInfo) { list = append(list, *d) })
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b retrieve.DocumentInfo) int { return strings.Compare(a.ID, b.ID) })
	for i := 1; i < len(list); i++ {
		if list[i].ID == list[i-1].ID {
			return nil, s.unfoundError(list[i].ID)
		}
	}
	return list, nil
}

// unfoundError reports a document that is listed but was not found by its key: the file's index is
// damaged.
func (s *Store) unfoundError(id string) error {
	return s.requestRepair(&failure{message: fmt.Sprintf("%v: %s is stored and cannot be found by its key", ErrDamaged, id), damaged: true})
}

// Holds reports whether Documents would list any document.
func (s *Store) Holds(ctx context.Context, f retrieve.Filter) (bool, error) {
	documents, _, err := s.Count(ctx, f)
	return documents > 0, err
}

// Count returns the number of documents that Documents would list, and of their chunks.
func (s *Store) Count(ctx context.Context, f retrieve.Filter) (documents, chunks int, err error) {
	condition, args, exact := filterCondition(f)
	err = s.view(ctx, func(t *tx) {
		documents, chunks = 0, 0
		if exact {
			check(t.row(`SELECT count(*), CAST(coalesce(sum(chunks), 0) AS bigint) FROM ibid.documents
				WHERE `+condition, args...).Scan(&documents, &chunks))
			return
		}
		t.eachDocument(f, func(d *retrieve.DocumentInfo) { documents, chunks = documents+1, chunks+d.Chunks })
	})
	return documents, chunks, err
}

// DocumentChunks returns all chunks of a document with their vectors of the space in use.
func (s *Store) DocumentChunks(ctx context.Context, id string) (chunks []ingest.Chunk, vectors [][]float32, err error) {
	err = inTransaction(ctx, s.view, func(t *tx) {
		chunks, vectors = nil, nil
		d := t.document(id)
		rows := t.chunks(d)
		found := t.vectors(t.spaces().Used, digestsOf(rows))
		for i := range rows {
			v := found[string(rows[i].digest)]
			if v == nil {
				check(vectorError(d, i+1))
			}
			chunks, vectors = append(chunks, *rows[i].chunkOf(id)), append(vectors, v)
		}
	}, "reading the chunks of the document %q", id)
	return chunks, vectors, err
}

func vectorError(d *documentRow, ordinal int) *damagedError {
	return &damagedError{d.Number, d.ID, fmt.Sprintf("the vector of its chunk %d is damaged or missing", ordinal)}
}

func digestsOf(rows []chunkRow) []string {
	digests := make([]string, len(rows))
	for i := range rows {
		digests[i] = string(rows[i].digest)
	}
	return digests
}

// chunks returns the chunks of a document in order, after checking them. Their field Document is
// not set.
func (t *tx) chunks(d *documentRow) []chunkRow {
	found := t.chunksBetween(d.Number, d.Number)[d.Number]
	if damaged := found.damage(d); damaged != nil {
		check(damaged)
	}
	return found.rows
}

// documentChunks are the chunks of a document as read from the table.
type documentChunks struct {
	rows      []chunkRow
	isDamaged bool // a chunk is damaged
}

// damage describes the damage of a document's chunks, or returns nil.
func (c documentChunks) damage(d *documentRow) *damagedError {
	sums := make([]int64, len(c.rows))
	for i := range c.rows {
		sums[i] = c.rows[i].sum
	}
	if c.isDamaged || len(c.rows) != d.Chunks || sumOf(sums) != d.chunkSum {
		return &damagedError{d.Number, d.ID, "its chunks are damaged"}
	}
	return nil
}

// chunksBetween returns the chunks of the documents numbered first to last.
func (t *tx) chunksBetween(first, last int64) map[int64]documentChunks {
	found := make(map[int64]documentChunks)
	from, _ := keyRange(first)
	_, to := keyRange(last)
	for r := range t.rows(`SELECT `+chunkColumns+` FROM ibid.chunks WHERE key BETWEEN ? AND ? ORDER BY key`, from, to) {
		var c chunkRow
		err := c.scan(r)
		of := found[c.key>>ordinalBits]
		of.isDamaged = of.isDamaged || err != nil
		of.rows = append(of.rows, c)
		found[c.key>>ordinalBits] = of
	}
	return found
}

// vectors returns the vectors of a space by digest. It omits vectors that are missing or damaged.
func (t *tx) vectors(space int64, digests []string) map[string][]float32 {
	found := make(map[string][]float32, len(digests))
	for part := range slices.Chunk(digests, maxList) {
		list, args := inList(part)
		for r := range t.rows(`SELECT space, digest, vector, sum FROM ibid.vectors WHERE digest IN `+list+` AND space = ?`,
			append(args, space)...) {
			var of int64
			var digest string
			var vector []byte
			if scanChecked(r, &of, &digest, &vector) == nil {
				found[digest] = retrieve.UnpackVector(vector)
			}
		}
	}
	return found
}

// Vectors returns the stored vector of the space for each digest, or nil if it is not stored.
func (s *Store) Vectors(ctx context.Context, name string, digests []retrieve.Digest) ([][]float32, error) {
	vectors := make([][]float32, len(digests))
	keys := make([]string, len(digests))
	for i, d := range digests {
		keys[i] = string(d[:])
	}
	err := s.view(ctx, func(t *tx) {
		all := t.spaces()
		of := all.byName(name)
		if of.Number == 0 {
			return
		}
		found := t.vectors(of.Number, keys)
		for i, k := range keys {
			vectors[i] = found[k]
		}
	})
	return vectors, err
}

// Chunks returns the chunks of the hits, in order.
func (s *Store) Chunks(ctx context.Context, hits []retrieve.Hit) ([]retrieve.Candidate, error) {
	rows := make(map[retrieve.Hit]retrieve.Candidate, len(hits))
	for part := range slices.Chunk(hits, maxList) {
		err := inTransaction(ctx, s.viewOnce, func(t *tx) { t.candidates(part, rows) }, "reading the chunks found")
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
	err := inTransaction(ctx, s.view, func(t *tx) { t.checkVanished(lacking) }, "looking for missing chunks")
	return found, err
}

// qualifyColumns prefixes columns with the name of their table.
func qualifyColumns(table, columns string) string {
	return table + "." + strings.ReplaceAll(columns, ", ", ", "+table+".")
}

// candidates adds the chunks of those hits whose generation is still stored. Both statements read the
// generation, so they may see different states of the database.
func (t *tx) candidates(hits []retrieve.Hit, into map[retrieve.Hit]retrieve.Candidate) {
	keys, numbers := make([]int64, len(hits)), make([]int64, len(hits))
	for i, h := range hits {
		keys[i], numbers[i] = chunkKey(h.Document, h.Ordinal), h.Document
	}
	slices.Sort(numbers)
	documents := t.generations(slices.Compact(numbers))
	list, args := inList(keys)
	for r := range t.rows(`SELECT changes.revision, `+qualifyColumns("chunks", chunkColumns)+`
		FROM ibid.chunks JOIN ibid.changes ON changes.document = chunks.key >> 20 WHERE chunks.key IN `+list, args...) {
		var c chunkRow
		hit := retrieve.Hit{}
		err := r.Scan(slices.Concat([]any{&hit.Generation}, c.dest(), []any{&c.sum})...)
		hit.Document = c.key >> ordinalBits
		d, ok := documents[retrieve.Hit{Document: hit.Document, Generation: hit.Generation}]
		if ok && (err != nil || rowSum(c.dest()...) != c.sum) {
			t.markDamaged(hit.Document, "its rows are damaged")
		} else if ok {
			c.decodePlace()
			hit.Ordinal = c.Ordinal
			into[hit] = retrieve.Candidate{Hit: hit, Chunk: *c.chunkOf(d.ID), Root: d.Root, Path: d.Path, Title: d.Title,
				Format: d.Format, Digest: d.Digest, Meta: d.Meta}
		}
	}
}

// generations returns undamaged documents by number and generation. Its condition uses
// changes.document, because PostgreSQL would scan the table for a list of documents.number.
func (t *tx) generations(numbers []int64) map[retrieve.Hit]documentRow {
	found := make(map[retrieve.Hit]documentRow, len(numbers))
	list, args := inList(numbers)
	for r := range t.rows(`SELECT `+qualifyColumns("documents", documentColumns)+`, `+qualifyColumns("changes", changeColumns)+`, changes.sum
		FROM ibid.documents JOIN ibid.changes ON changes.document = documents.number
		WHERE changes.document IN `+list+` AND `+whole, args...) {
		var d documentRow
		var c change
		var sum, changeSum int64
		err := r.Scan(slices.Concat(d.dest(), []any{&sum}, c.dest(), []any{&changeSum})...)
		if err != nil || d.decode() != nil || rowSum(d.dest()...) != sum || rowSum(c.dest()...) != changeSum {
			t.markDamaged(d.Number, "its rows are damaged")
			continue
		}
		found[retrieve.Hit{Document: d.Number, Generation: c.revision}] = d
	}
	return found
}

// checkVanished marks documents that should be stored but lack a row as damaged.
func (t *tx) checkVanished(hits []retrieve.Hit) {
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

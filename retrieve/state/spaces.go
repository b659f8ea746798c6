package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"ibid/ingest"
	"ibid/retrieve"
)

// A space is an embedding space with vectors.
type space struct {
	Number     int64  `json:"number"`
	Name       string `json:"name"`
	Dimensions int    `json:"dimensions,omitempty"` // 0 before the first vector
}

// spaces is the value of settingSpaces.
type spaces struct {
	Used int64   `json:"used,omitempty"` // number of the space in use; 0 if not set
	Last int64   `json:"last,omitempty"` // the last number assigned; numbers are not reused
	All  []space `json:"all,omitempty"`
}

// current returns the space in use, or the zero value.
func (s *spaces) current() space { return s.find(func(x space) bool { return x.Number == s.Used }) }

// byName returns the space with the given name, or the zero value.
func (s *spaces) byName(name string) space {
	return s.find(func(x space) bool { return x.Name == name })
}

func (s *spaces) find(is func(space) bool) space {
	if i := slices.IndexFunc(s.All, is); i >= 0 {
		return s.All[i]
	}
	return space{}
}

// add returns the space with the given name, and adds it if it does not exist.
func (s *spaces) add(name string) *space {
	if s.byName(name) == (space{}) {
		s.Last++
		s.All = append(s.All, space{Number: s.Last, Name: name})
	}
	return &s.All[slices.IndexFunc(s.All, func(x space) bool { return x.Name == name })]
}

// setOnly makes a space the only one.
func (s *spaces) setOnly(only space) { s.Used, s.All = only.Number, []space{only} }

func (t *tx) spaces() (all spaces) {
	if text := t.setting(settingSpaces); text != "" {
		check(json.Unmarshal([]byte(text), &all))
	}
	return all
}

func (t *tx) setSpaces(all spaces) {
	text, err := json.Marshal(all)
	check(err)
	t.set(settingSpaces, string(text))
}

// spaceFor returns the space with the given name, and adds it if it does not exist. The space must
// have the given dimensions, which are set with its first vectors.
func (t *tx) spaceFor(name string, dimensions int) space {
	all := t.spaces()
	if known := all.byName(name); known.Dimensions == dimensions {
		return known
	}
	t.lock("spaces")
	all = t.spaces() // another process may have been first
	of := all.add(name)
	if of.Dimensions == 0 {
		of.Dimensions = dimensions
		t.setSpaces(all)
	}
	if of.Dimensions != dimensions {
		check(fmt.Errorf("its vectors have %d dimensions, but the stored vectors of %s have %d", dimensions, name, of.Dimensions))
	}
	return *of
}

// Space returns the name of the embedding space in use, or "" while no document is stored.
func (s *Store) Space(ctx context.Context) (name string, err error) {
	err = s.view(ctx, func(t *tx) { name = t.spaceOfDocuments() })
	return name, err
}

// Spaces returns the names of the embedding spaces with vectors.
func (s *Store) Spaces(ctx context.Context) (names []string, err error) {
	err = s.view(ctx, func(t *tx) {
		for _, x := range t.spaces().All {
			names = append(names, x.Name)
		}
	})
	return names, err
}

func (t *tx) spaceOfDocuments() string {
	if !t.hasRows("documents") {
		return ""
	}
	all := t.spaces()
	return all.current().Name
}

// useSpace makes the named space the one in use. If documents are stored in another space, the
// error is a [*retrieve.SpaceError].
func (t *tx) useSpace(name string) {
	if name == "" {
		check(errors.New("its embedding space has no name"))
	}
	if all := t.spaces(); all.current().Name == name {
		return
	}
	t.lock("library") // no document is added meanwhile
	if stored := t.spaceOfDocuments(); stored != "" && stored != name {
		check(&retrieve.SpaceError{Stored: stored, Wanted: name})
	}
	all := t.spaces()
	all.setOnly(*all.add(name))
	t.setSpaces(all)
}

// Unembedded yields the texts of stored chunks that have no vector of the space yet, each once, up
// to n at a time, beginning with the latest documents.
func (s *Store) Unembedded(ctx context.Context, space string, n int) iter.Seq2[[]retrieve.ChunkText, error] {
	return func(yield func([]retrieve.ChunkText, error) bool) {
		for last := int64(math.MaxInt64); ; {
			var texts []retrieve.ChunkText
			err := s.view(ctx, func(t *tx) { texts, last = t.unembedded(space, last, n) })
			if err == nil && len(texts) == 0 || !yield(texts, err) || err != nil {
				return
			}
		}
	}
}

// unembedded returns the texts of up to n chunks before a key, and the key of the last.
func (t *tx) unembedded(space string, before int64, n int) (texts []retrieve.ChunkText, last int64) {
	all := t.spaces()
	seen := make(map[retrieve.Digest]bool)
	last = before
	// PostgreSQL would read whole tables for a join, so these are subqueries.
	for r := range t.rows(`SELECT c.key, c.digest, c.heading, c.text, (SELECT d.title FROM ibid.documents d WHERE d.number = c.key >> 20)
		FROM ibid.chunks c WHERE c.key < ? AND (SELECT count(*) FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?) = 0
		ORDER BY c.key DESC LIMIT ?`, before, all.byName(space).Number, n) {
		var c chunkRow
		var title []byte // nil if the row is missing
		check(r.Scan(&c.key, &c.digest, &c.Heading, &c.Text, &title))
		last = c.key
		digest := retrieve.Digest(append(c.digest, make([]byte, len(retrieve.Digest{}))...))
		if !seen[digest] {
			seen[digest] = true
			texts = append(texts, retrieve.ChunkText{Digest: digest, Text: ingest.EmbeddingText(string(title), c.Chunk)})
		}
	}
	return texts, last
}

// CountEmbedded returns the number of chunks that have a vector of the space, and of all chunks.
func (s *Store) CountEmbedded(ctx context.Context, space string) (done, total int, err error) {
	err = s.view(ctx, func(t *tx) {
		all := t.spaces()
		check(t.row(`SELECT count(*), (SELECT count(*) FROM ibid.chunks) FROM ibid.chunks c
			WHERE EXISTS (SELECT 1 FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?)`, all.byName(space).Number).Scan(&done, &total))
	})
	return done, total, err
}

// AddVectors stores vectors of a space in addition to those in use.
func (s *Store) AddVectors(ctx context.Context, name string, digests []retrieve.Digest, vectors [][]float32) error {
	if len(digests) != len(vectors) {
		return fmt.Errorf("there are %d chunks and %d vectors", len(digests), len(vectors))
	}
	if len(digests) == 0 {
		return nil
	}
	rows := make(map[string][]any, len(digests))
	for i, d := range digests {
		unit, err := retrieve.Unit(vectors[i], len(vectors[0]))
		if err != nil {
			return fmt.Errorf("the vector %d: %w", i+1, err)
		}
		rows[string(d[:])] = []any{d, retrieve.PackVector(unit)}
	}
	return s.update(ctx, func(t *tx) {
		t.s.dialect.lock(t, []string{"library"}, nil)
		used := make(map[string][]any, len(rows)) // the vectors whose digests any chunk has
		for part := range slices.Chunk(slices.Sorted(maps.Keys(rows)), maxList) {
			list, args := inList(part)
			t.s.dialect.lockVectors(t, list, args)
			for _, d := range column[string](t, `SELECT DISTINCT digest FROM ibid.chunks WHERE digest IN `+list, args...) {
				used[d] = rows[d]
			}
		}
		t.insertVectors(name, len(vectors[0]), used)
		t.recordChanges(t.coveredChanges(name, slices.Sorted(maps.Keys(used)))...)
	})
}

// coveredChanges returns a change for each document that contains one of the chunks and whose chunks all
// have a vector of the space, so that followers read it again. It must be the last step before the
// transaction writes its changes.
func (t *tx) coveredChanges(name string, digests []string) (changes []change) {
	value[int64](t, t.s.dialect.nextRevision, 0) // in PostgreSQL other transactions with changes wait from here
	all := t.spaces()
	numbers := make(map[int64]bool)
	for part := range slices.Chunk(digests, maxList) {
		list, args := inList(part)
		for _, number := range column[int64](t, `SELECT DISTINCT key >> 20 FROM ibid.chunks WHERE digest IN `+list, args...) {
			numbers[number] = true
		}
	}
	for part := range slices.Chunk(slices.Sorted(maps.Keys(numbers)), maxList) {
		documents := t.documents(part)
		list, args := inList(slices.Collect(maps.Keys(documents)))
		for _, number := range column[int64](t, `SELECT d.number FROM ibid.documents d WHERE d.number IN `+list+` AND NOT EXISTS (
			SELECT 1 FROM ibid.chunks c WHERE c.key >= d.number << 20 AND c.key < (d.number + 1) << 20
			AND NOT EXISTS (SELECT 1 FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?))`,
			append(args, all.byName(name).Number)...) {
			changes = append(changes, change{document: number, id: documents[number].ID})
		}
	}
	return changes
}

// SwitchSpace makes the space the one in use and deletes the vectors of all other spaces.
func (s *Store) SwitchSpace(ctx context.Context, name string) (switched bool, err error) {
	var kept space
	err = s.update(ctx, func(t *tx) {
		t.lock("library")
		all := t.spaces()
		kept = all.byName(name)
		switched = !value[bool](t, `SELECT EXISTS (SELECT 1 FROM ibid.chunks c
			WHERE NOT EXISTS (SELECT 1 FROM ibid.vectors v WHERE v.digest = c.digest AND v.space = ?))`, kept.Number)
		if switched && kept.Number == 0 { // there are no chunks
			kept = *all.add(name)
		}
		if switched && (all.Used != kept.Number || len(all.All) > 1) {
			all.setOnly(kept)
			t.setSpaces(all)
			t.recordChanges(change{})
		}
	})
	if err == nil && switched {
		err = s.dropSpaces(ctx, kept.Number)
	}
	return switched && err == nil, err
}

// vectorsAtOnce is the number of vectors that one transaction deletes.
const vectorsAtOnce = 5000

// dropSpaces deletes the vectors of all spaces except one, in several transactions. If it is
// interrupted, the next call or Compact deletes the remaining vectors. The numbers of spaces are
// not reused.
func (s *Store) dropSpaces(ctx context.Context, kept int64) error {
	for from, last := int64(0), int64(1); from < last; from += vectorsAtOnce {
		err := s.update(ctx, func(t *tx) {
			last = value[int64](t, `SELECT coalesce(max(number), 0) FROM ibid.vectors`)
			t.exec(`DELETE FROM ibid.vectors WHERE number > ? AND number <= ? AND space <> ?`, from, from+vectorsAtOnce, kept)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

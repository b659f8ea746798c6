package postgres

import (
	"fmt"
	"net/url"
	"os"
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// BenchmarkLibrary measures libraries of real text on a server: storing them,
// one document in each transaction, what they take there, answering
// real questions from the question to the passages, and both searches for the
// candidates alone. Of Dense it says which part of the ten nearest it finds.
// Where IBID_LIBRARY is set, each library stays in a schema of that name and its
// size, and is found again.
func BenchmarkLibrary(b *testing.B) {
	server := os.Getenv("IBID_TEST_POSTGRES")
	if server == "" {
		b.Skip("IBID_TEST_POSTGRES names no server: .ci/postgres starts one")
	}
	enginetest.BenchLibraries(b, os.Getenv("IBID_CHUNKS"), os.Getenv("IBID_DATASETS"), func(b *testing.B, s *enginetest.Shelf) {
		e := openTest(b, libraryAddress(b, server, len(s.Texts)))
		s.BenchStore(b, e, func() map[string]float64 { return diskPerChunk(b, e, int64(len(s.Texts))) })
		// As a server does by itself after a while.
		if _, err := e.pool.Exec(b.Context(), e.names.Replace(`VACUUM ANALYZE ibid.postings, ibid.documents, ibid.chunks, ibid.texts`)); err != nil {
			b.Fatal(err)
		}
		s.BenchEngine(b, e)
		s.BenchRecall(b, e, func(b *testing.B, q []float32) (best []string) {
			err := e.view(b.Context(), func(s *session) error {
				spaces, err := readSpaces(b.Context(), s)
				if err != nil {
					return err
				}
				best, err = nearest(b.Context(), s, spaces[0], q, 10, retrieve.Filter{}, true)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			return best
		})
	})
}

// libraryAddress is the server with the schema of a library of so many chunks.
func libraryAddress(b *testing.B, server string, chunks int) string {
	b.Helper()
	kept := os.Getenv("IBID_LIBRARY")
	if kept == "" {
		return newSchema(b, server)
	}
	u, err := url.Parse(server)
	if err != nil {
		b.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", fmt.Sprintf("%s_%d", kept, chunks))
	u.RawQuery = q.Encode()
	return u.String()
}

// diskPerChunk is what the tables take with their indexes, all together and those
// of more than ten bytes a chunk by name.
func diskPerChunk(b *testing.B, e *Engine, chunks int64) map[string]float64 {
	b.Helper()
	rows, err := e.pool.Query(b.Context(), `SELECT CASE WHEN c.relname LIKE 'vectors_%' THEN 'vectors' ELSE c.relname END, pg_total_relation_size(c.oid) FROM pg_class c
		WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'`, e.schema)
	if err != nil {
		b.Fatal(err)
	}
	figures := map[string]float64{}
	var name string
	var size int64
	for rows.Next() {
		if err := rows.Scan(&name, &size); err != nil {
			b.Fatal(err)
		}
		figures["disk-B/chunk"] += float64(size) / float64(chunks)
		if size > 10*chunks {
			figures[name+"-B/chunk"] = float64(size) / float64(chunks)
		}
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return figures
}

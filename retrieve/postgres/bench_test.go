package postgres

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// BenchmarkLibrary measures libraries of real text on a server: storing them by
// one writer, one document in each transaction, what they take there, answering
// real questions from the question to the passages, and both searches for the
// candidates alone. Of Dense it says which part of the ten nearest it finds.
// IBID_CHUNKS names other sizes: "500000 1000000". Where IBID_LIBRARY is set, each
// library stays in a schema of that name and its size, and is found again.
func BenchmarkLibrary(b *testing.B) {
	server := os.Getenv("IBID_TEST_POSTGRES")
	if server == "" {
		b.Skip("IBID_TEST_POSTGRES names no server: .ci/postgres starts one")
	}
	sizes := strings.Fields(os.Getenv("IBID_CHUNKS"))
	if len(sizes) == 0 {
		sizes = []string{"10000", "100000"}
	}
	for _, size := range sizes {
		chunks, err := strconv.Atoi(size)
		if err != nil || chunks < 10 {
			b.Fatalf("IBID_CHUNKS has %q: give numbers of chunks from 10 on", size)
		}
		b.Run(size, func(b *testing.B) {
			if testing.Short() && chunks > 10000 {
				b.Skip("-short")
			}
			benchmarkLibrary(b, server, chunks/10*10)
		})
	}
}

func benchmarkLibrary(b *testing.B, server string, chunks int) {
	s := enginetest.FillShelf(b, os.Getenv("IBID_DATASETS"), chunks)
	address := ""
	if kept := os.Getenv("IBID_LIBRARY"); kept != "" {
		u, err := url.Parse(server)
		if err != nil {
			b.Fatal(err)
		}
		q := u.Query()
		q.Set("search_path", fmt.Sprintf("%s_%d", kept, chunks))
		u.RawQuery = q.Encode()
		address = u.String()
	} else {
		address = newSchema(b, server)
	}
	e := openTest(b, address)
	if err := e.SetSpace(b.Context(), s.Embedder.Space()); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	fresh := s.Store(b, e)
	stored := time.Since(start)
	b.Run("Stored", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(0, "ns/op")
		if fresh > 0 {
			b.ReportMetric(float64(fresh)/stored.Seconds(), "chunks/s")
		}
		rows, err := e.pool.Query(b.Context(), `SELECT CASE WHEN c.relname LIKE 'vectors_%' THEN 'vectors' ELSE c.relname END, pg_total_relation_size(c.oid) FROM pg_class c
			WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'`, e.schema)
		if err != nil {
			b.Fatal(err)
		}
		var name string
		var size, all int64
		for rows.Next() {
			if err := rows.Scan(&name, &size); err != nil {
				b.Fatal(err)
			}
			all += size
			if size > int64(chunks)*10 {
				b.ReportMetric(float64(size)/float64(chunks), name+"-B/chunk")
			}
		}
		if err := rows.Err(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(all)/float64(chunks), "disk-B/chunk")
	})
	// As a server does by itself after a while.
	if _, err := e.pool.Exec(b.Context(), e.names.Replace(`VACUUM ANALYZE ibid.postings, ibid.documents, ibid.chunks, ibid.texts`)); err != nil {
		b.Fatal(err)
	}
	x, err := retrieve.NewIndex(b.Context(), e, s.Embedder, retrieve.Options{})
	if err != nil {
		b.Fatal(err)
	}
	questions := s.Embed(b, s.Questions)
	ask := func(name string, search func(ctx context.Context, n int) error) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for n := 0; b.Loop(); n++ {
				start := time.Now()
				if err := search(b.Context(), n%len(questions)); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
	filter := retrieve.Filter{PathPrefix: "folder7/"} // one document in 50
	ask("Search", func(ctx context.Context, n int) error {
		_, err := x.Search(ctx, retrieve.Query{Text: s.Questions[n]})
		return err
	})
	for name, f := range map[string]retrieve.Filter{"": {}, "Filtered": filter} {
		ask("Dense"+name, func(ctx context.Context, n int) error {
			_, err := e.Dense(ctx, questions[n], retrieve.DefaultCandidates, f)
			return err
		})
		ask("Lexical"+name, func(ctx context.Context, n int) error {
			_, err := e.Lexical(ctx, retrieve.Terms(s.Questions[n]), retrieve.DefaultCandidates, f)
			return err
		})
	}
	ask("Stats", func(ctx context.Context, n int) error {
		_, err := e.Stats(ctx, retrieve.Terms(s.Questions[n]))
		return err
	})
	b.Run("Replace", func(b *testing.B) {
		n := 0
		for b.Loop() {
			doc, chunks := s.Document(n % (len(s.Texts) / 10))
			doc.Title += strconv.Itoa(n) // so that the vectors are made anew
			if err := x.Replace(b.Context(), doc, chunks); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.ReportMetric(float64(10*n)/b.Elapsed().Seconds(), "chunks/s")
	})
	b.Run("Recall", func(b *testing.B) {
		found, wanted := 0, 0
		for b.Loop() {
			n := wanted / 10 % len(questions)
			got, err := e.Dense(b.Context(), questions[n], retrieve.DefaultCandidates, retrieve.Filter{})
			if err != nil {
				b.Fatal(err)
			}
			var want []string
			err = e.view(b.Context(), func(s *session) error {
				spaces, err := readSpaces(b.Context(), s)
				if err != nil {
					return err
				}
				want, err = nearest(b.Context(), s, spaces[0], questions[n], 10, retrieve.Filter{}, true)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			for _, id := range want {
				if slices.Contains(got[:10], id) {
					found++
				}
			}
			wanted += len(want)
		}
		b.ReportMetric(float64(found)/float64(wanted), "recall@10")
		b.ReportMetric(0, "ns/op")
		if found == 0 {
			b.Fatal(fmt.Errorf("none of %d", wanted))
		}
	})
}

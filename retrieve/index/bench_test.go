package index

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
)

// A library has chunks of recombined real text: each is two neighbouring pieces
// and a random one, 120 words in all. Ten chunks are a document.
type library struct {
	texts     []string
	questions []string
	embedder  *embed.Model
}

func newLibrary(b testing.TB, chunks int) *library {
	b.Helper()
	l := &library{texts: make([]string, chunks)}
	var pieces []string
	for _, name := range strings.Fields("anthropic-docs clapnq-a cranfield financebench-a kgrag-10q-a msmarco-dl-5k rgb-en-fact-a " +
		"scifact-train squad2-a wice-dev") {
		for _, text := range readTexts(b, datatest.Sets(b, name, "corpus.jsonl")) {
			for words := range slices.Chunk(strings.Fields(text), 40) {
				pieces = append(pieces, strings.Join(words, " "))
			}
		}
		l.questions = append(l.questions, readTexts(b, datatest.Sets(b, name, "queries.jsonl"))...)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range l.texts {
		at := i % (len(pieces) - 1)
		l.texts[i] = pieces[at] + " " + pieces[at+1] + " " + pieces[r.IntN(len(pieces))]
	}
	r.Shuffle(len(l.questions), func(i, j int) { l.questions[i], l.questions[j] = l.questions[j], l.questions[i] })
	l.questions = l.questions[:2000]
	var err error
	if l.embedder, err = embed.New(); err != nil {
		b.Fatal(err)
	}
	return l
}

func readTexts(b testing.TB, path string) (texts []string) {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Skip(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var e struct{ Title, Text string }
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			b.Fatal(err)
		}
		texts = append(texts, strings.TrimSpace(e.Title+" "+e.Text))
	}
	return texts
}

func (l *library) embed(b testing.TB, texts ...string) [][]float32 {
	rows, err := l.embedder.Embed(b.Context(), texts)
	if err != nil {
		b.Fatal(err)
	}
	return rows
}

func (l *library) change(b testing.TB, n int) retrieve.Change {
	path := fmt.Sprintf("folder%d/%d", n%50, n)
	c := retrieve.Change{Revision: int64(n + 1), Document: int64(n + 1), Info: retrieve.DocumentInfo{Collection: "default",
		Document: ingest.Document{ID: "a/" + path, Root: "a", Path: path, Format: "text"}}}
	texts := l.texts[10*n : 10*n+10]
	for i, v := range l.embed(b, texts...) {
		c.Chunks = append(c.Chunks, retrieve.IndexChunk{Text: texts[i], Vector: v})
	}
	return c
}

// libraries runs a benchmark for 10,000 and 100,000 chunks, or for the numbers in
// IBID_CHUNKS, such as "1000000". The indexes are kept in IBID_BENCH_DIR, by
// default in the temporary folder.
func libraries(b *testing.B, run func(b *testing.B, l *library, dir string)) {
	for _, size := range strings.Fields(cmp.Or(os.Getenv("IBID_CHUNKS"), "10000 100000")) {
		chunks, err := strconv.Atoi(size)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(size, func(b *testing.B) {
			if testing.Short() && chunks > 10000 {
				b.Skip("-short")
			}
			l := newLibrary(b, chunks)
			dir := filepath.Join(cmp.Or(os.Getenv("IBID_BENCH_DIR"), filepath.Join(os.TempDir(), "ibid-index-bench")), size)
			fill(b, l, dir)
			run(b, l, dir)
		})
	}
}

// benchOptions are those of the indexes of benchmarks.
var benchOptions = Options{Library: "bench", Space: "bench"}

func fill(b *testing.B, l *library, dir string) {
	x := Open(dir, benchOptions)
	at, _, err := x.Revision(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	const batch = 100
	n := len(l.texts) / 10
	var embedding time.Duration
	before, most := residentBytes(), int64(0)
	for first := int(at); first < n; first += batch {
		var changes []retrieve.Change
		begun := time.Now()
		for i := first; i < min(n, first+batch); i++ {
			changes = append(changes, l.change(b, i))
		}
		embedding += time.Since(begun)
		if err := x.Apply(b.Context(), changes); err != nil {
			b.Fatal(err)
		}
		most = max(most, residentBytes()-before)
	}
	if fresh := len(l.texts) - 10*int(at); fresh > 0 {
		b.Logf("%d chunks in %v, without %v of embedding, with up to %d MB of memory", fresh, time.Since(start)-embedding, embedding, most>>20)
		x.quiet()
	}
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
}

func at(took []time.Duration, share float64) time.Duration {
	return slices.Sorted(slices.Values(took))[int(share*float64(len(took)))]
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// BenchmarkOpen opens an index in a new process and searches it once: open-ms is
// the time of opening and the first dense and lexical search, B/chunk the memory
// of the process that is no mapped file, less that of an empty index.
func BenchmarkOpen(b *testing.B) {
	libraries(b, func(b *testing.B, l *library, dir string) {
		run := func(dir string) (took time.Duration, bytes float64) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childRole+"=open", childDir+"="+dir)
			out, err := cmd.Output()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := fmt.Sscan(string(out), &took, &bytes); err != nil {
				b.Fatal(err)
			}
			return took, bytes
		}
		_, empty := run(b.TempDir())
		var all []time.Duration
		var bytes float64
		for b.Loop() {
			took, n := run(dir)
			all, bytes = append(all, took), n-empty
		}
		b.ReportMetric(float64(at(all, .5).Microseconds())/1000, "open-ms")
		b.ReportMetric(bytes/float64(len(l.texts)), "B/chunk")
	})
}

// childOpen is the process of BenchmarkOpen.
func childOpen(dir string) error {
	m, err := embed.New()
	if err != nil {
		return err
	}
	const question = "How long does a refund take after an order was cancelled?"
	v, err := m.Embed(context.Background(), []string{question})
	if err != nil {
		return err
	}
	terms := terms(question)
	start := time.Now()
	x := Open(dir, benchOptions)
	if _, err := x.Dense(context.Background(), v[0], 100, retrieve.Filter{}); err != nil {
		return err
	}
	if _, err := x.Lexical(context.Background(), terms, 100, retrieve.Filter{}); err != nil {
		return err
	}
	fmt.Println(time.Since(start).Nanoseconds(), residentBytes())
	return x.Close()
}

// residentBytes is the memory of this process that is no mapped file.
func residentBytes() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// BenchmarkDense searches for the ten nearest chunks. Every round reads as many
// bytes as all vectors have, once, by one processor, and searches; every hundredth
// compares the result with computing every cosine. So the ratio, of medians, is of
// one time and one machine.
func BenchmarkDense(b *testing.B) {
	libraries(b, func(b *testing.B, l *library, dir string) {
		x := Open(dir, benchOptions)
		defer x.Close()
		questions := l.embed(b, l.questions...)
		all := bytes.Repeat([]byte{1}, 4*len(questions[0])*len(l.texts))
		var floor, ours []time.Duration
		found, wanted, computed := 0, 0, 0
		for n := 0; b.Loop(); n++ {
			q := questions[n%len(questions)]
			floor = append(floor, timed(func() {
				if bytes.IndexByte(all, 0) >= 0 {
					b.Fatal("a byte has changed")
				}
			}))
			var hits []retrieve.Hit
			ours = append(ours, timed(func() {
				err := x.read(b.Context(), func(s *snapshot) error {
					t := newTop(10, s)
					c, err := s.nearest(b.Context(), t, q, retrieve.Filter{})
					hits, computed = t.ranked(), computed+c
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}))
			if n%100 == 0 {
				for _, h := range everyCosine(x, q, 10) {
					if wanted++; slices.Contains(hits, h) {
						found++
					}
				}
			}
		}
		b.ReportMetric(float64(at(ours, .5)), "ns/op")
		b.ReportMetric(float64(at(ours, .5))/float64(at(floor, .5)), "x-floor")
		b.ReportMetric(float64(computed)/float64(len(ours)), "cosines/op")
		b.ReportMetric(float64(found)/float64(wanted), "recall@10")
	})
}

// everyCosine finds the k nearest by computing every cosine.
func everyCosine(x *Index, q []float32, k int) []retrieve.Hit {
	s := x.current.Load()
	t := newTop(k, s)
	for i, p := range s.parts {
		for slot := range int32(p.Chunks) {
			t.add(scored[float64]{int32(i), slot, dot(p.vector(slot), q)})
		}
	}
	return t.ranked()
}

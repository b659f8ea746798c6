package index

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/index/scan"
)

// BenchmarkMillions measures an index of IBID_CHUNKS chunks, 100000 without it, in
// the folder IBID_LIBRARY, where it is kept for the next run: opening it up to the
// reply of the first search, searches with filters and without, the share of the exact
// search's ten nearest that is found, and at the end merging its four segments into
// one. Times of searches are those of the processor, which does not depend on what
// else the machine does.
//
// The index is made of the texts in IBID_DATASETS without storing ten million of
// them: a chunk's vector is the sum of those of two neighbouring pieces and a random
// one, a term is in as many chunks as in those of the sets, at random.
func BenchmarkMillions(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("IBID_CHUNKS"))
	if err != nil {
		n = 100_000
	}
	dir := os.Getenv("IBID_LIBRARY")
	if dir == "" {
		dir = b.TempDir()
	}
	s := newStacks(b)
	o := Options{Library: "library", Space: "test/256"}
	dir = filepath.Join(dir, strconv.Itoa(n))
	x := Open(dir, o)
	if x.current.Load().chunks == 0 {
		s.fill(b, x, n)
	}
	must(b, x.Close())
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			x := Open(dir, o)
			s.dense(b, x, 0, retrieve.DefaultCandidates, retrieve.Filter{})
			s.lexical(b, x, 0, retrieve.Filter{})
			must(b, x.Close())
		}
	})
	x = Open(dir, o)
	defer x.Close()
	o.Exact = true
	exact := Open(dir, o)
	defer exact.Close()
	all, fourth, one := retrieve.Filter{}, retrieve.Filter{Collection: "collection1"}, retrieve.Filter{Document: "a/folder7/7"}
	for _, c := range []struct {
		name   string
		search func(i int)
	}{
		{"Dense", func(i int) { s.dense(b, x, i, retrieve.DefaultCandidates, all) }},
		{"Lexical", func(i int) { s.lexical(b, x, i, all) }},
		{"Search", func(i int) {
			s.dense(b, x, i, retrieve.DefaultCandidates, all)
			s.lexical(b, x, i, all)
		}},
		{"DenseExact", func(i int) { s.dense(b, exact, i, retrieve.DefaultCandidates, all) }},
		{"DenseCollection", func(i int) { s.dense(b, x, i, retrieve.DefaultCandidates, fourth) }},
		{"LexicalCollection", func(i int) { s.lexical(b, x, i, fourth) }},
		{"DenseDocument", func(i int) { s.dense(b, x, i, retrieve.DefaultCandidates, one) }},
	} {
		b.Run(c.name, func(b *testing.B) { percentiles(b, c.search) })
	}
	b.Run("Recall", func(b *testing.B) {
		for b.Loop() {
			found, nearest := 0, 0
			for i := range len(s.questions) {
				got := s.dense(b, x, i, 10, all)
				for _, h := range s.dense(b, exact, i, 10, all) {
					if nearest++; slices.Contains(got, h) {
						found++
					}
				}
			}
			b.ReportMetric(float64(found)/float64(nearest), "recall@10")
		}
		b.ReportMetric(memory(b, "VmRSS"), "MB")
		b.ReportMetric(memory(b, "RssAnon"), "MB-anonymous")
	})
	b.Run("Merge", func(b *testing.B) {
		for b.Loop() {
			x.mu.Lock()
			x.lockForWriting(true)
			x.startWork()
			x.mu.Unlock()
			before := processorTime(b, unix.CLOCK_PROCESS_CPUTIME_ID)
			x.waitUntilIdle()
			b.ReportMetric((processorTime(b, unix.CLOCK_PROCESS_CPUTIME_ID)-before)/1000, "cpu-s")
			b.ReportMetric(float64(len(x.base.files)), "files")
		}
		b.ReportMetric(memory(b, "RssAnon"), "MB-anonymous")
		b.ReportMetric(memory(b, "VmHWM"), "MB-most")
	})
}

// percentiles reports the processor time of the first call and of each of 100 further
// calls.
func percentiles(b *testing.B, f func(i int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		times := make([]float64, 101)
		for i := range times {
			before := processorTime(b, unix.CLOCK_THREAD_CPUTIME_ID)
			f(i)
			times[i] = processorTime(b, unix.CLOCK_THREAD_CPUTIME_ID) - before
		}
		b.ReportMetric(times[0], "first-ms") // the first read maps and checks the files
		slices.Sort(times[1:])
		b.ReportMetric(times[51], "p50-ms")
		b.ReportMetric(times[99], "p99-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// processorTime returns the milliseconds that the thread or the process has used.
func processorTime(b *testing.B, clock int32) float64 {
	var t unix.Timespec
	must(b, unix.ClockGettime(clock, &t))
	return float64(t.Nano()) / 1e6
}

// memory returns a line of /proc/self/status in megabytes.
func memory(b *testing.B, name string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	must(b, err)
	_, rest, _ := strings.Cut(string(status), name+":")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	must(b, err)
	return float64(kilobytes) / 1000
}

// Stacks are the content of a large index.
type stacks struct {
	pieces    [][]float32
	questions [][]float32
	terms     []string // ascending
	shares    []float64
	asked     [][]string
	lengths   []int32
}

const stackDims = 256

func newStacks(b *testing.B) *stacks {
	corpora, err := filepath.Glob(filepath.Join(datatest.Sets(b), "*", "corpus.jsonl"))
	must(b, err)
	s := new(stacks)
	m, err := embed.New()
	must(b, err)
	var pieces, questions []string
	for _, path := range corpora {
		type entry struct{ Title, Text string }
		for _, e := range datatest.Lines[entry](b, path) {
			for words := range slices.Chunk(strings.Fields(e.Title+" "+e.Text), 40) {
				pieces = append(pieces, strings.Join(words, " "))
			}
		}
		for _, q := range datatest.Lines[entry](b, filepath.Join(filepath.Dir(path), "queries.jsonl")) {
			questions = append(questions, q.Text)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	questions = questions[:101]
	for some := range slices.Chunk(pieces, 1000) {
		rows, err := m.Embed(b.Context(), some)
		must(b, err)
		s.pieces = append(s.pieces, rows...)
	}
	s.questions, err = m.Embed(b.Context(), questions)
	must(b, err)
	for _, q := range questions {
		s.asked = append(s.asked, retrieve.Terms(q))
	}
	const sample = 20000
	counts := make(map[string]int)
	for range sample {
		at := r.IntN(len(pieces) - 1)
		terms, length := retrieve.CountTerms(pieces[at] + " " + pieces[at+1] + " " + pieces[r.IntN(len(pieces))])
		for _, t := range terms {
			counts[t.Term]++
		}
		s.lengths = append(s.lengths, int32(length))
	}
	for term := range counts {
		s.terms = append(s.terms, term)
	}
	slices.Sort(s.terms)
	for _, term := range s.terms {
		s.shares = append(s.shares, float64(counts[term])/sample)
	}
	return s
}

// vector returns the vector of a chunk.
func (s *stacks) vector(chunk int) []float32 {
	r := rand.New(rand.NewPCG(uint64(chunk), 3))
	v := make([]float32, stackDims)
	at := chunk % (len(s.pieces) - 1)
	a, b, c := s.pieces[at], s.pieces[at+1], s.pieces[r.IntN(len(s.pieces))]
	for i := range v {
		v[i] = a[i] + b[i] + c[i]
	}
	unit, err := retrieve.Unit(v, stackDims)
	if err != nil {
		panic(err)
	}
	return unit
}

// fill writes four segments of n chunks in all, ten to a document.
func (s *stacks) fill(b *testing.B, x *Index, n int) {
	var files []part
	at := position{Revision: int64(n / 10)}
	for i := range fanout {
		name := segmentPrefix + strconv.Itoa(i)
		sum := uint32(0)
		temp, err := writeTemp(x.dir, func(w io.Writer) (err error) {
			sum, err = s.content(i*(n/40), n/40).write(b.Context(), w)
			return err
		})
		must(b, err)
		must(b, rename(x.dir, temp, name))
		info, err := os.Stat(filepath.Join(x.dir, name))
		must(b, err)
		segment, err := openSegment(x.dir, name, info.Size(), sum)
		must(b, err)
		files = append(files, part{segment: segment})
		b.Log(name, info.Size()/int64(n/4), "bytes a chunk")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.lockForWriting(false) {
		b.Fatalf("locking the index for writing: %v", x.failed)
	}
	must(b, x.publish(at, files))
}

// content returns the content of a segment of documents.
func (s *stacks) content(first, documents int) *content {
	c := &content{revision: int64(first + documents), dims: stackDims, firsts: []uint32{0}}
	chunks := 10 * documents
	codes, scales, residuals := make([]byte, chunks*stackDims), make([]float32, chunks), make([]float32, chunks)
	for i := range chunks {
		scales[i], residuals[i] = scan.Quantise(codes[i*stackDims:][:stackDims], s.vector(10*first+i))
		c.lengths = append(c.lengths, s.lengths[i%len(s.lengths)])
	}
	for i := range documents {
		c.numbers, c.generations = append(c.numbers, int64(first+i+1)), append(c.generations, int64(first+i+1))
		c.firsts = append(c.firsts, uint32(10*i+10))
	}
	c.info = func(document int) []byte {
		info := retrieve.DocumentInfo{Collection: fmt.Sprint("collection", document%4)}
		info.ID = fmt.Sprint("a/folder", document%50, "/", first+document)
		info.Root, info.Path = "a", info.ID[2:]
		return packInfo(&info)
	}
	c.rows = func(section, document int) []byte {
		switch section {
		case secCodes:
			return codes[10*document*stackDims:][:10*stackDims]
		case secScales:
			return bytesOf(scales[10*document:][:10])
		case secResiduals:
			return bytesOf(residuals[10*document:][:10])
		}
		var all []float32
		for i := range 10 {
			all = append(all, s.vector(10*(first+document)+i)...)
		}
		return bytesOf(all)
	}
	c.terms = func(yield func([]byte, []occurrence) bool) {
		r := rand.New(rand.NewPCG(uint64(first), 4))
		var list []occurrence
		for i, term := range s.terms {
			list = list[:0]
			scale := 1 / math.Log1p(-min(s.shares[i], .999))
			for slot := -1; ; {
				if slot += 1 + int(math.Log(1-r.Float64())*scale); slot >= chunks {
					break
				}
				list = append(list, occurrence{int32(slot), 1 + int32(r.ExpFloat64()*.6)})
			}
			if len(list) > 0 && !yield([]byte(term), list) {
				return
			}
		}
	}
	return c
}

func (s *stacks) dense(b *testing.B, x *Index, i, k int, f retrieve.Filter) []retrieve.Hit {
	hits, err := x.Dense(b.Context(), s.questions[i], k, f)
	must(b, err)
	return hits
}

func (s *stacks) lexical(b *testing.B, x *Index, i int, f retrieve.Filter) {
	_, err := x.Lexical(b.Context(), s.asked[i], retrieve.DefaultCandidates, f)
	must(b, err)
}

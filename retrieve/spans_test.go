package retrieve_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/state"
)

// A spanQuestion asks for exact words of one document.
type spanQuestion struct {
	Text  string
	Doc   string // its path
	Spans []struct {
		Start int // in characters of the file
		Text  string
	}
	wanted []ingest.Span // in bytes of the document's text
}

// A spanSet is documents as people write them, split and indexed as they are
// when they are ingested, and questions with the words that answer them.
type spanSet struct {
	engine    *state.Store
	apart     *state.Store // the same, in which no two chunks join to a passage
	questions []spanQuestion
	chunks    []ingest.Chunk
	lengths   map[string]int // of the texts
}

// readSpans reads the set chunk-eval-a: the documents and excerpts of Chroma's
// chunking_evaluation (Smith and Troynikov, 2024).
func readSpans(t *testing.T) *spanSet {
	t.Helper()
	dir := datatest.Sets(t, "chunk-eval-a")
	s := &spanSet{engine: openState(t, t.TempDir()), apart: openState(t, t.TempDir()), lengths: make(map[string]int)}
	x, apart := newIndex(t, s.engine, embedded(t)), newIndex(t, s.apart, embedded(t))
	root, err := x.AddRoot(t.Context(), "/srv/set", "")
	must(t, err)
	_, err = apart.AddRoot(t.Context(), "/srv/set", "")
	must(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "docs", "*"))
	must(t, err)
	raw, read := make(map[string]*letters), make(map[string]*letters)
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		name := filepath.Base(file)
		doc, err := new(ingest.Reader).Read(t.Context(), name, data)
		must(t, err)
		doc.Root, doc.ID = root.Name, root.Name+"/"+name
		chunks := ingest.Split(doc)
		must(t, x.Replace(t.Context(), doc, chunks))
		s.chunks = append(s.chunks, slices.Clone(chunks)...)
		for i := range chunks { // passages do not reach over an anchor
			chunks[i].Anchor = fmt.Sprint(i)
		}
		must(t, apart.Replace(t.Context(), doc, chunks))
		s.lengths[name] = len(doc.Text)
		raw[name], read[name] = lettersOf(string(data)), lettersOf(doc.Text)
	}
	data, err := os.ReadFile(filepath.Join(dir, "queries.jsonl"))
	must(t, err)
	for line := range strings.Lines(string(data)) {
		var q spanQuestion
		must(t, json.Unmarshal([]byte(line), &q))
		for _, span := range q.Spans {
			at, ok := read[q.Doc].find(span.Text, raw[q.Doc].before(span.Start))
			if !ok {
				t.Fatalf("%s: the text that was read does not hold %q", q.Doc, span.Text)
			}
			q.wanted = append(q.wanted, at)
		}
		s.questions = append(s.questions, q)
	}
	return s
}

// letters are a text without its marks, signs and space: what of it stays when
// a file is read.
type letters struct {
	text  string
	bytes []int // the offset of each byte in the whole text
	runes []int // before which character of the whole text
}

func lettersOf(text string) *letters {
	var l letters
	var out strings.Builder
	n := 0
	for at, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			before := out.Len()
			out.WriteRune(r)
			for i := range out.Len() - before {
				l.bytes = append(l.bytes, at+i)
				l.runes = append(l.runes, n)
			}
		}
		n++
	}
	l.text = out.String()
	return &l
}

// before is the share of the letters before the character.
func (l *letters) before(character int) float64 {
	n, _ := slices.BinarySearch(l.runes, character)
	return float64(n) / float64(len(l.runes))
}

// find gives the place of the words nearest to where they are expected.
func (l *letters) find(words string, share float64) (ingest.Span, bool) {
	want := lettersOf(words).text
	expected := int(share * float64(len(l.text)))
	best := -1
	for from := 0; ; {
		i := strings.Index(l.text[from:], want)
		if i < 0 {
			break
		}
		if i += from; best < 0 || max(i-expected, expected-i) < max(best-expected, expected-best) {
			best = i
		}
		from = i + 1
	}
	if best < 0 || want == "" {
		return ingest.Span{}, false
	}
	return ingest.Span{Start: l.bytes[best], End: l.bytes[best+len(want)-1] + 1}, true
}

// spanFigures are means over the questions, as the set's authors define them.
type spanFigures struct {
	recall    float64 // share of the wanted text that was found
	precision float64 // share of the found text that was wanted
	iou       float64 // wanted characters that were found, of all wanted or found; overlap counts twice
	tokens    float64 // found for a question
}

// measure searches each question among all documents.
func (s *spanSet) measure(t *testing.T, x *retrieve.Index, k int) spanFigures {
	t.Helper()
	var sum spanFigures
	for _, q := range s.questions {
		passages, err := x.Search(t.Context(), retrieve.Query{Text: q.Text, K: k})
		must(t, err)
		marks := make([]uint8, s.lengths[q.Doc]) // 1 is wanted, 2 found
		for _, w := range q.wanted {
			for i := w.Start; i < w.End; i++ {
				marks[i] |= 1
			}
		}
		returned := 0
		for _, p := range passages {
			returned += len(p.Text)
			sum.tokens += float64(p.Tokens)
			if p.Path != q.Doc {
				continue
			}
			for i := p.Start; i < p.End; i++ {
				marks[i] |= 2
			}
		}
		wanted, both := 0, 0
		for _, m := range marks {
			if m&1 != 0 {
				wanted++
			}
			if m == 3 {
				both++
			}
		}
		sum.recall += float64(both) / float64(wanted)
		sum.precision += float64(both) / float64(max(returned, 1))
		sum.iou += float64(both) / float64(returned+wanted-both)
	}
	n := float64(len(s.questions))
	return spanFigures{sum.recall / n, sum.precision / n, sum.iou / n, sum.tokens / n}
}

// TestSpansQuality measures splitting and search together: how much of the very
// words that answer a question are in the first five passages. A campaign
// measures the other modes and numbers of passages too.
func TestSpansQuality(t *testing.T) {
	notRaced(t)
	s := readSpans(t)
	total, largest := 0, 0
	for _, c := range s.chunks {
		total += c.Tokens
		largest = max(largest, c.Tokens)
	}
	mean := float64(total) / float64(len(s.chunks))
	t.Logf("%d chunks of %.0f tokens, %d at most; %d questions", len(s.chunks), mean, largest, len(s.questions))
	if mean > 250 || largest > 400 {
		t.Error("chunks are larger than the budget")
	}
	modes, numbers := []retrieve.Mode{retrieve.Hybrid}, []int{5}
	if datatest.Campaign() {
		modes, numbers = []retrieve.Mode{retrieve.LexicalOnly, retrieve.DenseOnly, retrieve.Hybrid}, []int{1, 5, 10}
	}
	for _, mode := range modes {
		for _, k := range numbers {
			for kind, e := range map[string]*state.Store{"passages": s.engine, "chunks": s.apart} {
				x := newIndexWith(t, e, embedded(t), retrieve.Options{Mode: mode})
				f := s.measure(t, x, k)
				t.Logf("%-6s %-2d %-8s: recall %.4f, precision %.4f, IoU %.4f, %4.0f tokens", []string{"hybrid", "BM25", "dense"}[mode], k, kind,
					f.recall, f.precision, f.iou, f.tokens)
				if floor := spanFloors[kind]; mode == retrieve.Hybrid && k == 5 && f.recall < floor {
					t.Errorf("recall of spans in five %s is %.4f, under %.2f", kind, f.recall, floor)
				}
			}
		}
	}
}

// spanFloors are the least shares of the wanted words that five passages and,
// never more than 400 tokens each, five chunks must hold. One sentence of overlap
// between chunks gives five chunks half a point more and five passages as much
// less, for chunks of 269 tokens in place of 243: there is none by default.
var spanFloors = map[string]float64{"passages": 0.98, "chunks": 0.95}

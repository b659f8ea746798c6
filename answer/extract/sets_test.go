package extract

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/library"
)

// A set is one public question set, indexed.
type set struct {
	name      string
	index     *retrieve.Index
	embedder  retrieve.Embedder
	encoder   retrieve.Encoder // gives second scores, unless nil
	questions []question
}

type question struct {
	ID         string          `json:"_id"`
	Text       string          `json:"text"`
	Answerable *bool           `json:"answerable"`
	Answers    any             `json:"answers"`
	SourceDoc  string          `json:"source_doc"`
	gold       map[string]bool // ids of the documents that answer the question
}

func (q *question) answerable() bool {
	return (q.Answerable == nil || *q.Answerable) && len(q.gold) > 0
}

// answerable returns the number of questions that have an answer.
func (s *set) answerable() (n int) {
	for _, q := range s.questions {
		if q.answerable() {
			n++
		}
	}
	return n
}

// openSet indexes a set, with a document for each record, split as ingest splits it.
func openSet(t *testing.T, name string, most int, m retrieve.Encoder) *set {
	t.Helper()
	dir := datatest.Sets(t, name)
	ctx := t.Context()
	model, err := embed.New()
	must(t, err)
	lib, err := library.Open(ctx, library.Place{Data: t.TempDir()}, model, library.Options{Search: retrieve.Options{Encoder: m}})
	must(t, err)
	t.Cleanup(func() { lib.Close() })
	index := lib.Index
	root, err := index.AddRoot(ctx, "/set", "")
	must(t, err)
	s := &set{name: name, index: index, embedder: model}
	s.questions = datatest.Lines[question](t, filepath.Join(dir, "queries.jsonl"))
	grades, _, err := eval.ReadGrades(os.DirFS(dir), "")
	must(t, err)
	for i := range s.questions {
		q := &s.questions[i]
		q.gold = make(map[string]bool)
		for id, grade := range grades[q.ID] {
			if grade > 0 {
				q.gold["set/"+id] = true
			}
		}
	}
	records, err := eval.ReadCorpus(os.DirFS(dir))
	must(t, err)
	if most > 0 && len(records) > most {
		records = s.keep(records, most)
	}
	for _, r := range records {
		if strings.TrimSpace(r.Text) == "" {
			continue
		}
		doc := &ingest.Document{ID: "set/" + r.ID, Root: root.Name, Path: r.ID, Title: r.Title, Format: "text",
			Digest: strings.Repeat("0", 64), Text: r.Text}
		must(t, index.Replace(ctx, doc, ingest.Split(doc)))
	}
	must(t, index.Encode(ctx, retrieve.Encoding{Workers: 2}))
	return s
}

// keep keeps n records, first those that the questions need, since a library is smaller
// than these sets.
func (s *set) keep(records []eval.Entry, most int) []eval.Entry {
	needed := map[string]bool{}
	for _, q := range s.questions {
		for id := range q.gold {
			needed[id] = true
		}
		needed["set/"+q.SourceDoc] = true
	}
	slices.SortStableFunc(records, func(a, b eval.Entry) int {
		rank := func(r eval.Entry) int {
			if needed["set/"+r.ID] {
				return 0
			}
			return 1
		}
		return cmp.Compare(rank(a), rank(b))
	})
	for _, r := range records[most:] {
		for i := range s.questions {
			delete(s.questions[i].gold, "set/"+r.ID)
		}
	}
	return records[:most]
}

func pick[T any](r *rand.Rand, from []T, n int) []T {
	from = slices.Clone(from)
	r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	return from[:min(n, len(from))]
}

// TestRefersBack checks that a sentence that begins with a pronoun needs the sentence
// before it, in any language.
func TestRefersBack(t *testing.T) {
	for _, test := range datatest.Rows(t, "testdata/tables.txt", "pronouns") {
		if !refersBack(test[0]) || refersBack(test[1]) {
			t.Errorf("refersBack(%q) = %v, want true; refersBack(%q) = %v, want false", test[0], refersBack(test[0]), test[1], refersBack(test[1]))
		}
	}
}

// TestSaysNothing checks that notices say nothing, and that sentences that only resemble
// notices may say something.
func TestSaysNothing(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/tables.txt", "says nothing") {
		if got := isBare(row[0]) || licence.MatchString(plainLine(row[0])); strconv.FormatBool(got) != row[1] {
			t.Errorf("%q says nothing = %v, want %s", row[0], got, row[1])
		}
	}
}

// TestDenied checks that a question is denied if its last clause negates what it asks for.
func TestDenied(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/tables.txt", "denied") {
		if got := readNeeds(row[0], retrieve.Stats{}).denied; strconv.FormatBool(got) != row[1] {
			t.Errorf("denied(%q) = %v, want %s", row[0], got, row[1])
		}
	}
}

package eval

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Entry is a document of a set.
type Entry struct {
	ID    string
	Title string // may be empty
	Text  string // may be empty
}

// A Query is a question of a set.
type Query struct {
	ID   string
	Text string
	// Unanswerable says that the set marks the question as one that its
	// documents do not answer.
	Unanswerable bool
	// Answers are right answers, each enough; may be empty.
	Answers []string
}

// A Set is a retrieval set with judgements.
type Set struct {
	Documents []Entry // nil without a corpus
	Queries   []Query
	// Grades are the judgements by query id; nil without any.
	Grades map[string]Grades
	// Judgements is the name of the file they stand in.
	Judgements string
}

// Judged gives the queries that have a relevant document, in order. The others
// cannot be measured.
func (s *Set) Judged() []Query {
	var out []Query
	for _, q := range s.Queries {
		if s.Grades[q.ID].Relevant() > 0 {
			out = append(out, q)
		}
	}
	return out
}

// Strays counts the judgements that name a query or a document which the set
// does not have; without a corpus every document is taken for known.
func (s *Set) Strays() (queries, documents int) {
	known := make(map[string]bool, len(s.Queries))
	for _, q := range s.Queries {
		known[q.ID] = true
	}
	stored := make(map[string]bool, len(s.Documents))
	for _, d := range s.Documents {
		stored[d.ID] = true
	}
	for query, grades := range s.Grades {
		if !known[query] {
			queries++
		}
		for id := range grades {
			if s.Documents != nil && !stored[id] {
				documents++
			}
		}
	}
	return queries, documents
}

// The files of a set in the format of BEIR.
const (
	corpusFile  = "corpus.jsonl"
	queriesFile = "queries.jsonl"
)

// ReadSet reads a folder in the format of BEIR: corpus.jsonl (_id, title,
// text), queries.jsonl (_id, text; answers and answerable where the set has
// them) and the judgements in qrels.tsv or qrels/SPLIT.tsv. Without a split it is
// qrels.tsv, else the first there is of test, dev and train; one that ends in
// .tsv, .txt or .gz is the file itself. Each file may be compressed, with .gz
// behind its name. An error names the file and, where there is one, the line.
//
// A judgement is query-id, corpus-id and score, parted by tabs or, where no id
// has a space, by spaces; TREC has an iteration behind the query-id. A first line
// that names its columns is a header.
//
// Corpus and judgements may be missing, which leaves them nil; see [Set.Need].
func ReadSet(fsys fs.FS, split string) (*Set, error) {
	s := new(Set)
	var err error
	if s.Documents, err = ReadCorpus(fsys); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if s.Queries, err = ReadQueries(fsys); err != nil {
		return nil, err
	}
	if s.Grades, s.Judgements, err = ReadGrades(fsys, split); err != nil && (split != "" || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	return s, nil
}

// IsSet says whether a folder is a set in the format of BEIR.
func IsSet(fsys fs.FS) bool {
	for _, name := range []string{queriesFile, queriesFile + gzipped} {
		if _, err := fs.Stat(fsys, name); err == nil {
			return true
		}
	}
	return false
}

// ReadCorpus reads corpus.jsonl.
func ReadCorpus(fsys fs.FS) ([]Entry, error) {
	var entries []Entry
	ids := linesOf("_id")
	err := eachLine(fsys, corpusFile, func(n int, line []byte) error {
		var e struct {
			ID    id      `json:"_id"`
			Title *string `json:"title"`
			Text  *string `json:"text"`
		}
		if err := decode(line, &e); err != nil {
			return err
		}
		if e.Text == nil && e.Title == nil {
			return errors.New(`it has neither a "text" nor a "title"`)
		}
		if err := ids.add(string(e.ID), n); err != nil {
			return err
		}
		entries = append(entries, Entry{ID: string(e.ID), Title: value(e.Title), Text: value(e.Text)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s is empty: it holds a document a line", corpusFile)
	}
	return entries, nil
}

// ReadQueries reads queries.jsonl.
func ReadQueries(fsys fs.FS) ([]Query, error) {
	var queries []Query
	ids := linesOf("_id")
	err := eachLine(fsys, queriesFile, func(n int, line []byte) error {
		var q struct {
			ID         id     `json:"_id"`
			Text       string `json:"text"`
			Answerable any    `json:"answerable"`
			Answers    any    `json:"answers"`
		}
		if err := decode(line, &q); err != nil {
			return err
		}
		if strings.TrimSpace(q.Text) == "" {
			return errors.New(`its "text" is missing or empty`)
		}
		if err := ids.add(string(q.ID), n); err != nil {
			return err
		}
		queries = append(queries, Query{ID: string(q.ID), Text: q.Text, Unanswerable: q.Answerable == false, Answers: texts(q.Answers)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(queries) == 0 {
		return nil, fmt.Errorf("%s is empty: it holds a query a line", queriesFile)
	}
	return queries, nil
}

// texts gives the texts of a JSON value: sets write one answer, several, or
// several ways to write each of several. What is none is left out, since
// searches are measured without.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, x := range v {
			all = append(all, texts(x)...)
		}
		return all
	}
	return nil
}

// ReadGrades reads the judgements of a split, and says in which file they
// stand. See [ReadSet] for where they are looked for.
func ReadGrades(fsys fs.FS, split string) (map[string]Grades, string, error) {
	names := judgementFiles(split)
	for _, name := range names {
		if !fs.ValidPath(name) {
			return nil, "", fmt.Errorf("%q is no name of a split: give test, dev or train", split)
		}
		grades, err := readGrades(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return grades, name, err
	}
	return nil, "", noJudgements(names)
}

func judgementFiles(split string) []string {
	for _, ending := range []string{".tsv", ".txt", ".gz"} {
		if strings.HasSuffix(split, ending) {
			return []string{split}
		}
	}
	if split != "" {
		return []string{"qrels/" + split + ".tsv", "qrels." + split + ".tsv"}
	}
	return []string{"qrels.tsv", "qrels/test.tsv", "qrels/dev.tsv", "qrels/train.tsv"}
}

func noJudgements(names []string) error {
	return &missing{"there are no judgements: looked for " + strings.Join(names, ", ")}
}

func readGrades(fsys fs.FS, name string) (map[string]Grades, error) {
	all := make(map[string]Grades)
	first := make(map[[2]string]int) // line
	begun := false
	err := eachLine(fsys, name, func(n int, line []byte) error {
		query, document, score, err := judgement(string(line))
		header := !begun && namesColumns(query, score)
		begun = true
		if header {
			return nil
		}
		if err != nil {
			return err
		}
		grade, err := readGrade(score)
		if err != nil {
			return err
		}
		if query == "" || document == "" {
			return errors.New("the query-id or the corpus-id is empty")
		}
		pair := [2]string{query, document}
		if before, ok := first[pair]; ok {
			if all[query][document] == grade {
				return nil
			}
			return fmt.Errorf("query %s and document %s are judged %d, and in line %d %d", clip(query), clip(document), grade, before, all[query][document])
		}
		first[pair] = n
		if all[query] == nil {
			all[query] = make(Grades)
		}
		all[query][document] = grade
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is empty: it holds a judgement a line", name)
	}
	return all, nil
}

// judgement gives the fields of a line, also where an error says that they are
// not those of a judgement.
func judgement(line string) (query, document, score string, err error) {
	f := strings.Split(line, "\t")
	parted := "tabs"
	if len(f) == 1 {
		f, parted = strings.Fields(line), "spaces"
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	switch len(f) {
	case 3:
		return f[0], f[1], f[2], nil
	case 4: // TREC's, whose second field nobody uses
		if _, err = strconv.Atoi(f[1]); err != nil && !strings.EqualFold(f[1], "Q0") {
			err = fmt.Errorf("of its 4 fields the second is %q: TREC has a number there", clip(f[1]))
		} else {
			err = nil
		}
		return f[0], f[2], f[3], err
	}
	return f[0], "", f[len(f)-1], fmt.Errorf("it has %d fields parted by %s, not the three query-id, corpus-id and score, or TREC's four", len(f), parted)
}

// namesColumns says whether a line with these first and last fields is a header.
func namesColumns(query, score string) bool {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	switch letters(score) {
	case "score", "scores", "relevance", "rel", "relevant", "grade", "label", "judgement", "judgment", "rating":
		return true
	}
	switch letters(query) {
	case "queryid", "qid", "query", "topic", "topicid", "questionid":
		_, err := readGrade(score)
		return err != nil
	}
	return false
}

// maxGrade is the highest grade, and the lowest with its sign turned.
const maxGrade = 1_000_000

// readGrade reads a whole number, which some sets write as 1.0.
func readGrade(s string) (int, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > maxGrade {
		return 0, fmt.Errorf("the score %q is no whole number up to %d", clip(s), maxGrade)
	}
	return int(x), nil
}

// Need says what a set lacks to be measured: judgements that fit its queries,
// and a corpus where one is wanted.
func (s *Set) Need(corpus bool) error {
	if corpus && s.Documents == nil {
		return &missing{"there is no " + corpusFile}
	}
	if s.Grades == nil {
		return noJudgements(judgementFiles(""))
	}
	if len(s.Judged()) == 0 {
		return fmt.Errorf("no query of %s has a relevant document in %s: the ids do not fit, or every score is 0", queriesFile, s.Judgements)
	}
	if corpus {
		ids := make(map[string]bool)
		for _, grades := range s.Grades {
			for id, grade := range grades {
				if grade > 0 {
					ids[id] = true
				}
			}
		}
		for _, e := range s.Documents {
			if ids[e.ID] {
				return nil
			}
		}
		return fmt.Errorf("no relevant document of %s stands in %s: the ids do not fit", s.Judgements, corpusFile)
	}
	return nil
}

// missing is a file of the set that is not there.
type missing struct{ text string }

func (e *missing) Error() string        { return e.text }
func (e *missing) Is(target error) bool { return target == fs.ErrNotExist }

// maxID is the longest id, in bytes.
const maxID = 1024

// lines remembers in which line each id stands.
type lines struct {
	field string // that holds the id
	at    map[string]int
}

func linesOf(field string) lines { return lines{field, make(map[string]int)} }

func (l lines) add(id string, n int) error {
	switch {
	case id == "":
		return fmt.Errorf("its %q is missing or empty", l.field)
	case len(id) > maxID:
		return fmt.Errorf("its %q has %d bytes, and at most %d are taken", l.field, len(id), maxID)
	case strings.ContainsFunc(id, unicode.IsControl) || strings.TrimSpace(id) != id || !utf8.ValidString(id):
		return fmt.Errorf("its %q is %q: there is a control character in it, or space around it", l.field, clip(id))
	}
	if before, ok := l.at[id]; ok {
		return fmt.Errorf("the %s %q stood in line %d already", l.field, clip(id), before)
	}
	l.at[id] = n
	return nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

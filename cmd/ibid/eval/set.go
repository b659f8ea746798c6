package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
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
}

// A Set is a retrieval set with judgements.
type Set struct {
	Documents []Entry
	Queries   []Query
	Grades    map[string]Grades // by query id
	// Judgements is the name of the file with the grades.
	Judgements string
}

// Judged returns, in order, the queries that have a relevant document. The
// others cannot be measured.
func (s *Set) Judged() []Query {
	return slices.DeleteFunc(slices.Clone(s.Queries), func(q Query) bool { return s.Grades[q.ID].Relevant() == 0 })
}

// Strays counts the judgements of queries and documents that are not in the set.
func (s *Set) Strays() (queries, documents int) {
	known, stored := make(map[string]bool), make(map[string]bool)
	for _, q := range s.Queries {
		known[q.ID] = true
	}
	for _, d := range s.Documents {
		stored[d.ID] = true
	}
	for query, grades := range s.Grades {
		if !known[query] {
			queries++
		}
		for id := range grades {
			if !stored[id] {
				documents++
			}
		}
	}
	return queries, documents
}

// The files of a set in BEIR's format.
const corpusFile, queriesFile = "corpus.jsonl", "queries.jsonl"

// ReadSet reads a folder in BEIR's format: corpus.jsonl (_id, title, text),
// queries.jsonl (_id, text), and judgements in qrels.tsv or qrels/SPLIT.tsv. If
// split is empty, it uses qrels.tsv or the first of test, dev and train; a split
// that ends in .tsv is the file itself. Errors name the file and the line. It is
// an error if no query has a relevant document, or no relevant document is in the
// corpus.
//
// A judgement is query-id, corpus-id and score, separated by tabs. A first line
// whose last column is not a number is a header.
func ReadSet(fsys fs.FS, split string) (*Set, error) {
	s := new(Set)
	var err error
	if s.Documents, err = ReadCorpus(fsys); err != nil {
		return nil, err
	}
	if s.Queries, err = ReadQueries(fsys); err != nil {
		return nil, err
	}
	if s.Grades, s.Judgements, err = ReadGrades(fsys, split); err != nil {
		return nil, err
	}
	if len(s.Judged()) == 0 {
		return nil, fmt.Errorf("no query of %s has a relevant document in %s: the ids do not match, or all scores are 0",
			queriesFile, s.Judgements)
	}
	inCorpus := func(e Entry) bool {
		for _, grades := range s.Grades {
			if grades[e.ID] > 0 {
				return true
			}
		}
		return false
	}
	if !slices.ContainsFunc(s.Documents, inCorpus) {
		return nil, fmt.Errorf("no relevant document of %s is in %s: the ids do not match", s.Judgements, corpusFile)
	}
	return s, nil
}

// ReadAnswerSet reads a set like [ReadSet] whose queries say what is known of their
// answers: "answers", a text or a list, and "answerable". Judgements may be missing
// or empty. Queries of which nothing is known are left out.
func ReadAnswerSet(fsys fs.FS, split string) (*Set, []Question, error) {
	s := new(Set)
	var err error
	if s.Documents, err = ReadCorpus(fsys); err != nil {
		return nil, nil, err
	}
	if s.Grades, s.Judgements, err = ReadGrades(fsys, split); err != nil && (split != "" || !errors.Is(err, errNoGrades)) {
		return nil, nil, err
	}
	var questions []Question
	err = readRecords(fsys, queriesFile, func(r record, line []byte) error {
		var q struct {
			Answers    texts
			Answerable *bool
		}
		if err := decode(line, &q); err != nil {
			return err
		}
		next := Question{ID: string(r.ID), Text: r.Text, Answers: q.Answers}
		if q.Answerable != nil {
			next.Unanswerable, next.HasAnswer = !*q.Answerable, *q.Answerable
		}
		for document, grade := range s.Grades[next.ID] {
			if grade > 0 && !next.Unanswerable {
				next.Documents = append(next.Documents, document)
			}
		}
		slices.Sort(next.Documents)
		if !next.Open() {
			questions = append(questions, next)
		}
		return nil
	})
	if err == nil && len(questions) == 0 {
		err = fmt.Errorf("%s has no query with \"answers\" or \"answerable\", or with a relevant document", queriesFile)
	}
	return s, questions, err
}

// errNoGrades is what [ReadGrades] returns where there is no file of judgements.
var errNoGrades = errors.New("no judgements found")

// ReadCorpus reads corpus.jsonl.
func ReadCorpus(fsys fs.FS) (entries []Entry, err error) {
	err = readRecords(fsys, corpusFile, func(r record, _ []byte) error {
		entries = append(entries, Entry{string(r.ID), r.Title, r.Text})
		return nil
	})
	return entries, err
}

// ReadQueries reads queries.jsonl.
func ReadQueries(fsys fs.FS) (queries []Query, err error) {
	err = readRecords(fsys, queriesFile, func(r record, _ []byte) error {
		queries = append(queries, Query{string(r.ID), r.Text})
		if strings.TrimSpace(r.Text) == "" {
			return errors.New(`"text" is missing or empty`)
		}
		return nil
	})
	return queries, err
}

// A record is what all lines of corpus.jsonl and queries.jsonl have.
type record struct {
	ID          id `json:"_id"`
	Title, Text string
}

// readRecords calls each with the lines of a file, all with ids of their own.
func readRecords(fsys fs.FS, name string, each func(r record, line []byte) error) error {
	ids := make(lineOf)
	err := eachLine(fsys, name, func(n int, line []byte) error {
		var r record
		if err := decode(line, &r); err != nil {
			return err
		}
		if err := ids.add("_id", string(r.ID), n); err != nil {
			return err
		}
		return each(r, line)
	})
	if err == nil && len(ids) == 0 {
		err = fmt.Errorf("%s is empty: it needs a JSON object per line", name)
	}
	return err
}

// ReadGrades reads the judgements of a split, and returns the name of their
// file. See [ReadSet] for the names.
func ReadGrades(fsys fs.FS, split string) (map[string]Grades, string, error) {
	names := []string{"qrels.tsv", "qrels/test.tsv", "qrels/dev.tsv", "qrels/train.tsv"}
	if strings.HasSuffix(split, ".tsv") {
		names = []string{split}
	} else if split != "" {
		names = []string{"qrels/" + split + ".tsv"}
	}
	for _, name := range names {
		if !fs.ValidPath(name) {
			return nil, "", fmt.Errorf("%q is not the name of a split: give test, dev or train", split)
		}
		if _, err := fs.Stat(fsys, name); err == nil {
			grades, err := readGrades(fsys, name)
			return grades, name, err
		}
	}
	return nil, "", fmt.Errorf("%w in %s", errNoGrades, strings.Join(names, ", "))
}

func readGrades(fsys fs.FS, name string) (map[string]Grades, error) {
	all := make(map[string]Grades)
	first := true
	err := eachLine(fsys, name, func(_ int, line []byte) error {
		columns := strings.Split(strings.TrimSpace(string(line)), "\t")
		if len(columns) != 3 {
			return fmt.Errorf("%d columns separated by tabs; want query-id, corpus-id and score", len(columns))
		}
		query, document := strings.TrimSpace(columns[0]), strings.TrimSpace(columns[1])
		grade, err := parseGrade(strings.TrimSpace(columns[2]))
		header := first && err != nil
		first = false
		switch {
		case header:
			return nil
		case err != nil:
			return err
		case query == "" || document == "":
			return errors.New("the query-id or the corpus-id is empty")
		}
		if all[query] == nil {
			all[query] = make(Grades)
		}
		if before, ok := all[query][document]; ok && before != grade {
			return fmt.Errorf("query %.60q and document %.60q have the score %d, and %d in an earlier line", query, document, grade, before)
		}
		all[query][document] = grade
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s is empty: %w; it needs a judgement per line", name, errNoGrades)
	}
	return all, err
}

const maxGrade = 1_000_000

// parseGrade parses a whole number, which some sets write as 1.0.
func parseGrade(s string) (int, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > maxGrade {
		return 0, fmt.Errorf("the score %.60q is not a whole number up to %d", s, maxGrade)
	}
	return int(x), nil
}

const maxLine, maxID = 64 << 20, 1024 // bytes

// eachLine calls each with the lines of a file that are not blank, counted from
// 1, without line ends and byte order mark. Errors name the file and the line.
func eachLine(fsys fs.FS, name string, each func(n int, line []byte) error) (err error) {
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s", name)
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder, not a file", name)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		switch {
		case len(bytes.TrimSpace(line)) == 0:
			continue
		case !utf8.Valid(line):
			err = errors.New("not UTF-8; convert the file")
		default:
			err = each(n, line)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	err = lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("the line is longer than %d MB", maxLine>>20)
	}
	if err != nil {
		return fmt.Errorf("%s:%d: %w", name, n, err)
	}
	return nil
}

func decode(line []byte, to any) error {
	err := json.Unmarshal(line, to)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return fmt.Errorf("%q has the wrong type, a JSON %s", strings.ToLower(mismatch.Field), mismatch.Value)
	case errors.As(err, &mismatch):
		return fmt.Errorf("a JSON %s, not an object", mismatch.Value)
	}
	return fmt.Errorf("not a JSON object: %w", err)
}

// An id is a JSON string or, in some sets, a whole number.
type id string

func (i *id) UnmarshalJSON(b []byte) error {
	var n int64
	if json.Unmarshal(b, &n) == nil {
		*i = id(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(i))
}

// texts are a JSON string, or a list of strings and lists.
type texts []string

func (l *texts) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		var parts []texts
		err := json.Unmarshal(b, &parts)
		*l = slices.Concat(parts...)
		return err
	}
	var text *string
	err := json.Unmarshal(b, &text)
	if text != nil {
		*l = texts{*text}
	}
	return err
}

// lineOf maps each id of a file to its line.
type lineOf map[string]int

func (l lineOf) add(field, id string, n int) error {
	switch {
	case id == "":
		return fmt.Errorf("%q is missing or empty", field)
	case len(id) > maxID:
		return fmt.Errorf("%q has %d bytes; at most %d are allowed", field, len(id), maxID)
	case strings.ContainsFunc(id, unicode.IsControl) || strings.TrimSpace(id) != id:
		return fmt.Errorf("%q is %.60q, with a control character or surrounding space", field, id)
	case l[id] > 0:
		return fmt.Errorf("the %s %.60q is in line %d already", field, id, l[id])
	}
	l[id] = n
	return nil
}

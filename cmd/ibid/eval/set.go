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

// JudgedQueries returns, in order, the queries that have a relevant document. Other queries
// cannot be measured.
func (s *Set) JudgedQueries() []Query {
	return slices.DeleteFunc(slices.Clone(s.Queries), func(q Query) bool { return s.Grades[q.ID].Relevant() == 0 })
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
func ReadSet(fsys fs.FS, split string) (s *Set, err error) {
	s = new(Set)
	if s.Documents, err = ReadCorpus(fsys); err != nil {
		return nil, err
	}
	if s.Queries, err = ReadQueries(fsys); err != nil {
		return nil, err
	}
	if s.Grades, s.Judgements, err = ReadGrades(fsys, split); err != nil {
		return nil, err
	}
	if len(s.JudgedQueries()) == 0 {
		return nil, fmt.Errorf("no query of %s has a relevant document in %s: the ids do not match, or all scores are 0",
			queriesFile, s.Judgements)
	}
	for _, e := range s.Documents {
		for _, grades := range s.Grades {
			if grades[e.ID] > 0 {
				return s, nil
			}
		}
	}
	return nil, fmt.Errorf("no relevant document of %s is in %s: the ids do not match", s.Judgements, corpusFile)
}

// ReadAnswerSet reads a set like [ReadSet] whose queries have facts about their answers:
// "answers", a text or a list, and "answerable". Judgements may be missing or empty. Queries
// without such facts are left out.
func ReadAnswerSet(fsys fs.FS, split string) (s *Set, questions []Question, err error) {
	s = new(Set)
	if s.Documents, err = ReadCorpus(fsys); err != nil {
		return nil, nil, err
	}
	if s.Grades, s.Judgements, err = ReadGrades(fsys, split); err != nil && (split != "" || !errors.Is(err, errNoGrades)) {
		return nil, nil, err
	}
	err = readRecords(fsys, queriesFile, func(r record, line []byte) error {
		var q struct {
			Answers    texts
			Answerable *bool
		}
		err := decode(line, &q)
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
		return err
	})
	if err == nil && len(questions) == 0 {
		err = fmt.Errorf("%s has no query with \"answers\" or \"answerable\", or with a relevant document", queriesFile)
	}
	return s, questions, err
}

// errNoGrades is returned by [ReadGrades] if there is no file of judgements.
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

// A record has the fields common to the lines of corpus.jsonl and queries.jsonl.
type record struct {
	ID          id `json:"_id"`
	Title, Text string
}

// readRecords calls each for the lines of a file. Duplicate ids are an error.
func readRecords(fsys fs.FS, name string, each func(r record, line []byte) error) error {
	lineOf := make(map[id]int)
	err := eachLine(fsys, name, func(n int, line []byte) error {
		var r record
		if err := decode(line, &r); err != nil {
			return err
		}
		if r.ID == "" {
			return errors.New(`"_id" is missing or empty`)
		}
		if lineOf[r.ID] > 0 {
			return fmt.Errorf("the _id %.60q is in line %d already", r.ID, lineOf[r.ID])
		}
		lineOf[r.ID] = n
		return each(r, line)
	})
	if err == nil && len(lineOf) == 0 {
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
		query, document := columns[0], columns[1]
		grade, err := strconv.ParseFloat(columns[2], 64) // some sets write 1.0
		if header := first && err != nil; header {
			first = false
			return nil
		}
		first = false
		if err != nil || grade != math.Trunc(grade) || math.Abs(grade) > maxGrade {
			return fmt.Errorf("the score %.60q is not a whole number up to %d", columns[2], maxGrade)
		}
		if all[query] == nil {
			all[query] = make(Grades)
		}
		if before, ok := all[query][document]; ok && before != int(grade) {
			return fmt.Errorf("query %.60q and document %.60q have the score %v, and %d in an earlier line", query, document, grade, before)
		}
		all[query][document] = int(grade)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s is empty: %w; it needs a judgement per line", name, errNoGrades)
	}
	return all, err
}

const maxGrade = 1_000_000

const maxLine = 64 << 20 // bytes

// eachLine calls each for the lines of a file that are not blank, numbered from 1, without line
// ends and byte order mark. Errors name the file and the line.
func eachLine(fsys fs.FS, name string, each func(n int, line []byte) error) (err error) {
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s", name)
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		switch {
		case len(line) == 0:
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
	if err := lines.Err(); err != nil {
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

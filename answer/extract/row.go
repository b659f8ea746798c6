package extract

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ibid/ingest"
	"ibid/retrieve"
)

// A cell is one of a table row, with the name of its column if it has one. Rows
// are written as "Kind: Adult | A year: 155".
type cell struct{ name, value string }

// isRow reports whether a sentence is a row of a table.
func isRow(s string) bool { return strings.Contains(s, " | ") || strings.HasPrefix(s, "|") }

var rowForm = regexp.MustCompile(`^[^|.]{1,80}: [^|]+ \| `)

// sameRow reports whether two sentences are in the cells of one row.
func sameRow(text string, first, second ingest.Span) bool {
	line := text[strings.LastIndexByte(text[:first.Start], '\n')+1 : second.End]
	return !strings.Contains(line, "\n") && rowForm.MatchString(line)
}

func cellsOf(row string) (cells []cell) {
	for text := range strings.SplitSeq(row, "|") {
		c := cell{value: strings.TrimSpace(text)}
		if name, value, named := strings.Cut(c.value, ": "); named {
			c = cell{name, value}
		}
		if c.value != "" {
			cells = append(cells, c)
		}
	}
	return cells
}

func (c cell) String() string {
	if c.name == "" {
		return c.value
	}
	return c.name + ": " + c.value
}

// cells is the share of the question's weight that is in whole cells of a row:
// "Adult" in "Kind: Adult | A year: 155".
func (d *Reading) cells(row string) float64 {
	if !isRow(row) {
		return 0
	}
	covered := make(coverage, len(d.needs.terms))
	for _, c := range cellsOf(row) {
		if terms := termSet(c.value); len(terms) > 0 && d.precision(terms) > .99-notAlike/2 {
			covered = covered.with(d.coverageOf(terms))
		}
	}
	return d.needs.exact(covered)
}

// writeRow writes a row for a reader: what the row is called, then the cells that the
// question asks for, as in "Adult – A year: 155". The words are the row's, in
// its order. A row is left as it is where most cells have no column's name: it may be
// a command, as in "curl … | sh".
func (d *Reading) writeRow(row string) string {
	cells, columns := cellsOf(row), 0
	for _, c := range cells {
		if c.name != "" && !strings.Contains(c.name, "`") {
			columns++
		}
	}
	if 2*columns < len(cells) || columns == 0 {
		return row
	}
	named := 1 // cells that name the row: a code or a number does so with the next one
	if !hasWord(cells[0].value) && len(cells) > 2 {
		named = 2
	}
	shown := slices.Concat(cells[:named], d.askedFor(cells[named:]))
	var b strings.Builder
	for i, c := range shown {
		switch {
		case i == 0 && hasWord(c.value):
			b.WriteString(c.value)
			continue
		case i == 1 && hasWord(shown[0].value):
			b.WriteString(" – ")
		case i > 0:
			b.WriteString("; ")
		}
		b.WriteString(c.String())
	}
	return b.String()
}

// hasWord reports whether a text has three letters in a row that are not all capitals,
// as a name has and a code has not.
func hasWord(text string) bool {
	letters, lower := 0, false
	for _, r := range text {
		if !unicode.IsLetter(r) {
			letters, lower = 0, false
			continue
		}
		letters++
		lower = lower || !unicode.IsUpper(r)
		if lower && (letters >= 3 || unspaced(r)) {
			return true
		}
	}
	return false
}

// askedFor are the cells of a row that the question asks for: by the names of their
// columns, of which those of other years are not, nor "First train" where "last train" is asked
// for, or else by the kind of their values. Those whose values the question has
// are there to tell which row it is. Without any, it is all of them.
func (d *Reading) askedFor(cells []cell) []cell {
	asked := years(d.question)
	has := make([][]string, len(cells)) // of each column's name
	for i, c := range cells {
		if of := years(c.name); len(asked) == 0 || len(of) == 0 || meet(asked, of) {
			has[i] = d.askedOf(termSet(c.name))
		}
	}
	wanted := func(i int) bool {
		return len(has[i]) > 0 && !slices.ContainsFunc(has, func(other []string) bool {
			return len(other) > len(has[i]) && !slices.ContainsFunc(has[i], func(t string) bool { return !slices.Contains(other, t) })
		})
	}
	if !slices.ContainsFunc(has, func(of []string) bool { return len(of) > 0 }) {
		wanted = func(i int) bool { return d.needs.kind.tells() && d.needs.kind.in("| "+cells[i].value, d.question) == 1 }
	}
	var shown []cell
	found := false
	for i, c := range cells {
		if is := wanted(i); is || len(d.askedOf(termSet(c.value))) > 0 {
			shown, found = append(shown, c), found || is
		}
	}
	if !found {
		return cells
	}
	return shown
}

// otherColumns reports whether the columns of a row are of years, and the row has none that
// is asked for or nothing else: that year may be missing in the row that has it.
func (d *Reading) otherColumns(row string) bool {
	asked, named, about := years(d.question), []string(nil), d.foreign != nil
	for _, c := range cellsOf(row) {
		of := years(c.name)
		named, about = append(named, of...), about || len(of) == 0 && len(d.askedOf(termSet(c.value))) > 0
	}
	return len(asked) > 0 && len(named) > 0 && (!about || !meet(asked, years(row)))
}

// askedOf are those of the terms that the question has, other than as a word that
// only asks.
func (d *Reading) askedOf(terms map[string]bool) (asked []string) {
	for _, n := range d.needs.terms {
		if n.weight == n.idf && (terms[n.stem] || terms[n.own]) {
			asked = append(asked, n.stem)
		}
	}
	return asked
}

// nameOf is the name of the thing that a row is of, "" where it has none or a long one.
func nameOf(row string) string {
	cells := cellsOf(row)
	at := slices.IndexFunc(cells, func(c cell) bool { return hasWord(c.value) })
	if at < 0 || cells[at].name == "" || strings.Count(cells[at].value, " ") >= maxName {
		return ""
	}
	return cells[at].value
}

const (
	maxName    = 5   // words
	namesAlike = .45 // nearness from which two words may name the same: "big" and "large" are at .48, "monthly" and "yearly" at .44
)

// A pair is two words of the question that follow each other, as in "fishing boat", by their needs.
type pair struct{ which, thing int }

// pairs are those of the question.
func (d *Reading) pairs() (all []pair) {
	last := -1
	for word := range strings.FieldsSeq(d.question) {
		terms := retrieve.Terms(word)
		next := slices.IndexFunc(d.needs.terms, func(n need) bool { return !n.asks && slices.Contains(terms, n.stem) })
		if last >= 0 && next >= 0 && last != next {
			all = append(all, pair{last, next})
		}
		last = next
	}
	return all
}

// ruleOut marks what is of another thing than the question: where a fishing boat is asked for
// and rows of a document are of boats, its rows of a rescue boat and of a bus, and if no row is
// left, sentences about boats in passages that say nothing of fishing.
func (d *Reading) ruleOut(kept []retrieve.Passage, all [][]sentence) {
	pairs := d.pairs()
	if d.foreign != nil || len(pairs) == 0 {
		return
	}
	type row struct {
		*sentence
		name string
		has  coverage // of the name
	}
	rows, named := map[string][]row{}, map[string]coverage{} // by document; named is without first words
	for i, p := range kept {
		for k := range all[i] {
			if s := &all[i][k]; isRow(s.text) {
				name := nameOf(s.text)
				_, after, _ := strings.Cut(name, " ")
				rows[p.Document] = append(rows[p.Document], row{s, name, d.coverageOf(termSet(name))})
				named[p.Document] = d.coverageOf(termSet(after)).with(named[p.Document])
			}
		}
	}
	for _, a := range pairs {
		left := map[string]bool{} // documents that have a row of the thing, or of no such things
		for document, has := range named {
			left[document] = has[a.thing] < 1
			for _, r := range rows[document] {
				if has[a.thing] < 1 || slices.ContainsFunc(pairs, func(b pair) bool { return r.has[b.which] == 1 && r.has[b.thing] == 1 }) {
					left[document] = true // its name has a pair of the question
					continue
				}
				is := r.covers[a.thing] == 1 && (r.covers.with(d.passages[kept[r.passage].ID].head)[a.which] >= namesAlike || !d.qualifies(r.name, a.thing))
				r.other, left[document] = r.other || !is, left[document] || is
			}
		}
		for i, p := range kept {
			if named[p.Document] == nil || left[p.Document] || d.passages[p.ID].all[a.which] >= namesAlike {
				continue
			}
			for k := range all[i] {
				all[i][k].other = all[i][k].other || all[i][k].covers[a.thing] == 1
			}
		}
	}
}

// qualifies reports whether a name has a word before that of a need which the question has not,
// or no word of the need.
func (d *Reading) qualifies(name string, thing int) bool {
	words := strings.Fields(name)
	at := slices.IndexFunc(words, func(w string) bool { return d.coverageOf(termSet(w))[thing] == 1 })
	if at <= 0 {
		return at < 0
	}
	before := termSet(words[at-1])
	return len(before) > 0 && d.needs.exact(d.coverageOf(before)) == 0
}

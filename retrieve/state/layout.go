package state

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The schema is laid out by files in the order of their numbers, which begin
// their names. One that has been released is never changed. Numbers below 4 were
// those of earlier versions, with other tables for each database.
//
//go:embed schema/*.sql
var schema embed.FS

const firstLayout = 4

// A step is one file of the schema.
type step struct {
	number int
	text   string // in the dialect
}

func (d *dialect) steps() []step {
	var steps []step
	for i, text := range schemaTexts() {
		steps = append(steps, step{firstLayout + i, d.ddl(text)})
	}
	return steps
}

// schemaTexts returns the schema files in order.
func schemaTexts() (texts []string) {
	names, err := fs.Glob(schema, "schema/*.sql") // sorted
	if err != nil {
		panic(err)
	}
	for i, name := range names {
		text, err := schema.ReadFile(name)
		if err != nil {
			panic(err)
		}
		if number, err := strconv.Atoi(strings.TrimPrefix(name, "schema/")[:4]); err != nil || number != firstLayout+i {
			panic(name + " is out of order")
		}
		texts = append(texts, string(text))
	}
	return texts
}

// newestLayout is the layout of this version.
func newestLayout() int { return firstLayout + len(schemaTexts()) - 1 }

// layOut brings the layout up to date from the number it has, 0 for an empty
// database.
func (t *tx) layOut(have int) {
	if newest := newestLayout(); have > newest {
		check(fmt.Errorf("%s: %w (layout %d; this version reads layout %d): update ibid, or use another library",
			t.s.place, ErrNewer, have, newest))
	}
	for _, step := range t.s.dialect.steps() {
		if step.number <= have {
			continue
		}
		t.exec(step.text)
		t.s.setLayout(t, step.number)
	}
	if have == 0 {
		t.found()
	}
}

var created = regexp.MustCompile(`CREATE (?:UNIQUE )?(?:TABLE|INDEX) (?:ibid\.)?(\w+)`)

// missing returns the tables and indexes that should exist and are not among
// those that do.
func (d *dialect) missing(have []string) (names []string) {
	for _, step := range d.steps() {
		// Only PostgreSQL keeps the schema in front of the name.
		for _, m := range created.FindAllStringSubmatch(strings.ReplaceAll(step.text, d.schema, ""), -1) {
			if !slices.Contains(have, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

// upgrade lays out what an older layout lacks.
func (s *Store) upgrade(ctx context.Context) error {
	have := 0
	if err := s.view(ctx, func(t *tx) { have = s.layout(t) }); err != nil {
		return err
	}
	if have > 0 && have < firstLayout {
		return checkLayout(have)
	}
	if have == newestLayout() {
		return nil
	}
	if s.readOnly && have < newestLayout() {
		return errors.New("it was written by an older version of ibid and cannot be brought up to date: make it writable once")
	}
	return s.update(ctx, func(t *tx) { t.layOut(s.layout(t)) }) // another process may have been first
}

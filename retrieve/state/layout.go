package state

import (
	_ "embed"
	"fmt"
)

// layoutNumber is the number of the layout of the tables, which a library has too.
const layoutNumber = 6

//go:embed schema.sql
var schema string

// checkLayout refuses a library of another layout with an [ErrLayout].
func checkLayout(number int) error {
	switch {
	case number > layoutNumber:
		return fmt.Errorf("%w: a newer version wrote it (layout %d, not %d): update ibid, or use another library",
			ErrLayout, number, layoutNumber)
	case number < layoutNumber:
		return fmt.Errorf("%w: an earlier version wrote it (layout %d, not %d): delete it and ingest its folders again, or use another library",
			ErrLayout, number, layoutNumber)
	}
	return nil
}

// layOut creates the tables in an empty database.
func (t *tx) layOut() {
	t.exec(t.s.dialect.ddl(schema))
	t.s.setLayout(t, layoutNumber)
	t.found()
}

package state

import (
	"regexp"
	"strconv"
	"strings"
)

// A dialect describes how the two databases differ.
type dialect struct {
	name string
	// beginUpdate and beginView are the statements that begin a transaction.
	beginUpdate, beginView string
	// schema replaces "ibid." in statements.
	schema string
	// numbered means that parameters are written $1, $2 instead of ?.
	numbered bool
	types    *strings.Replacer

	commit func(*tx) error
	// lock acquires the shared locks and then the exclusive ones, in the given order.
	lock func(t *tx, shared, alone []string)
	// lockVectors locks the vectors whose digests are in the list.
	lockVectors func(t *tx, list string, args []any)
	// nextNumber selects the number of a new document, which was never used before.
	nextNumber string
	// nextRevision adds its parameter to the latest revision and returns the sum. In PostgreSQL
	// other transactions that do so wait for the commit.
	nextRevision string
	// now is an expression for the time in microseconds, by a clock that all processes share.
	now string

	// keepPlan contains the driver's options for a query whose plan the database should keep; nil
	// if planning costs nothing.
	keepPlan []any
}

// text returns a statement in the dialect.
func (d *dialect) text(query string) string {
	text := strings.ReplaceAll(query, "ibid.", d.schema)
	if !d.numbered {
		return text
	}
	var b strings.Builder
	for i, part := range strings.Split(text, "?") {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	return b.String()
}

var (
	dialectLine = regexp.MustCompile(`(?m)^\{(\w+)\}(.*)$`)
	columnType  = regexp.MustCompile(`\b(ID|SERIAL|INT|BYTES)\b`)
	comment     = regexp.MustCompile(`(?m)\s*--.*$`)
)

// ddl returns a schema in the dialect.
func (d *dialect) ddl(text string) string {
	text = comment.ReplaceAllString(text, "")
	text = dialectLine.ReplaceAllStringFunc(text, func(line string) string {
		parts := dialectLine.FindStringSubmatch(line)
		if parts[1] != d.name {
			return ""
		}
		return parts[2]
	})
	text = columnType.ReplaceAllStringFunc(text, d.types.Replace)
	return strings.ReplaceAll(text, "ibid.", d.schema)
}

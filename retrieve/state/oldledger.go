package state

import (
	"encoding/json"
	"fmt"
	"strings"
)

// An oldTable is a part of the ledger or the keyring as layouts before
// [firstLayout] have it.
type oldTable struct {
	what        string // its rows, in messages
	exists      string // a table without which there are no rows
	query       string // for the rows; the columns until the checksum, if there is one, are those that it is of
	order       string // columns of the query
	to, columns string
	// convert returns the columns of the new table; if it is nil, they are those
	// of the old one.
	convert func(old []any) []any
}

const (
	runRows     = "unfinished runs"
	replyRows   = "replies of unfinished runs"
	recordRows  = "records of answers"
	opinionRows = "entries of feedback"
	keyRows     = "keys"
	sessionRows = "sessions of browsers"
)

// oldFileTables are those of a data directory. Their checksums are made as those
// of today.
func oldFileTables() []oldTable {
	return []oldTable{
		{runRows, "specs", `SELECT id, kind, started, secret, spec, sum FROM runs JOIN specs ON run = id`, "id",
			"specs", specColumns, nil},
		{replyRows, "specs", `SELECT run, key, reply, sum FROM replies`, "run, key", "replies", replyColumns, oldReply},
		{recordRows, "records", `SELECT id, caller, started, expires, head, sum, size FROM records`, "id",
			"records", recordColumns, oldRecord},
		{recordRows, "records", `SELECT record, events, e.sum AS sum, head FROM record_events AS e JOIN records ON id = record`, "record",
			"events", eventColumns, func(old []any) []any { return []any{old[0], headOf(old[3]).Documents, old[1]} }},
		{recordRows, "records", `SELECT document, record, sum,
			(SELECT count(*) FROM record_documents AS o WHERE o.record = d.record AND o.document < d.document)
			FROM record_documents AS d`, "document, record", "quoted", quoteColumns, oldQuote},
		{opinionRows, "feedback", `SELECT run, caller, citation, rating, at, comment, sum, key FROM feedback`, "key",
			"feedback", feedbackColumns, func(old []any) []any { return append([]any{old[7]}, old[:6]...) }},
		{keyRows, "access_keys", `SELECT id, name, digest, write, collections, created, expires, sum, used FROM access_keys`, "id",
			"keys", keyColumns, func(old []any) []any { return append(old[:7:7], old[8]) }},
		{sessionRows, "sessions", `SELECT digest, key, started, sum FROM sessions`, "digest", "sessions", sessionColumns, nil},
	}
}

// oldServerTables are those of a schema.
func oldServerTables() []oldTable {
	return []oldTable{
		{runRows, "runs", `SELECT id, kind, started, secret, spec FROM ibid.runs`, "id", "specs", specColumns, nil},
		{replyRows, "replies", `SELECT run, key, reply FROM ibid.replies`, "run, key", "replies", replyColumns, oldReply},
		{recordRows, "records", `SELECT id, kind, caller, shared, state, started, ended, expires, size, spec FROM ibid.records`, "id",
			"records", recordColumns, nil},
		{recordRows, "records", `SELECT id, (SELECT count(*) FROM ibid.record_documents WHERE record = id), events FROM ibid.records`,
			"id", "events", eventColumns, nil},
		{recordRows, "records", `SELECT document, record, 0, row_number() OVER (PARTITION BY record ORDER BY document) - 1
			FROM ibid.record_documents`, "document, record", "quoted", quoteColumns, oldQuote},
		{opinionRows, "feedback", `SELECT key, run, caller, citation, rating, at, comment FROM ibid.feedback`, "key",
			"feedback", feedbackColumns, nil},
		{keyRows, "keys", `SELECT id, name, digest, write, collections, created, expires, used FROM ibid.keys`, "id",
			"keys", keyColumns, nil},
		{sessionRows, "sessions", `SELECT digest, key, started FROM ibid.sessions`, "digest", "sessions", sessionColumns, nil},
	}
}

// An oldHead is the JSON in the row of a record.
type oldHead struct {
	Kind, State string
	Shared      bool
	Ended       int64
	Spec        []byte
	Documents   int
}

func headOf(v any) (h oldHead) {
	text, _ := v.([]byte)
	if json.Unmarshal(text, &h) != nil {
		return oldHead{}
	}
	return h
}

func oldRecord(old []any) []any {
	h := headOf(old[4])
	return []any{old[0], h.Kind, old[1], h.Shared, h.State, old[2], h.Ended, old[3], old[6], h.Spec}
}

func oldReply(old []any) []any {
	reply, _ := old[2].([]byte)
	return []any{old[0], old[1], len(reply), reply}
}

// oldQuote converts a document, a record, a checksum or 0, and a number.
func oldQuote(old []any) []any {
	document := ""
	switch id := old[0].(type) {
	case string:
		document = id
	case []byte:
		document = string(id)
	}
	return []any{old[1], old[3], keyOf(document), document}
}

// copyOldLedger copies the ledger and the keyring from tables of an old layout,
// row by row, without those that are damaged. Both may be one transaction.
func copyOldLedger(from, into *tx) (lost []Damage, err error) {
	tables := oldServerTables()
	if from.s.dir != "" {
		tables = oldFileTables()
	}
	for _, table := range tables {
		damaged, err := table.copy(from, into)
		if isDamage(err) {
			lost = append(lost, Damage{Reason: fmt.Sprintf("some %s can no longer be read and are lost: %v", table.what, err)})
		} else if err != nil {
			return nil, err
		}
		if damaged > 0 {
			lost = append(lost, Damage{Reason: fmt.Sprintf("%d %s are damaged and lost", damaged, table.what)})
		}
	}
	return lost, into.mendLedger()
}

// copyPage is how many rows are copied at a time.
const copyPage = 100

// copy returns the number of damaged rows. Its error is damage if rows cannot be
// read in one order; then those that come before in the reverse order are copied
// as well.
func (o *oldTable) copy(from, into *tx) (damaged int, err error) {
	exists, err := from.hasTable(o.exists)
	if err != nil || !exists {
		return 0, err
	}
	damaged, err = o.copyInOrder(from, into, o.order)
	if isDamage(err) {
		if _, again := o.copyInOrder(from, into, strings.ReplaceAll(o.order, ",", " DESC,")+" DESC"); again != nil && !isDamage(again) {
			err = again
		}
	}
	return damaged, err
}

func (o *oldTable) copyInOrder(from, into *tx, order string) (damaged int, err error) {
	for offset, more := 0, true; more && err == nil; offset += copyPage {
		var rows [][]any
		more = false
		err = from.each(func(r scanner) error {
			more = true
			row, err := o.read(r)
			if row != nil {
				rows = append(rows, row)
			} else if err == nil {
				damaged++
			}
			return err
		}, o.query+` ORDER BY `+order+` LIMIT ? OFFSET ?`, copyPage, offset)
		if kept := into.insert(o.to, o.columns, "ON CONFLICT DO NOTHING", rows...); kept != nil {
			return damaged, kept
		}
	}
	return damaged, err
}

// read returns the columns of the new table from a row; nil if it is damaged.
func (o *oldTable) read(r scanner) ([]any, error) {
	names, err := r.(row).Columns()
	if err != nil {
		return nil, err
	}
	old, dest := make([]any, len(names)), make([]any, len(names))
	sum := len(names)
	for i, name := range names {
		dest[i] = &old[i]
		if name == "sum" {
			sum = i
		}
	}
	if err := r.Scan(dest...); err != nil {
		return nil, err
	}
	for _, v := range old {
		switch v.(type) {
		case int64, []byte, string, bool:
		default:
			return nil, nil
		}
	}
	if sum < len(old) && old[sum] != rowSum(old[:sum]...) {
		return nil, nil
	}
	if o.convert != nil {
		return o.convert(old), nil
	}
	return old[:sum], nil
}

// hasTable reports whether the library has a table of a name.
func (t *tx) hasTable(name string) (bool, error) {
	query, args := `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = CAST(? AS TEXT)`, []any{name}
	if t.s.dir == "" {
		query = `SELECT count(*) FROM pg_tables WHERE schemaname = convert_from(?, 'UTF8') AND tablename = convert_from(?, 'UTF8')`
		args = []any{t.s.schema, name}
	}
	n := 0
	err := t.row(query, args...).Scan(&n)
	return n > 0, err
}

package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"ibid/ingest"
)

// format numbers the layout of the database. A program reads its own format
// and refuses a newer one.
const format = 1

// schema is executed as a whole into an empty file, always in this order: a
// damaged first page is rebuilt from a fresh one. Row sums are those of sums.go.
//
// The key of a chunk and of its vector is its document's key and its ordinal in
// one number, so that the rows of one document lie together.
const schema = `
CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL,
	sum   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE meta_copy (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL,
	sum   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE roots (
	name       TEXT PRIMARY KEY,
	path       TEXT NOT NULL,
	collection TEXT NOT NULL,
	sum        INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE documents (
	key        INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT NOT NULL UNIQUE,
	root       TEXT NOT NULL,
	path       TEXT NOT NULL,
	collection TEXT NOT NULL,
	title      TEXT NOT NULL,
	format     TEXT NOT NULL,
	digest     TEXT NOT NULL,
	meta       TEXT NOT NULL,
	chunks     INTEGER NOT NULL,
	revision   INTEGER NOT NULL,
	sum        INTEGER NOT NULL,
	outline    TEXT NOT NULL,
	text       TEXT NOT NULL
);
CREATE TABLE chunks (
	key     INTEGER PRIMARY KEY,
	start   INTEGER NOT NULL,
	end     INTEGER NOT NULL,
	page    INTEGER NOT NULL,
	tokens  INTEGER NOT NULL,
	sum     INTEGER NOT NULL,
	heading TEXT NOT NULL,
	anchor  TEXT NOT NULL,
	terms   BLOB NOT NULL,
	text    TEXT NOT NULL
);
CREATE TABLE vectors (
	key    INTEGER PRIMARY KEY,
	sum    INTEGER NOT NULL,
	vector BLOB NOT NULL
);
CREATE TABLE vectors_next (
	key    INTEGER PRIMARY KEY,
	sum    INTEGER NOT NULL,
	vector BLOB NOT NULL
);
CREATE TABLE changes (
	revision INTEGER PRIMARY KEY AUTOINCREMENT,
	document INTEGER NOT NULL,
	deleted  INTEGER NOT NULL
);
`

// placeOf is what the column page holds: the page of a chunk; of one without a
// page its line in the file, below zero; 0 when it has neither.
func placeOf(c *ingest.Chunk) int64 {
	if c.Page == 0 {
		return -int64(c.Line)
	}
	return int64(c.Page)
}

func setPlace(c *ingest.Chunk, place int64) {
	c.Page, c.Line = int(max(0, place)), int(max(0, -place))
}

// ordinalBits is how many bits of a chunk's key hold its ordinal.
const ordinalBits = 20

// maxChunks is the largest number of chunks of one document.
const maxChunks = 1<<ordinalBits - 1

func chunkKey(document int64, ordinal int) int64 { return document<<ordinalBits | int64(ordinal) }

// keyRange is the first and the last key that a chunk of the document can have.
func keyRange(document int64) (first, last int64) {
	return document << ordinalBits, (document+1)<<ordinalBits - 1
}

// Documents in the table of changes that are none.
const (
	changedAll   = 0  // the vectors of all documents: the space
	changedRoots = -1 // the list of roots
)

// The names in the table meta.
const (
	metaFormat  = "format"
	metaSpace   = "space"   // of the vectors
	metaNext    = "next"    // space of the vectors beside them
	metaLibrary = "library" // digest over all documents
)

// pragmas of every connection. Synchronous FULL makes a commit durable before
// it returns; secure_delete leaves no words of what was deleted in free pages.
var pragmas = []string{
	"busy_timeout(5000)",
	"synchronous(FULL)",
	"secure_delete(ON)",
	"cell_size_check(ON)",
	"trusted_schema(OFF)",
}

// The caches of connections, in KiB. Of those that read there are several, and
// what they are asked for most is in memory.
const (
	writeCache = 8000
	readCache  = 2000
)

func dsn(path string, readOnly bool) string {
	cache := fmt.Sprintf("cache_size(-%d)", readCache)
	pragmas := append([]string{cache}, pragmas...)
	if !readOnly {
		cache = fmt.Sprintf("cache_size(-%d)", writeCache)
		// The log is kept in the file, and changes one that says otherwise.
		pragmas = append([]string{"journal_mode(WAL)", cache}, pragmas[1:]...)
	}
	q := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}, "_dqs": {"0"}, "_error_rc": {"1"}}
	if readOnly {
		q.Set("_txlock", "deferred")
		q.Set("_query_only", "1")
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// create lays out an empty database.
func create(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	if err := setMeta(ctx, tx, metaFormat, strconv.Itoa(format)); err != nil {
		return err
	}
	return setMeta(ctx, tx, metaLibrary, library{}.String())
}

// errRow says that a row's checksum does not fit its content.
var errRow = errors.New("its checksum does not fit")

// setMeta sets a setting in the table of settings and in its copy.
func setMeta(ctx context.Context, tx *sql.Tx, name, value string) error {
	for _, table := range []string{"meta", "meta_copy"} {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO `+table+` (name, value, sum) VALUES (?, ?, ?)`, name, value, metaSum(name, value))
		if err != nil {
			return err
		}
	}
	return nil
}

// getMeta gives a setting, from the copy where the first is damaged; "" for
// what has not been set.
func getMeta(ctx context.Context, tx *sql.Tx, name string) (value string, err error) {
	for _, table := range []string{"meta", "meta_copy"} {
		var stored int64
		err = scanned(tx.QueryRowContext(ctx, `SELECT value, sum FROM `+table+` WHERE name = ?`, name).Scan(&value, &stored))
		if errors.Is(err, sql.ErrNoRows) {
			continue // never set, or its name is damaged
		}
		if err == nil {
			if metaSum(name, value) == stored {
				return value, nil
			}
			err = fmt.Errorf("read the setting %q: %w", name, errRow)
		}
		if !isDamage(err) {
			return "", err
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return "", err
}

// ErrNewer says that a newer program wrote a data directory.
var ErrNewer = errors.New("it was written by a newer version of ibid")

// checkFormat refuses a file without tables, what a newer program wrote, and a
// header that has SQLite take pages of the tables for its own book of pages, which
// it would write to.
func checkFormat(ctx context.Context, tx *sql.Tx) error {
	var tables int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return scanned(err)
	}
	if tables == 0 {
		return errEmptied
	}
	var vacuuming int
	if err := tx.QueryRowContext(ctx, `PRAGMA auto_vacuum`).Scan(&vacuuming); err != nil {
		return scanned(err)
	}
	if vacuuming != 0 {
		return fmt.Errorf("%w: its header says that it vacuums by itself", ErrDamaged)
	}
	value, err := getMeta(ctx, tx, metaFormat)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("read the setting %q: %w", metaFormat, errRow)
	}
	if n > format {
		return fmt.Errorf("%w (format %d; this version reads format %d): update ibid, or choose another data directory with --data", ErrNewer, n, format)
	}
	return nil
}

// spaceOf gives the space of the stored vectors, "" when nothing is stored.
func spaceOf(ctx context.Context, tx *sql.Tx) (string, error) {
	var any bool
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM documents)`).Scan(&any); err != nil || !any {
		return "", err
	}
	return getMeta(ctx, tx, metaSpace)
}

-- Types: ID is the number of a row, by which rows are ordered; INT is a number of 64 bits, or 0
-- or 1 for false and true; SERIAL is an ID that the database assigns; BYTES is bytes or text. Text
-- is stored as bytes because a text of PostgreSQL can contain neither every file name nor a NUL,
-- and because bytes have the same order everywhere. A line that begins with a dialect in braces is
-- only for that dialect.
--
-- The column sum is the checksum of the columns before it, except a SERIAL. Columns after it may
-- change independently.

-- The number of the layout, in two tables; in PostgreSQL it is in ibid.migrations.
{sqlite} CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
{sqlite} CREATE TABLE meta_copy (name TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;

-- A row for each transaction, for clients that did not get the reply to their commit. Rows are
-- deleted when no client can be waiting any more.
{postgres} CREATE TABLE ibid.commits (id uuid PRIMARY KEY, made timestamptz NOT NULL DEFAULT clock_timestamp());
{postgres} CREATE INDEX commits_made ON ibid.commits (made);

-- The last assigned revision. Its row is locked until the commit, so that revisions become visible
-- in order.
{postgres} CREATE TABLE ibid.clock (revision bigint NOT NULL);
{postgres} INSERT INTO ibid.clock (revision) VALUES (0);
{postgres} CREATE SEQUENCE ibid.numbers;

-- The name of the library and its embedding spaces. The copy is on another page.
CREATE TABLE ibid.settings (
	name  BYTES PRIMARY KEY,
	value BYTES NOT NULL,
	sum   INT NOT NULL
);
CREATE TABLE ibid.settings_copy (
	name  BYTES PRIMARY KEY,
	value BYTES NOT NULL,
	sum   INT NOT NULL
);

CREATE TABLE ibid.roots (
	name       BYTES PRIMARY KEY,
	path       BYTES NOT NULL,
	collection BYTES NOT NULL,
	sum        INT NOT NULL
);

CREATE TABLE ibid.documents (
	number     ID,
	key        BYTES NOT NULL UNIQUE, -- digest of the id, which may be too long for an index
	id         BYTES NOT NULL,
	root       BYTES NOT NULL,
	path       BYTES NOT NULL,
	collection BYTES NOT NULL,
	title      BYTES NOT NULL,
	format     BYTES NOT NULL,
	digest     BYTES NOT NULL,
	meta       BYTES NOT NULL, -- JSON
	chunks     INT NOT NULL,
	pages      INT NOT NULL,
	bytes      INT NOT NULL,
	text_sum   INT NOT NULL, -- sum of its row in texts
	chunk_sum  INT NOT NULL, -- checksum of the sums of its chunks in order
	sum        INT NOT NULL
);
CREATE INDEX documents_root ON ibid.documents (root);
CREATE INDEX documents_digest ON ibid.documents (digest);

-- The row of a document's text has the document's number.
CREATE TABLE ibid.texts (
	number      ID,
	outline     BYTES NOT NULL, -- JSON
	outline_sum INT NOT NULL, -- of the number and the outline
	text        BYTES NOT NULL,
	sum         INT NOT NULL
);
-- Part of a long text can be read alone only if the text is not compressed.
{postgres} ALTER TABLE ibid.texts ALTER COLUMN text SET STORAGE EXTERNAL;

-- The key of a chunk is number << 20 | ordinal, with its document's number. The digest is the digest
-- of its embedding text.
CREATE TABLE ibid.chunks (
	key     ID,
	digest  BYTES NOT NULL,
	start   INT NOT NULL,
	stop    INT NOT NULL,
	place   INT NOT NULL, -- the page, or the negated line
	tokens  INT NOT NULL,
	heading BYTES NOT NULL,
	anchor  BYTES NOT NULL,
	text    BYTES NOT NULL,
	sum     INT NOT NULL
);
CREATE INDEX chunks_digest ON ibid.chunks (digest);

-- The vectors of all chunks, in every space.
CREATE TABLE ibid.vectors (
	number SERIAL,
	space  INT NOT NULL,
	digest BYTES NOT NULL,
	vector BYTES NOT NULL, -- little-endian float32
	sum    INT NOT NULL
);
CREATE UNIQUE INDEX vectors_digest ON ibid.vectors (digest, space);

-- The latest change to each document, including deleted documents, whose id is then empty. The row
-- of document 0 is the latest change to anything else.
CREATE TABLE ibid.changes (
	document ID,
	revision INT NOT NULL,
	deleted  INT NOT NULL,
	id       BYTES NOT NULL,
	sum      INT NOT NULL
);
CREATE UNIQUE INDEX changes_revision ON ibid.changes (revision);

-- Documents that were found damaged and are hidden until they are stored again or deleted.
CREATE TABLE ibid.damage (
	document ID,
	id       BYTES NOT NULL,
	reason   BYTES NOT NULL,
	sum      INT NOT NULL
);

-- Data that no folder can restore: unfinished jobs, records of ended jobs, feedback, keys and
-- sessions. Times are microseconds since 1970; times of keys and sessions are seconds, or 0.
--
-- Rows are saved from a damaged file by the types and the checksums of their columns, so no two
-- tables with checksums have the same types.

-- The columns that change while a job is worked on. The other columns, which may be long, are in specs.
CREATE TABLE ibid.jobs (
	id      BYTES PRIMARY KEY,
	kind    BYTES NOT NULL,
	started INT NOT NULL,
	touched INT NOT NULL, -- when it was last active
	size    INT NOT NULL, -- bytes of its spec and of all replies
	worker  BYTES NOT NULL, -- the last to claim it, unless it released it; otherwise empty
	until   INT NOT NULL -- when the claim expires, by the clock of the database
);
CREATE TABLE ibid.specs (
	job     BYTES PRIMARY KEY,
	kind    BYTES NOT NULL,
	started INT NOT NULL,
	secret  BYTES NOT NULL,
	spec    BYTES NOT NULL,
	sum     INT NOT NULL
);
CREATE TABLE ibid.replies (
	job   BYTES NOT NULL,
	key   BYTES NOT NULL,
	size  INT NOT NULL, -- bytes of the reply
	reply BYTES NOT NULL,
	sum   INT NOT NULL,
	PRIMARY KEY (job, key)
);

CREATE TABLE ibid.records (
	id        BYTES PRIMARY KEY,
	kind      BYTES NOT NULL,
	caller    BYTES NOT NULL,
	shared    INT NOT NULL,
	state     BYTES NOT NULL,
	started   INT NOT NULL,
	ended     INT NOT NULL,
	expires   INT NOT NULL,
	size      INT NOT NULL, -- bytes of the spec and the events
	spec      BYTES NOT NULL,
	sum       INT NOT NULL
);
CREATE INDEX records_caller ON ibid.records (caller, started, id);
CREATE INDEX records_started ON ibid.records (started, id, size, expires);
CREATE TABLE ibid.events (
	record    BYTES PRIMARY KEY,
	documents INT NOT NULL, -- number of its rows in quoted
	events    BYTES NOT NULL,
	sum       INT NOT NULL
);
-- The documents whose words are in the events of a record, by number. The key is the key of
-- documents.
CREATE TABLE ibid.quoted (
	record   BYTES NOT NULL,
	number   INT NOT NULL,
	key      BYTES NOT NULL,
	document BYTES NOT NULL,
	sum      INT NOT NULL,
	PRIMARY KEY (record, number)
);
CREATE INDEX quoted_key ON ibid.quoted (key);

CREATE TABLE ibid.feedback (
	key      ID,
	run      BYTES NOT NULL,
	caller   BYTES NOT NULL,
	citation INT NOT NULL,
	rating   INT NOT NULL,
	at       INT NOT NULL,
	comment  BYTES NOT NULL,
	sum      INT NOT NULL
);
CREATE INDEX feedback_run ON ibid.feedback (run, caller, citation);

-- The digests are SHA-256.
CREATE TABLE ibid.keys (
	id          BYTES PRIMARY KEY,
	name        BYTES NOT NULL UNIQUE,
	digest      BYTES NOT NULL,
	write       INT NOT NULL,
	collections BYTES NOT NULL, -- JSON
	created     INT NOT NULL,
	expires     INT NOT NULL,
	used        INT NOT NULL, -- approximate time of the last use
	sum         INT NOT NULL
);
CREATE TABLE ibid.sessions (
	digest  BYTES PRIMARY KEY,
	key     BYTES NOT NULL,
	started INT NOT NULL,
	sum     INT NOT NULL
);

-- A random number of the process that made the changes from a revision on: revisions that were lost
-- with a server or by restoring a backup are assigned again.
CREATE TABLE ibid.eras (
	first ID, -- revision
	era   INT NOT NULL,
	sum   INT NOT NULL
);

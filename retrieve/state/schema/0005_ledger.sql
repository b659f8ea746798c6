-- What no folder can restore: unfinished jobs, the records of those that have
-- ended, feedback, keys and sessions. Times are microseconds since 1970, those of
-- keys and sessions seconds, 0 for none.
--
-- Rows are saved from a damaged file by the types and the checksums of their
-- columns: no two tables with checksums have the same types.

-- What changes while a job is worked on; the rest is in specs, which may be long.
CREATE TABLE ibid.jobs (
	id      BYTES PRIMARY KEY,
	kind    BYTES NOT NULL,
	started INT NOT NULL,
	touched INT NOT NULL, -- when it was last active
	size    INT NOT NULL, -- bytes of its spec and of all replies
	worker  BYTES NOT NULL, -- that claimed it last and has not released it; empty for none
	until   INT NOT NULL -- when that claim expires, by the clock of the database
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
-- The documents whose words are in the events of a record, by number. The key is
-- that of documents.
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
	used        INT NOT NULL, -- about when it was used last
	sum         INT NOT NULL
);
CREATE TABLE ibid.sessions (
	digest  BYTES PRIMARY KEY,
	key     BYTES NOT NULL,
	started INT NOT NULL,
	sum     INT NOT NULL
);

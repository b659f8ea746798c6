-- One row of each transaction that changed something, for whoever did not get the
-- answer to its commit. They are deleted when nobody can be asking any more.
CREATE TABLE ibid.commits (
	id   uuid PRIMARY KEY,
	made timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX commits_made ON ibid.commits (made);

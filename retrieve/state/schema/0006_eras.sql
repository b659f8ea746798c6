-- Which process made the changes from a revision on, by a random number: revisions
-- that were lost with a server or by restoring a backup are issued again.
CREATE TABLE ibid.eras (
	first ID, -- revision
	era   INT NOT NULL,
	sum   INT NOT NULL
);

package postgres

import (
	"context"
	"hash/fnv"
	"slices"
)

// Locks are advisory ones that end with their transaction. Each has two numbers:
// that of the schema, so that libraries in one database do not wait for each
// other, and one of what is locked.
const (
	// databaseLock is the first number where all schemas are meant.
	databaseLock = 0x1b1d
	// libraryLock is held shared by whoever changes a document, and alone by
	// whoever changes what documents stand on: roots and spaces.
	libraryLock = 0
	// Those of documents are odd. These are held alone by whoever begins a run,
	// keeps a record or an opinion, or changes keys and sessions.
	runsLock     = 2
	recordsLock  = 4
	feedbackLock = 6
	ringLock     = 8
)

// lockDocuments keeps others from changing the documents, and from changing
// roots and spaces, until the transaction ends.
func (e *Engine) lockDocuments(ctx context.Context, s *session, ids ...string) error {
	numbers := make([]int32, len(ids))
	for i, id := range ids {
		h := fnv.New32a()
		h.Write([]byte(id))
		numbers[i] = int32(h.Sum32() | 1) // never libraryLock
	}
	slices.Sort(numbers) // in one order, so that nobody waits for one who waits
	_, err := s.exec(ctx, `SELECT pg_advisory_xact_lock_shared($1, $2) UNION ALL SELECT pg_advisory_xact_lock($1, n) FROM unnest($3::int[]) AS n`,
		e.locks, libraryLock, slices.Compact(numbers))
	return err
}

// lockLibrary keeps others from changing any document until the transaction ends.
func (e *Engine) lockLibrary(ctx context.Context, s *session) error {
	return e.lock(ctx, s, libraryLock)
}

// lock keeps others from having one of the locks until the transaction ends.
func (e *Engine) lock(ctx context.Context, s *session, number int32) error {
	_, err := s.exec(ctx, `SELECT pg_advisory_xact_lock($1, $2)`, e.locks, number)
	return err
}

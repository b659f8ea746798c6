// Package postgres is the [retrieve.Store] on PostgreSQL with pgvector: for
// libraries that outgrow one machine's memory, and for those who run a database
// already. Any number of Ibid servers may use one database.
//
// Everything lies in one schema, which Open lays out and brings up to date. A
// document is replaced in one transaction, so that readers see the old one or
// the new one. Searches by vector use an HNSW index of pgvector, and those by
// word posting lists of Ibid's own terms. Statements need no state of a session,
// so that a pooler may stand between, such as PgBouncer in transaction mode.
//
// Texts, ids and terms are stored as bytes (bytea): PostgreSQL's text cannot hold
// every name that a file can have.
package postgres

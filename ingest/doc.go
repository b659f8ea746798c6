// Package ingest turns files into documents and documents into chunks.
//
// A [Reader] reads one file into a [Document]: clean text with its headings and pages. [Split] cuts
// a document into [Chunk]s along its structure within a token budget. A [Syncer] does both for a
// folder and updates a [Sink]. All later stages use [CountTokens] and [Sentences].
//
// Formats whose parsers can hang, crash or exhaust memory are read in child
// processes of the same binary: main, and the TestMain of every package that
// reads documents, calls [RunChild] before anything else.
package ingest

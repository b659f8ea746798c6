// Package ingest turns files into documents and documents into chunks.
//
// A [Reader] reads one file into a [Document]: clean text with its headings
// and pages. [Split] cuts a document into [Chunk]s along its structure to a
// budget of tokens. A [Syncer] does both for a folder and keeps a [Sink] in
// step with it. [CountTokens] and [Sentences] are shared by everything
// downstream.
//
// Formats whose parsers can hang, die or exhaust memory are read in child
// processes of the same binary, which a [Reader] keeps from file to file: a
// main function, and the TestMain of every package that reads documents, calls
// [RunChild] before anything else.
package ingest

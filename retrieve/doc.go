// Package retrieve keeps documents and finds the passages near a question.
//
// An [Index] is what the rest of the program uses: it stores documents that
// package ingest has read and split, and searches them. It is built on one
// [Engine], which stores everything durably and finds candidates
// ([ibid/retrieve/local] is the embedded one), and one [Embedder]
// ([ibid/retrieve/embed] is the built-in one):
//
//	engine, err := local.Open(ctx, dir, local.Options{})
//	…
//	defer engine.Close()
//	index, err := retrieve.NewIndex(ctx, engine, embedder, retrieve.Options{})
//	…
//	passages, err := index.Search(ctx, retrieve.Query{Text: "When is high water?"})
//
// A search sends the engine two queries in parallel: for the chunks nearest to
// the question's vector, and for those with the highest BM25 score over its
// [Terms]. Engines only find: both scores of every candidate are then computed
// here, from its text, its vector and the engine's [Stats], so that they mean
// the same on every engine. A mixture of both orders the passages. A passage
// that repeats another word for word is dropped.
//
// Vectors of different embedders cannot be compared. An engine belongs to one
// space; [NewIndex] gives a [*SpaceError] for another, and [Reembed] moves an
// engine to a new one.
package retrieve

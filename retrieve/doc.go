// Package retrieve stores documents and finds the passages that are nearest to a question.
//
// An [Index] is the interface to the rest of the program: it stores documents that package ingest
// has read and split, and searches them. It is built on one [State], which has the durable data
// ([ibid/retrieve/state]), one [Searcher], which finds candidates and can be rebuilt from the state
// at any time ([ibid/retrieve/index] is the embedded one), and one [Embedder]
// ([ibid/retrieve/embed] is the built-in one). Package [ibid/retrieve/library] opens them together:
//
//	lib, err := library.Open(ctx, library.Place{Data: dir}, embedder, library.Options{})
//	…
//	defer lib.Close()
//	passages, err := lib.Index.Search(ctx, retrieve.Query{Text: "When is high water?"})
//
// A search first applies the state's changes, by any process, to the searcher. Then it requests, in
// parallel, the chunks nearest to the question's vector and the chunks with the highest BM25 score
// over the question's [Terms]. The scores of all candidates are computed here, from the searcher's
// [Evidence] and [Stats], so that they mean the same with every searcher. A mixture of both scores
// orders the passages, and word-for-word repetitions are dropped. Texts come from the state.
//
// Vectors of different embedders cannot be compared. A state's documents belong to one space;
// [NewIndex] returns a [*SpaceError] for another, and [Reembed] moves the state to a new one.
package retrieve

package retrieve

import (
	"fmt"

	"ibid/ingest"
)

// A Passage is a chunk found for a question, with its scores, or several neighbouring chunks of one
// section joined. A joined passage has the id and ordinal of the first chunk
// ("handbook/fees.md#3-4" is the chunks 3 and 4), the text from the first to the last, and the
// highest of each score.
type Passage struct {
	ingest.Chunk
	Root   string `json:"root"`
	Path   string `json:"path"`
	Title  string `json:"title"`
	Format string `json:"format"`
	// Digest is the digest of the document's file.
	Digest string `json:"digest"`
	// AlsoIn lists other documents with equal files that the caller may see, a few at most.
	AlsoIn []string `json:"also_in,omitempty"`
	// Meta is the document's metadata, as in [ingest.Document]. It must not be changed.
	Meta map[string]string `json:"-"`
	// Places are the sections of the text, ordered by start: the section in which the text begins
	// and the sections that begin inside it. The chunk's Heading and Anchor are those of the first
	// section. Rows of a table have no places.
	Places []Place `json:"-"`
	// Pages are the pages that the text is on, or nil if the format has no pages.
	Pages []ingest.Page `json:"-"`
	// Score orders the passages of one search: the mixture of the dense and lexical scores, scaled
	// to 0 to 1. Scores of different questions cannot be compared.
	Score  float64 `json:"score"`
	Scores Scores  `json:"scores"`
}

// Passages returns the chunks that [ingest.Split] made of a document as passages without scores,
// for callers that use the whole document.
func Passages(doc *ingest.Document, chunks []ingest.Chunk) []Passage {
	passages := make([]Passage, len(chunks))
	for i, c := range chunks {
		c.Ordinal = i + 1
		c.ID, c.Document = fmt.Sprintf("%s#%d", doc.ID, c.Ordinal), doc.ID
		passages[i] = Passage{Chunk: c, Root: doc.Root, Path: doc.Path, Title: doc.Title, Format: doc.Format, Digest: doc.Digest, Meta: doc.Meta}
	}
	all := make([]*Passage, len(passages))
	for i := range passages {
		all[i] = &passages[i]
	}
	setPlaces(all, Outline{doc.Sections, doc.Pages})
	return passages
}

// Scores are the inputs of fusion and of the gate. Ibid computes them from the candidate's text and
// vector, and from document frequencies in the searcher's [Stats], so that they mean the same with
// every searcher.
type Scores struct {
	// Dense is the cosine of the question's and the passage's vectors, -1 to 1.
	Dense float64 `json:"dense"`
	// BM25 is the Okapi BM25 score, 0 or more.
	BM25 float64 `json:"bm25"`
	// Lexical is BM25 divided by the highest score that the question could reach in this
	// collection, 0 to 1.
	Lexical float64 `json:"lexical"`
	// Coverage is the share of the question's inverse document frequency that the passage's terms
	// carry, 0 to 1.
	Coverage float64 `json:"coverage"`
	// Rerank is the reranker's score, on its own scale, or nil.
	Rerank *float64 `json:"rerank,omitempty"`
}

// A Query describes one search.
type Query struct {
	Text string
	// K is the largest number of passages; 0 means [DefaultK].
	K int
	// Apart makes every chunk its own passage: neighbours are not joined and repeated texts are
	// kept. It is for measuring a search against relevance judgements of chunks.
	Apart bool
	Filter
	// Warn, if not nil, is called with errors that do not stop the search, such as a failure of the
	// reranker.
	Warn func(error)
}

// DefaultK is the default number of passages of a search.
const DefaultK = 12

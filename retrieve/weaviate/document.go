package weaviate

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	client "github.com/weaviate/weaviate-go-client/v5/weaviate"
	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"

	"ibid/ingest"
	"ibid/retrieve"
)

// A document is what its object holds. Which of its generations counts stands
// here and nowhere else, so that storing this object is the moment at which a
// document changes.
type document struct {
	ingest.Document
	Collection string `json:"collection"`
	Generation string `json:"generation"`
	Chunks     int    `json:"chunks"`
	Terms      int    `json:"terms"` // of all chunks together
	PageCount  int    `json:"pages"`
	Bytes      int    `json:"bytes"`
	// Parts are where the parts of the text begin; Outline is how many parts of
	// the outline follow them.
	Parts   []int `json:"parts,omitempty"`
	Outline int   `json:"outline"`
	// Analysis is [retrieve.Analysis] of when its terms were made.
	Analysis int `json:"analysis"`
	// Committed is when this was stored, in microseconds of the Unix time.
	Committed int64 `json:"committed"`
}

// An outline is what of a document is too large for its object and no text.
type outline struct {
	Sections []ingest.Section `json:"sections,omitempty"`
	Pages    []ingest.Page    `json:"pages,omitempty"`
}

func (d *document) info() retrieve.DocumentInfo {
	return retrieve.DocumentInfo{Document: d.Document, Collection: d.Collection, Chunks: d.Chunks, Pages: d.PageCount, Bytes: d.Bytes}
}

func documentID(id string) string { return idOf("document", id) }

func (d *document) partID(n int) string {
	return idOf("part", d.ID, d.Generation, fmt.Sprint(n))
}

func (d *document) chunkID(ordinal int) string {
	return idOf("chunk", d.ID, d.Generation, fmt.Sprint(ordinal))
}

func readDocument(r row) (*document, error) {
	var d document
	if err := json.Unmarshal([]byte(r.text("data")), &d); err != nil {
		return nil, fmt.Errorf("the object %s of a document cannot be read: %w", r.id, err)
	}
	return &d, nil
}

// object is the document as it is stored.
func (d *document) object(at address) (*pb.BatchObject, error) {
	d.Committed = time.Now().UnixMicro()
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	info := d.info()
	l := retrieve.LabelsOf(d.Meta)
	return object(at.documents(), documentID(d.ID), map[string]any{
		"labels": labelsOf(&info, l), "path": pathKey(d.Path), "from": firstDay(l.Date), "to": lastDay(l.Date),
		"chunks": d.Chunks, "terms": d.Terms, "data": string(data),
	}), nil
}

// documents reads documents by the ids of their objects; what is not there is
// left out.
func (e *Engine) documents(ctx context.Context, ids []string) (map[string]*document, error) {
	found := make(map[string]*document, len(ids))
	const page = 1000
	for len(ids) > 0 {
		n := min(page, len(ids))
		rows, err := e.wire.search(ctx, query(e.wire.at.documents(), byID(ids[:n]...), n, "data"))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if found[r.id], err = readDocument(r); err != nil {
				return nil, err
			}
		}
		ids = ids[n:]
	}
	return found, nil
}

// document reads one; [retrieve.ErrNotFound] if there is none.
func (e *Engine) document(ctx context.Context, id string) (*document, error) {
	found, err := e.documents(ctx, []string{documentID(id)})
	if err != nil {
		return nil, err
	}
	if d := found[documentID(id)]; d != nil {
		return d, nil
	}
	return nil, retrieve.ErrNotFound
}

// stands says whether a document is there that a search has not found: while its
// object is stored anew there is a moment in which searches miss it, and it can be
// had by its id alone. Where that fails, what the search said counts.
func (e *Engine) stands(ctx context.Context, id string) bool {
	return e.wire.ask(func(c *client.Client) error {
		_, err := c.Data().ObjectsGetter().WithClassName(e.wire.at.documents()).WithID(documentID(id)).WithConsistencyLevel("ONE").Do(ctx)
		return err
	}) == nil
}

// partBytes is about how long a part of a text is.
const partBytes = 256 << 10

// split cuts a text between characters; it gives where the parts begin.
func split(text string) (starts []int) {
	for at := 0; at < len(text); {
		starts = append(starts, at)
		at += min(partBytes, len(text)-at)
		for at < len(text) && !utf8.RuneStart(text[at]) {
			at--
		}
	}
	return starts
}

// parts are the objects of a text and an outline; the document is told of them.
func (d *document) parts(at address, text string, o outline) ([]*pb.BatchObject, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var objects []*pb.BatchObject
	add := func(text string) {
		objects = append(objects, object(at.parts(), d.partID(len(objects)), map[string]any{"document": documentID(d.ID), "generation": d.Generation, "data": text}))
	}
	d.Parts = split(text)
	for i, start := range d.Parts {
		end := len(text)
		if i+1 < len(d.Parts) {
			end = d.Parts[i+1]
		}
		add(text[start:end])
	}
	outline := string(data)
	starts := split(outline)
	for i, start := range starts {
		end := len(outline)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		add(outline[start:end])
	}
	d.Outline = len(starts)
	return objects, nil
}

// errChanged says that a document changed while its parts were read.
var errChanged = errors.New("it changes too often to be read: ask again")

// readParts reads parts from first to before end of the document as it is now,
// joined; pick says which.
func (e *Engine) readParts(ctx context.Context, id string, pick func(*document) (first, end int, err error)) (*document, string, error) {
	for range 10 {
		d, err := e.document(ctx, id)
		if errors.Is(err, retrieve.ErrNotFound) && e.stands(ctx, id) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		first, end, err := pick(d)
		if err != nil || first >= end {
			return d, "", err
		}
		texts := make(map[string]string)
		for at := first; at < end; {
			// Few enough for one reply.
			n := min(128, end-at)
			ids := make([]string, n)
			for i := range ids {
				ids[i] = d.partID(at + i)
			}
			rows, err := e.wire.search(ctx, query(e.wire.at.parts(), byID(ids...), n, "data"))
			if err != nil {
				return nil, "", err
			}
			for _, r := range rows {
				texts[r.id] = r.text("data")
			}
			at += n
		}
		if len(texts) < end-first {
			continue // another generation has taken its place
		}
		var b strings.Builder
		for n := first; n < end; n++ {
			b.WriteString(texts[d.partID(n)])
		}
		return d, b.String(), nil
	}
	return nil, "", errChanged
}

func (d *document) outlineParts() (first, end int, err error) {
	return len(d.Parts), len(d.Parts) + d.Outline, nil
}

// Document gives a stored document with its text.
func (e *Engine) Document(ctx context.Context, id string) (*ingest.Document, error) {
	d, text, err := e.readParts(ctx, id, func(d *document) (int, int, error) { return 0, len(d.Parts) + d.Outline, nil })
	var o outline
	if err == nil && len(text) < d.Bytes {
		err = fmt.Errorf("its text is not whole: ingest it again")
	}
	if err == nil {
		err = json.Unmarshal([]byte(text[d.Bytes:]), &o)
	}
	if err != nil {
		return nil, fmt.Errorf("read the document %q: %w", id, err)
	}
	doc := d.Document
	doc.Text, doc.Sections, doc.Pages = text[:d.Bytes], o.Sections, o.Pages
	return &doc, nil
}

// Excerpt gives a part of a stored document's text.
func (e *Engine) Excerpt(ctx context.Context, id string, start, end int) (string, error) {
	first := 0
	d, text, err := e.readParts(ctx, id, func(d *document) (int, int, error) {
		if start < 0 || end < start || end > d.Bytes {
			return 0, 0, retrieve.ErrNotFound
		}
		if start == end {
			return 0, 0, nil
		}
		last := len(d.Parts)
		for last > 0 && d.Parts[last-1] >= end {
			last--
		}
		for first = last - 1; first > 0 && d.Parts[first] > start; {
			first--
		}
		return first, last, nil
	})
	if err == nil && start < end {
		if from := d.Parts[first]; end-from > len(text) {
			err = fmt.Errorf("its text is not whole: ingest it again")
		} else {
			text = text[start-from : end-from]
		}
	}
	if err != nil {
		return "", fmt.Errorf("read bytes %d to %d of the document %q: %w", start, end, id, err)
	}
	return text, nil
}

// Sections gives the sections of a stored document, in order.
func (e *Engine) Sections(ctx context.Context, id, digest string) ([]ingest.Section, error) {
	_, text, err := e.readParts(ctx, id, func(d *document) (int, int, error) {
		if d.Digest != digest {
			return 0, 0, retrieve.ErrNotFound
		}
		return d.outlineParts()
	})
	var o outline
	if err == nil {
		if wrong := json.Unmarshal([]byte(text), &o); wrong != nil {
			err = fmt.Errorf("%w: %w", retrieve.ErrNotFound, wrong)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the sections of the document %q: %w", id, err)
	}
	return o.Sections, nil
}

// A chunkData is what of a chunk is only read.
type chunkData struct {
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Heading string `json:"heading,omitempty"`
	Anchor  string `json:"anchor,omitempty"`
	Page    int    `json:"page,omitempty"`
	Line    int    `json:"line,omitempty"`
	Tokens  int    `json:"tokens"`
	Text    string `json:"text"`
	Terms   string `json:"terms"` // by [retrieve.PackTerms], in Base64
}

// words is a list of counted terms as Weaviate searches it: each as often as it
// stands in the chunk, so that Weaviate's own BM25 is nearly Ibid's.
func words(counts []retrieve.TermCount) string {
	var b strings.Builder
	for _, c := range counts {
		w := word(c.Term)
		for range c.Count {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w)
		}
	}
	return b.String()
}

// word is a term as a token that Weaviate leaves whole: nothing in it is white
// space, and it is no longer than a key.
func word(term string) string {
	plain := len(term) > 0 && len(term) <= maxKey
	for i := 0; plain && i < len(term); i++ {
		c := term[i]
		plain = c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
	}
	if plain {
		return term
	}
	if len(term) <= maxKey/2 {
		return "_" + base64.RawURLEncoding.EncodeToString([]byte(term))
	}
	return "__" + strings.ReplaceAll(idOf("term", term), "-", "")
}

// chunkObject is a chunk of a document as it is stored.
func (d *document) chunkObject(class string, c *ingest.Chunk, counts []retrieve.TermCount, length int, vector []float32) (*pb.BatchObject, error) {
	data, err := json.Marshal(chunkData{
		Start: c.Start, End: c.End, Heading: c.Heading, Anchor: c.Anchor, Page: c.Page, Line: c.Line, Tokens: c.Tokens, Text: c.Text,
		Terms: base64.RawStdEncoding.EncodeToString(retrieve.PackTerms(counts, length)),
	})
	if err != nil {
		return nil, err
	}
	info := d.info()
	l := retrieve.LabelsOf(d.Meta)
	o := object(class, d.chunkID(c.Ordinal), map[string]any{
		"document": documentID(d.ID), "generation": d.Generation, "ordinal": c.Ordinal,
		"labels": labelsOf(&info, l), "path": pathKey(d.Path), "from": firstDay(l.Date), "to": lastDay(l.Date),
		"terms": words(counts), "length": length, "slice": sliceOf(d.chunkID(c.Ordinal)), "stored": true, "data": string(data),
	})
	o.VectorBytes = retrieve.PackVector(vector)
	return o, nil
}

// slices is into how many about equal parts the chunks fall by their ids.
const slicesOfAll = 64

func sliceOf(id string) int {
	n := 0
	for _, c := range []byte(id[:2]) {
		n = 16*n + strings.IndexByte("0123456789abcdef", c)
	}
	return n % slicesOfAll
}

// readChunk reads a chunk's object as a chunk of the document.
func (d *document) readChunk(r row) (retrieve.Candidate, error) {
	var data chunkData
	if err := json.Unmarshal([]byte(r.text("data")), &data); err != nil {
		return retrieve.Candidate{}, fmt.Errorf("a chunk of %s cannot be read: %w", d.ID, err)
	}
	ordinal := r.int("ordinal")
	c := retrieve.Candidate{
		Chunk: ingest.Chunk{
			ID: retrieve.ChunkID(d.ID, ordinal), Document: d.ID, Ordinal: ordinal, Start: data.Start, End: data.End,
			Heading: data.Heading, Anchor: data.Anchor, Page: data.Page, Line: data.Line, Text: data.Text, Tokens: data.Tokens,
		},
		Root: d.Root, Path: d.Path, Title: d.Title, Format: d.Format, Digest: d.Digest, Meta: d.Meta, Vector: r.vector,
	}
	packed, err := base64.RawStdEncoding.DecodeString(data.Terms)
	if err == nil {
		// Those of another analysis are counted again by the index.
		if counts, length, current, wrong := retrieve.UnpackTerms(packed); wrong == nil && current {
			c.Terms, c.Length = counts, length
		}
	}
	return c, err
}

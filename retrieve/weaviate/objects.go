package weaviate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/retrieve"
)

// An object is an object of a collection in JSON: a chunk, the watermark or the tally. Only chunks
// have a vector and terms.
type object struct {
	Class      string         `json:"class"`
	ID         string         `json:"id"`
	Vector     []float32      `json:"vector,omitempty"`
	Properties map[string]any `json:"properties"`
}

// properties are the properties of a collection. Only properties that searches or filters use are
// indexed, since each index costs time for each stored chunk.
var properties = []property{
	{Name: "document", DataType: []string{"int"}, Filterable: true},
	{Name: "generation", DataType: []string{"int"}, Filterable: true},
	{Name: "ordinal", DataType: []string{"int"}},
	{Name: "length", DataType: []string{"int"}}, // number of terms
	{Name: "name", DataType: []string{"text"}},  // id of the document, quoted
	{Name: "labels", DataType: []string{"text[]"}, Tokenization: "field", Filterable: true},
	{Name: "path", DataType: []string{"text"}, Tokenization: "field", Filterable: true},
	{Name: "from", DataType: []string{"int"}, Filterable: true}, // first and last day of the date
	{Name: "to", DataType: []string{"int"}, Filterable: true},
	{Name: "terms", DataType: []string{"text"}, Tokenization: "whitespace", Searchable: true},
	{Name: "packed", DataType: []string{"blob"}}, // the exact vector, or a tally
	{Name: "mark", DataType: []string{"text"}},   // the watermark
}

type property struct {
	Name         string   `json:"name"`
	DataType     []string `json:"dataType"`
	Tokenization string   `json:"tokenization,omitempty"`
	Filterable   bool     `json:"indexFilterable"`
	Searchable   bool     `json:"indexSearchable"`
}

// graphFrom is the smallest number of chunks per shard for which a new collection gets a graph of
// the vectors. Without a graph, storing costs a fifth less, but a search compares all codes.
const graphFrom = 500_000

// schema returns the definition of a collection for the given number of chunks.
func (a Address) schema(collection string, chunks int) map[string]any {
	codes := map[string]any{"enabled": true, "bits": 8, "cache": true, "rescoreLimit": 200}
	kind, settings := "flat", map[string]any{"distance": "cosine", "rq": codes}
	if chunks/a.shards >= graphFrom {
		// These are half of Weaviate's defaults. Storing is faster, and the results are the same,
		// since a search requests many more chunks than it needs.
		kind, settings = "hnsw", map[string]any{"distance": "cosine", "efConstruction": 64, "maxConnections": 16}
	}
	return map[string]any{
		"class": collection, "description": "The search index of a library of Ibid; it can be built again.",
		"vectorizer": "none", "vectorIndexType": kind, "vectorIndexConfig": settings,
		"invertedIndexConfig": map[string]any{"stopwords": map[string]string{"preset": "none"},
			// Weaviate 1.35 swaps k1 and b in the bounds of its blocks, which may then be too low.
			// Equal values near Ibid's find equally good candidates.
			"bm25": map[string]float64{"k1": .9, "b": .9}},
		"replicationConfig": map[string]any{"factor": a.replicas, "asyncEnabled": a.replicas > 1,
			"deletionStrategy": "TimeBasedResolution"},
		"shardingConfig": map[string]any{"desiredCount": a.shards},
		"properties":     properties,
	}
}

// objectsOf returns the objects of a document's chunks. The vectors must have the mark's
// dimensions; if it has none, the first vector sets them.
func (x *Index) objectsOf(c *retrieve.Change, m *mark) (objects []object, err error) {
	own := retrieve.LabelsOf(c.Info.Meta)
	labels, dates := labelsOf(&c.Info, own), dayRange(own.Date)
	for i, chunk := range c.Chunks {
		m.Dims = cmp.Or(m.Dims, len(chunk.Vector))
		if _, err := retrieve.Unit(chunk.Vector, m.Dims); err != nil {
			return nil, err
		}
		counts, length := retrieve.CountTerms(chunk.Text)
		var terms strings.Builder
		for _, t := range counts {
			terms.WriteString(strings.Repeat(indexToken(t.Term)+" ", t.Count))
		}
		hit := retrieve.Hit{Document: c.Document, Generation: c.Revision, Ordinal: i + 1}
		objects = append(objects, object{Class: x.collection, ID: idOf(hit), Vector: chunk.Vector, Properties: map[string]any{
			"document": c.Document, "generation": c.Revision, "ordinal": i + 1, "length": length, "name": strconv.QuoteToASCII(c.Info.ID),
			"labels": labels, "path": escape("/" + c.Info.Path), "from": dates[0], "to": dates[1], "terms": terms.String(),
			"packed": base64.StdEncoding.EncodeToString(retrieve.PackVector(chunk.Vector)),
		}})
	}
	return objects, nil
}

// Compare describes the first difference between a document and its objects in the collection, or
// returns "".
func (x *Index) Compare(ctx context.Context, c *retrieve.Change) (string, error) {
	objects, err := x.objectsOf(c, &mark{})
	for i := range objects {
		var stored object
		err := x.client.call(ctx, http.MethodGet, objectPath(x.collection, objects[i].ID)+"&include=vector", nil, &stored)
		if noObject(err) {
			return fmt.Sprintf("the search index lacks its chunk %d", i+1), nil
		}
		if err != nil {
			return "", err
		}
		for _, p := range properties {
			have, _ := json.Marshal(stored.Properties[p.Name]) // texts and numbers
			want, _ := json.Marshal(objects[i].Properties[p.Name])
			if string(have) != string(want) {
				return fmt.Sprintf("the field %q of its chunk %d differs in the search index", p.Name, i+1), nil
			}
		}
		// Weaviate may have scaled the vector, which changes its rounding.
		if len(stored.Vector) != len(objects[i].Vector) || retrieve.Cosine(stored.Vector, objects[i].Vector) < .99 {
			return fmt.Sprintf("the vector of its chunk %d differs in the search index", i+1), nil
		}
	}
	return "", err
}

// idOf returns the id of the object of a chunk: a UUID of version 8.
func idOf(h retrieve.Hit) string {
	var b [24]byte
	binary.BigEndian.PutUint64(b[:], uint64(h.Document))
	binary.BigEndian.PutUint64(b[8:], uint64(h.Generation))
	binary.BigEndian.PutUint64(b[16:], uint64(h.Ordinal))
	sum := sha256.Sum256(b[:])
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// labelsOf returns the labels of a document that filters compare, such as "tag=sea".
func labelsOf(d *retrieve.DocumentInfo, l retrieve.Labels) []string {
	labels := []string{"collection=" + d.Collection, "root=" + d.Root, "format=" + d.Format, "document=" + d.ID}
	for _, tag := range l.Tags {
		labels = append(labels, "tag="+tag)
	}
	for _, word := range l.Authors {
		labels = append(labels, "author="+word)
	}
	for _, language := range l.Languages {
		for i, c := range language + "-" {
			if c == '-' { // a filter by "de" matches "de-AT"
				labels = append(labels, "language="+string(language[:i]))
			}
		}
	}
	for i := range labels {
		labels[i] = indexToken(labels[i])
	}
	return labels
}

// maxToken is the greatest length of an entry of an inverted index.
const maxToken = 200

// indexToken returns the entry of a text in an inverted index. It has no spaces, and a long text is
// replaced by its digest.
func indexToken(text string) string {
	if len(text) > maxToken {
		sum := sha256.Sum256([]byte(text))
		return "sha256=" + hex.EncodeToString(sum[:])
	}
	return escape(text)
}

// escape replaces bytes by their hexadecimal code if Weaviate would split or trim a text at them,
// treat them as wildcards, or not return them. A prefix of a text becomes a prefix of the result.
func escape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n <= 1 || unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("%*?\\\"", r) {
			for _, c := range []byte(text[i : i+n]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String()
}

// dayRange returns the first and the last day of a date as numbers. For an empty date it returns
// noDay and 0, which no filter matches.
func dayRange(d retrieve.Date) [2]int {
	if d == "" {
		return [2]int{noDay, 0}
	}
	return [2]int{dayNumber(d, "00000000"), dayNumber(d, "99999999")}
}

// noDay is later than every day.
const noDay = 1_000_000_000

// dayNumber returns a date as a number, such as 20240331. Missing parts come from rest.
func dayNumber(d retrieve.Date, rest string) int {
	digits := strings.ReplaceAll(string(d), "-", "")
	n, err := strconv.Atoi(digits + rest[min(len(digits), len(rest)):])
	if err != nil {
		return noDay
	}
	return n
}

// A where is a filter of Weaviate. The REST interface reads it as JSON, and GraphQL in the form
// that [where.String] returns.
type where struct {
	Operator    string   `json:"operator"`
	Path        []string `json:"path,omitempty"`
	Operands    []where  `json:"operands,omitempty"`
	ValueText   *string  `json:"valueText,omitempty"`
	ValueInt    *int64   `json:"valueInt,omitempty"`
	ValueInts   []int64  `json:"valueIntArray,omitempty"`
	ValueString []string `json:"valueTextArray,omitempty"`
}

func (w where) String() string {
	b, _ := json.Marshal(w) // texts and numbers never fail
	return keysOf.ReplaceAllString(operatorOf.ReplaceAllString(string(b), "operator:$1"), "$1:")
}

// These patterns match names and operators, which have no quotation marks in GraphQL.
var (
	operatorOf = regexp.MustCompile(`"operator":"(\w+)"`)
	keysOf     = regexp.MustCompile(`"(\w+?)(?:Array)?":`)
)

func number(path, operator string, value int64) where {
	return where{Operator: operator, Path: []string{path}, ValueInt: &value}
}
func anyOf(path string, values []string) where {
	return where{Operator: "ContainsAny", Path: []string{path}, ValueString: values}
}

// allOf joins filters, or returns nil for no filters.
func allOf(of ...where) *where {
	switch len(of) {
	case 0:
		return nil
	case 1:
		return &of[0]
	}
	return &where{Operator: "And", Operands: of}
}

// conditions returns the conditions of a filter; none reports that the filter matches nothing.
func conditions(f retrieve.Filter) (parts []where, none bool) {
	oneOf := func(name string, values []string) {
		if len(values) > 0 {
			labels := make([]string, len(values))
			for i, v := range values {
				labels[i] = indexToken(name + "=" + v)
			}
			parts = append(parts, anyOf("labels", labels))
		}
	}
	has := func(name, value string) {
		if value != "" {
			oneOf(name, []string{value})
		}
	}
	has("collection", f.Collection)
	has("root", f.Root)
	has("format", f.Format)
	has("document", f.Document)
	has("language", string(f.Language))
	oneOf("collection", f.Collections)
	oneOf("document", f.Documents)
	for _, tag := range f.Tags {
		tags := retrieve.LabelsOf(map[string]string{"tags": tag}).Tags
		if len(tags) != 1 {
			return nil, true // no tag of a document is empty or has a comma
		}
		has("tag", tags[0])
	}
	if f.Author != "" {
		words := retrieve.LabelsOf(map[string]string{"author": f.Author}).Authors
		for _, word := range words {
			has("author", word)
		}
		if len(words) == 0 {
			return nil, true
		}
	}
	if f.Since != "" {
		parts = append(parts, number("to", "GreaterThanEqual", int64(dayRange(f.Since)[0])))
	}
	if f.Until != "" {
		parts = append(parts, number("from", "LessThanEqual", int64(dayRange(f.Until)[1])))
	}
	if f.PathPrefix != "" {
		prefix := escape("/"+f.PathPrefix) + "*"
		parts = append(parts, where{Operator: "Like", Path: []string{"path"}, ValueText: &prefix})
	}
	return parts, false
}

package rewrite

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// listed is a document in one of the JSON forms that programs use: Ibid's, LangChain's
// (plain or serialized), or LlamaIndex's node, with or without a score.
type listed struct {
	Document
	ID     any     `json:"id"` // LangChain's is a string
	Node   *listed `json:"node"`
	Kwargs *listed `json:"kwargs"`
}

// ReadDocuments reads a JSON list of documents. Source and title are fields of a document or in
// its metadata, which becomes [Document.Metadata]. The source is in the metadata under key; if
// key is empty or missing there, under source, url, file_path or file_name. An id that is a
// number must be the document's position in the list, by which the text cites it; all documents
// after it must have such an id too.
func ReadDocuments(data []byte, key string) ([]Document, error) {
	var list []listed
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(data, &list); {
	case len(data) == 0:
		return nil, errors.New("it is missing")
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("%s is a JSON %s", cmp.Or(wrong.Field, "it"), wrong.Value)
	case err != nil:
		return nil, err
	}
	if list == nil {
		return nil, errors.New("it is null")
	}
	documents := make([]Document, len(list))
	numbered := false
	for i, l := range list {
		if inner := cmp.Or(l.Node, l.Kwargs); inner != nil {
			l = *inner
		}
		id, _ := l.ID.(float64)
		if numbered = numbered || id != 0; numbered && id != float64(i+1) {
			return nil, fmt.Errorf("document %d has the id %v: %w", i+1, id, errPlace)
		}
		documents[i] = l.document(key)
	}
	return documents, nil
}

var errPlace = errors.New("a document's id must be its position in the list, by which the text cites it; " +
	"reorder the list, or leave all ids out")

func (l listed) document(key string) Document {
	d := l.Document
	text := func(key string) string {
		s, _ := d.Metadata[key].(string)
		return s
	}
	if key != "" {
		d.Source = cmp.Or(text(key), d.Source)
	}
	d.Source = cmp.Or(d.Source, text("source"), text("url"), text("file_path"), text("file_name"))
	d.Title = cmp.Or(d.Title, text("title"))
	return d
}

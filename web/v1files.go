package web

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"ibid/retrieve"
)

// A v1File is a document in the form of the OpenAI API.
type v1File struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int    `json:"bytes"`      // of the extracted text
	CreatedAt int64  `json:"created_at"` // 0: unknown
	Filename  string `json:"filename"`   // the document's id
	Purpose   string `json:"purpose"`    // "assistants"
	Status    string `json:"status"`     // "processed"
}

// v1Files is the reply of GET /v1/files.
type v1Files struct {
	Object  string   `json:"object"`
	Data    []v1File `json:"data"`
	FirstID *string  `json:"first_id"`
	LastID  *string  `json:"last_id"`
	HasMore bool     `json:"has_more"`
}

// fileID returns a document's id in a form that needs no escaping in an address.
func fileID(document string) string {
	return "file-" + base64.RawURLEncoding.EncodeToString([]byte(document))
}

// documentOf is the inverse of fileID. It returns "" for an invalid id.
func documentOf(id string) string {
	name, _ := strings.CutPrefix(id, "file-")
	document, err := base64.RawURLEncoding.DecodeString(name)
	if err != nil || fileID(string(document)) != id {
		return ""
	}
	return string(document)
}

// maxFiles is the maximum, and the default, number of files in one list.
const maxFiles = 10_000

// listFiles lists the documents by id, with ?order=desc in reverse order: at most ?limit=
// after the file in ?after=. All files have the same purpose.
func (l *v1Library) listFiles(c echo.Context) error {
	limit, err := limitOf(c, maxFiles, 1, maxFiles)
	if err != nil {
		return err
	}
	after, order, purpose := "", c.QueryParam("order"), c.QueryParam("purpose")
	if c.QueryParams().Has("order") && order != "asc" && order != "desc" {
		return badValue("order", "order is %.40q: use asc or desc", order)
	}
	if id := c.QueryParam("after"); id != "" {
		if after = documentOf(id); after == "" {
			return fileNotFound(id).withField("after")
		}
	}
	all, err := l.catalog.Documents(c.Request().Context(), retrieve.Filter{})
	if err != nil {
		return fmt.Errorf("listing the documents: %w", err)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(d retrieve.DocumentInfo) bool {
		return purpose != "" && purpose != "assistants" || order == "desc" && after != "" && d.ID >= after
	})
	if order == "desc" {
		slices.Reverse(all)
		after = ""
	}
	list := v1Files{Object: "list", Data: []v1File{}}
	all, list.HasMore = pageAfter(all, after, limit)
	for _, d := range all {
		list.Data = append(list.Data, fileOf(d.ID, d.Bytes))
	}
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
	}
	return reply(c, http.StatusOK, list)
}

func fileOf(document string, bytes int) v1File {
	return v1File{fileID(document), "file", bytes, 0, document, "assistants", "processed"}
}

func fileNotFound(id string) *Problem {
	return problem(http.StatusNotFound, "not_found",
		"there is no file %.60q: GET /v1/files lists them, and GET /api/documents/ID has their text", id)
}

// showFile replies with one document.
func (l *v1Library) showFile(c echo.Context) error {
	d, err := l.catalog.Document(c.Request().Context(), documentOf(c.Param("id")))
	switch {
	case errors.Is(err, retrieve.ErrNotFound):
		return fileNotFound(c.Param("id")).withField("file_id")
	case err != nil:
		return fmt.Errorf("reading a document: %w", err)
	}
	return reply(c, http.StatusOK, fileOf(d.ID, len(d.Text)))
}

// A vectorStore is a collection in the form of the OpenAI API.
type vectorStore struct {
	ID        string      `json:"id"` // the name of the collection
	Object    string      `json:"object"`
	CreatedAt int64       `json:"created_at"` // 0: unknown
	Name      string      `json:"name"`
	Bytes     int         `json:"usage_bytes"` // of the extracted text
	Status    string      `json:"status"`      // "completed"
	Files     vectorFiles `json:"file_counts"`
}

type vectorFiles struct {
	Completed  int `json:"completed"`
	InProgress int `json:"in_progress"` // 0
	Failed     int `json:"failed"`      // 0
	Cancelled  int `json:"cancelled"`   // 0
	Total      int `json:"total"`
}

// vectorStoreList is the reply of GET /v1/vector_stores. It is always complete.
type vectorStoreList struct {
	Object  string        `json:"object"`
	Data    []vectorStore `json:"data"`
	HasMore bool          `json:"has_more"` // false
}

func (l *v1Library) stores(c echo.Context) ([]vectorStore, error) {
	all, err := l.catalog.collections(c.Request().Context())
	list := []vectorStore{}
	for _, in := range all.Collections {
		list = append(list, vectorStore{ID: in.Name, Object: "vector_store", Name: in.Name, Bytes: in.Bytes, Status: "completed",
			Files: vectorFiles{Completed: in.Documents, Total: in.Documents}})
	}
	return list, err
}

func (l *v1Library) listStores(c echo.Context) error {
	list, err := l.stores(c)
	return sendValue(c, http.StatusOK, vectorStoreList{"list", list, false}, err)
}

func (l *v1Library) showStore(c echo.Context) error {
	list, err := l.stores(c)
	if err != nil {
		return err
	}
	id, err := url.PathUnescape(c.Param("id"))
	i := slices.IndexFunc(list, func(s vectorStore) bool { return err == nil && s.ID == id })
	if i < 0 {
		return storeNotFound(c.Param("id"))
	}
	return reply(c, http.StatusOK, list[i])
}

// storeOf returns the collection named by the request's file_search tools, or collection if
// they name none.
func (l *v1Library) storeOf(c echo.Context, tools []v1Tool, collection string) (string, error) {
	for _, t := range tools {
		if t.Type != "file_search" {
			continue
		}
		if len(t.Filters) > 0 && string(t.Filters) != "null" {
			return "", unsupported("tools", noFilters)
		}
		for _, store := range t.Stores {
			if collection != "" && store != collection {
				return "", badValue("tools", "file_search names the vector store %.200q and the collection %.200q: name one, or none to search all",
					store, collection)
			}
			if err := l.checkStore(c, store); err != nil {
				return "", err
			}
			collection = store
		}
	}
	return collection, nil
}

const noFilters = "filters are not supported here: omit them, or use POST /api/search, which has a filter"

// vectorSearchRequest is the body of POST /v1/vector_stores/COLLECTION/search. Queries are
// never rewritten.
type vectorSearchRequest struct {
	Query   stringList      `json:"query"`
	Filters json.RawMessage `json:"filters"`         // not supported
	Most    integer         `json:"max_num_results"` // default 10
	Ranking rankingRequest  `json:"ranking_options"`
}

type rankingRequest struct {
	Least float64 `json:"score_threshold"`
}

// stringList is a text or a list of texts in JSON.
type stringList []string

func (s *stringList) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		b = slices.Concat([]byte("["), b, []byte("]"))
	}
	if json.Unmarshal(b, (*[]string)(s)) != nil {
		return badValue("question", "the question must be a text, or a list of texts")
	}
	return nil
}

// vectorSearchResult is the reply of POST /v1/vector_stores/COLLECTION/search.
type vectorSearchResult struct {
	Object   string        `json:"object"`
	Query    []string      `json:"search_query"`
	Data     []vectorFound `json:"data"`
	HasMore  bool          `json:"has_more"`  // false
	NextPage *string       `json:"next_page"` // null
}

// vectorFound is a passage in the form of the OpenAI API.
type vectorFound struct {
	FileID     string           `json:"file_id"`
	Filename   string           `json:"filename"`
	Score      float64          `json:"score"` // 0 to 1
	Attributes vectorAttributes `json:"attributes"`
	Content    []foundText      `json:"content"` // the text
}

type (
	foundText struct {
		Type string `json:"type"` // "text"
		Text string `json:"text"`
	}
	// vectorAttributes are the place of a passage; offsets are bytes of the document's text.
	vectorAttributes struct {
		Title   string `json:"title"`
		Heading string `json:"heading"`
		Page    int    `json:"page"` // 0: none
		Start   int    `json:"start"`
		End     int    `json:"end"`
		Link    string `json:"link"`
	}
)

// searchVectors finds passages in a collection.
func (l *v1Library) searchVectors(c echo.Context) error {
	store, err := url.PathUnescape(c.Param("id"))
	if err != nil {
		return storeNotFound(c.Param("id"))
	}
	r := vectorSearchRequest{Most: 10}
	if _, err := decode(c, &r); err != nil {
		return renameField("query", err)
	}
	if len(r.Filters) > 0 && string(r.Filters) != "null" {
		return unsupported("filters", noFilters)
	}
	if err := l.checkStore(c, store); err != nil {
		return err
	}
	if r.Most < 1 || r.Most > 50 {
		return badValue("max_num_results", "max_num_results is %d: give 1 to 50", r.Most)
	}
	search := searchRequest{Question: strings.Join(r.Query, "\n"), TopK: r.Most, Collection: store}
	found, err := l.catalog.findPassages(c.Request().Context(), search)
	if err != nil {
		return renameField("query", err)
	}
	out := vectorSearchResult{Object: "vector_store.search_results.page", Query: append([]string{}, r.Query...), Data: []vectorFound{}}
	for _, p := range found.Passages {
		if p.Score < r.Ranking.Least {
			continue
		}
		out.Data = append(out.Data, vectorFound{fileID(p.Document), p.Document, min(1, max(0, p.Score)), vectorAttributes{
			p.Title, p.Heading, p.Page, p.Start, p.End, Link(l.address.base(c), p.Document, p.Start, p.End)}, []foundText{{"text", p.Text}}})
	}
	return reply(c, http.StatusOK, out)
}

// checkStore fails unless the collection exists and the caller may see it.
func (l *v1Library) checkStore(c echo.Context, name string) error {
	err := l.checkCollection(c, name)
	if name == "" || isProblem(err, "model_not_found") {
		return storeNotFound(name)
	}
	return err
}

func storeNotFound(name string) *Problem {
	return problem(http.StatusNotFound, "not_found", "there is no vector store %.200q here: its id is the name of a collection, and "+
		"GET /v1/vector_stores lists those", name).withField("vector_store_id")
}

package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"ibid/ingest"
	"ibid/retrieve"
)

// A catalog is the library with information about its contents.
type catalog struct {
	Library
	Searcher
	indexing func() Indexing
	troubles func() []ingest.Change
	uploads  string        // collection of uploaded documents; empty if there are no uploads
	folders  UploadFolders // nil: nothing can be added
	keys     *keyring      // nil if no keys guard the server
}

// collectionList is the reply of GET /api/collections.
type collectionList struct {
	Collections []collection `json:"collections"`
}

// A collection is a named part of the library: all folders that were ingested with
// --collection NAME.
type collection struct {
	Name      string           `json:"collection"`
	Documents int              `json:"documents"`
	Chunks    int              `json:"chunks"`
	Bytes     int              `json:"bytes"` // of extracted text
	Roots     []collectionRoot `json:"roots"`
	// Uploads reports whether uploaded documents are added to it.
	Uploads bool `json:"uploads"`
}

// A collectionRoot is a folder of a collection.
type collectionRoot struct {
	Name      string `json:"root"`
	Documents int    `json:"documents"`
	// Uploads reports whether its documents were uploaded, and so can be deleted.
	Uploads bool `json:"uploads"`
}

// showCollections lists the collections by name, with their contents.
func (l *catalog) showCollections(c echo.Context) error {
	list, err := l.collections(c.Request().Context())
	return sendValue(c, http.StatusOK, list, err)
}

func (l *catalog) collections(ctx context.Context) (collectionList, error) {
	all, err := l.Documents(ctx, retrieve.Filter{})
	if err != nil {
		return collectionList{}, fmt.Errorf("listing the documents: %w", err)
	}
	list := collectionList{Collections: []collection{}}
	add := func(d retrieve.DocumentInfo) *collection {
		at, ok := slices.BinarySearchFunc(list.Collections, d.Collection,
			func(c collection, name string) int { return cmp.Compare(c.Name, name) })
		if !ok {
			list.Collections = slices.Insert(list.Collections, at, collection{Name: d.Collection, Roots: []collectionRoot{}})
		}
		in := &list.Collections[at]
		in.Chunks, in.Bytes = in.Chunks+d.Chunks, in.Bytes+d.Bytes
		return in
	}
	for _, d := range all { // sorted by id, so the documents of a root are adjacent
		in := add(d)
		in.Documents++
		if n := len(in.Roots); n == 0 || in.Roots[n-1].Name != d.Root {
			in.Roots = append(in.Roots, collectionRoot{Name: d.Root})
		}
		in.Roots[len(in.Roots)-1].Documents++
	}
	if l.folders != nil {
		made, err := l.folders.Roots(ctx)
		if err != nil {
			return list, fmt.Errorf("listing the collections with uploads: %w", err)
		}
		for _, r := range made {
			add(retrieve.DocumentInfo{Collection: r.Collection}).markUploads(r.Name)
		}
	}
	if reached, err := l.maySee(ctx, l.uploads); err != nil || !reached || l.uploads == "" {
		return list, err
	}
	add(retrieve.DocumentInfo{Collection: l.uploads}).markUploads(uploadsRoot)
	return list, nil
}

// markUploads marks a root of the collection as uploads. The root may be empty.
func (c *collection) markUploads(root string) {
	c.Uploads = true
	i := slices.IndexFunc(c.Roots, func(r collectionRoot) bool { return r.Name == root })
	if i < 0 {
		i, c.Roots = len(c.Roots), append(c.Roots, collectionRoot{Name: root})
	}
	c.Roots[i].Uploads = true
}

// namedCollection is the body of POST /api/collections and PATCH /api/collections/NAME.
type namedCollection struct {
	Name string `json:"collection"`
}

// makeCollection makes an empty collection for uploads.
func (l *catalog) makeCollection(c echo.Context, r namedCollection) error {
	var err error
	if r.Name != l.uploads {
		_, err = l.folders.CollectionUploads(c.Request().Context(), r.Name)
	}
	return sendValue(c, http.StatusCreated, r, collectionProblem(r.Name, err))
}

func (l *catalog) renameCollection(c echo.Context, r namedCollection) error {
	err := l.changeCollection(c, func(ctx context.Context, from string) error { return l.folders.Rename(ctx, from, r.Name) })
	return sendValue(c, http.StatusOK, r, err)
}

func (l *catalog) deleteCollection(c echo.Context) error {
	return sendNoContent(c, l.changeCollection(c, func(ctx context.Context, name string) error {
		return l.folders.Delete(ctx, name, c.QueryParam("answers") == "keep")
	}))
}

// changeCollection changes the collection in an address. Then it refreshes the keys, since a
// new collection may get the name of an old one.
func (l *catalog) changeCollection(c echo.Context, change func(ctx context.Context, name string) error) error {
	name, err := url.PathUnescape(c.Param("id"))
	if err != nil {
		return collectionProblem(c.Param("id"), fs.ErrNotExist)
	}
	err = change(context.WithoutCancel(c.Request().Context()), name)
	if err == nil && l.keys != nil {
		err = l.keys.refresh(c.Request().Context(), 0)
	}
	return collectionProblem(name, err)
}

func collectionProblem(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return problem(http.StatusNotFound, "collection_not_found", "there is no collection %.200q for uploads: those of the server itself "+
			"and of its folders cannot be renamed or deleted here; 'ibid forget' removes a folder", name).withCause(err)
	}
	return err
}

// document returns a document by the id in a request. An error names field if that is not
// empty.
func (l *catalog) document(ctx context.Context, id, field string) (*ingest.Document, error) {
	doc, err := l.Document(ctx, id)
	if errors.Is(err, retrieve.ErrNotFound) {
		return nil, problem(http.StatusNotFound, "document_not_found",
			"there is no document %.200q in the library: it may have been renamed or removed since", id).withField(field).withCause(err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q from the library: %w", id, err)
	}
	return doc, nil
}

// maySee reports whether the caller may see a collection; "" means all collections.
func (l *catalog) maySee(ctx context.Context, collection string) (bool, error) {
	if l.keys == nil {
		return true, nil
	}
	collections, err := visibleCollections(ctx)
	return err == nil && (len(collections) == 0 || slices.Contains(collections, collection)), err
}

// requireDocuments fails if the library is empty.
func (l *catalog) requireDocuments(ctx context.Context) error {
	found, err := l.Holds(ctx, retrieve.Filter{})
	if err != nil {
		return fmt.Errorf("checking the library: %w", err)
	}
	i := l.indexing()
	switch {
	case found:
		return nil
	case !i.Ready:
		return problem(http.StatusServiceUnavailable, "not_ready", "the documents are still being read, %d of %d: ask again in a moment",
			i.Done, i.Total)
	}
	return problem(http.StatusNotFound, "empty_library", "the library is empty: run 'ibid ingest FOLDER' and ask again")
}

// collectionFilter returns f restricted to a collection that was named outside it. It fails
// if f names a different one.
func (l *catalog) collectionFilter(ctx context.Context, f retrieve.Filter, collection string) (retrieve.Filter, error) {
	for _, name := range []string{f.Collection, collection} {
		if err := l.checkCollection(ctx, name); err != nil {
			return f, err
		}
	}
	if collection != "" && f.Collection != "" && f.Collection != collection {
		return f, invalidField("collection", "two_collections", "the collection is %.200q, and the filter's collection is %.200q: give one of "+
			"them", collection, f.Collection)
	}
	f.Collection = cmp.Or(f.Collection, collection)
	return f, nil
}

// checkCollection fails if a collection has no documents, which is most likely a spelling
// mistake, unless the library is empty or documents are still being read.
func (l *catalog) checkCollection(ctx context.Context, name string) error {
	if name == "" || !l.indexing().Ready {
		return nil
	}
	for _, in := range []retrieve.Filter{{Collection: name}, {}} {
		found, err := l.Holds(ctx, in)
		if err != nil {
			return fmt.Errorf("checking the collection: %w", err)
		}
		if found && in.Collection != "" {
			return nil
		}
		if found {
			return problem(http.StatusNotFound, "unknown_collection",
				"there is no document in the collection %.200q: check its name, or omit it to search all collections", name).withField("collection")
		}
	}
	return nil
}

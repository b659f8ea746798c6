package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"ibid/ingest"
	"ibid/retrieve"
)

// listedCollections is the reply of GET /api/collections.
type listedCollections struct {
	Collections []collection `json:"collections"`
}

// A collection is a named part of the library: all folders that were ingested
// with --collection NAME.
type collection struct {
	Name      string           `json:"collection"`
	Documents int              `json:"documents"`
	Chunks    int              `json:"chunks"`
	Bytes     int              `json:"bytes"` // of extracted text
	Roots     []collectionRoot `json:"roots"`
	// Uploads says that what is sent goes into it.
	Uploads bool `json:"uploads"`
}

// A collectionRoot is a folder of a collection.
type collectionRoot struct {
	Name      string `json:"root"`
	Documents int    `json:"documents"`
}

// collections lists the collections by name, with what is stored of each.
func (s *server) collections(c echo.Context) error {
	list, err := s.listCollections(c.Request().Context())
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, list)
}

func (s *server) listCollections(ctx context.Context) (listedCollections, error) {
	all, err := s.Library.Documents(ctx, retrieve.Filter{})
	if err != nil {
		return listedCollections{}, fmt.Errorf("listing the documents: %w", err)
	}
	list := listedCollections{Collections: []collection{}}
	find := func(name string) *collection {
		at, ok := slices.BinarySearchFunc(list.Collections, name, func(c collection, name string) int { return cmp.Compare(c.Name, name) })
		if !ok {
			list.Collections = slices.Insert(list.Collections, at, collection{Name: name, Roots: []collectionRoot{}})
		}
		return &list.Collections[at]
	}
	for _, d := range all {
		in := find(d.Collection)
		in.Documents, in.Chunks, in.Bytes = in.Documents+1, in.Chunks+d.Chunks, in.Bytes+d.Bytes
		at, ok := slices.BinarySearchFunc(in.Roots, d.Root, func(r collectionRoot, name string) int { return cmp.Compare(r.Name, name) })
		if !ok {
			in.Roots = slices.Insert(in.Roots, at, collectionRoot{Name: d.Root})
		}
		in.Roots[at].Documents++
	}
	if s.Uploads != nil {
		into := cmp.Or(s.UploadCollection, ingest.DefaultCollection)
		reached, err := s.reaches(ctx, into)
		if err != nil {
			return list, err
		}
		if reached {
			find(into).Uploads = true
		}
	}
	return list, nil
}

// reaches says whether a context may see a collection.
func (s *server) reaches(ctx context.Context, collection string) (bool, error) {
	if s.keys == nil {
		return true, nil
	}
	collections, err := reach(ctx)
	return err == nil && (len(collections) == 0 || slices.Contains(collections, collection)), err
}

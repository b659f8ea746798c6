package web

import (
	"cmp"
	_ "embed" // the document
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// openapiDocument describes every route. TestOpenAPI writes it from the routes, the
// types of requests and replies with their comments, and a table of descriptions:
// go test ./web -run TestOpenAPI -update.
//
//go:embed openapi.json
var openapiDocument []byte

// sendOpenAPI replies with the description of the API.
func sendOpenAPI(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	c.Response().Header().Set(echo.HeaderCacheControl, "no-cache")
	return serveContent(c, replyTimeout, openapiDocument)
}

// The parts of an OpenAPI document that its page shows.
type (
	apiDocument struct {
		Tags       []apiTag                           `json:"tags"`
		Paths      map[string]map[string]apiOperation `json:"paths"`
		Components struct {
			Schemas map[string]apiSchema `json:"schemas"`
		} `json:"components"`
		Codes []apiCode `json:"x-codes"`
	}
	apiTag struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	apiOperation struct {
		Method, Path string
		Summary      string   `json:"summary"`
		Description  string   `json:"description"`
		Tags         []string `json:"tags"`
		Access       string   `json:"x-access"`
		Parameters   []struct {
			Name        string `json:"name"`
			In          string `json:"in"`
			Description string `json:"description"`
		} `json:"parameters"`
		RequestBody struct {
			Content map[string]apiContent `json:"content"`
		} `json:"requestBody"`
		Responses map[string]struct {
			Description string                `json:"description"`
			Content     map[string]apiContent `json:"content"`
		} `json:"responses"`
	}
	apiContent struct {
		Schema apiSchema            `json:"schema"`
		Events map[string]apiSchema `json:"x-events"`
	}
	apiSchema struct {
		Ref         string               `json:"$ref"`
		Type        string               `json:"type"`
		Format      string               `json:"format"`
		Description string               `json:"description"`
		Enum        []any                `json:"enum"`
		Items       *apiSchema           `json:"items"`
		AnyOf       []apiSchema          `json:"anyOf"`
		Required    []string             `json:"required"`
		Properties  map[string]apiSchema `json:"properties"`
	}
	apiCode struct {
		Code        string `json:"code"`
		Status      []int  `json:"status"`
		Description string `json:"description"`
	}
)

// Name is the name of the schema that is referenced; empty without a reference.
func (s apiSchema) Name() string {
	if s.Ref != "" {
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	}
	if s.Items != nil {
		return s.Items.Name()
	}
	return ""
}

// Words describes a value.
func (s apiSchema) Words() string {
	switch {
	case s.Ref != "":
		return s.Name()
	case s.Items != nil:
		return "list of " + s.Items.Words()
	case len(s.AnyOf) > 0:
		words := make([]string, len(s.AnyOf))
		for i, one := range s.AnyOf {
			words[i] = one.Words()
		}
		return strings.Join(words, " or ")
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i] = fmt.Sprintf("%q", v)
			if n, ok := v.(float64); ok {
				words[i] = fmt.Sprint(n)
			}
		}
		return strings.Join(words, ", ")
	}
	return cmp.Or(s.Format, s.Type, "any value")
}

// Needs reports whether a member is required.
func (s apiSchema) Needs(member string) bool { return slices.Contains(s.Required, member) }

// docsPage is the description of the API for people.
type docsPage struct {
	frame
	pages   *pages
	Groups  []docsGroup
	Schemas map[string]apiSchema
	Codes   []apiCode
}

type docsGroup struct {
	apiTag
	Operations []apiOperation
}

// loadDocs makes the page's groups from the document.
func loadDocs(pages *pages) (docsPage, error) {
	var d apiDocument
	if err := json.Unmarshal(openapiDocument, &d); err != nil {
		return docsPage{}, fmt.Errorf("reading the description of the API: %w", err)
	}
	p := docsPage{frame: pages.frame("API"), pages: pages, Schemas: d.Components.Schemas, Codes: d.Codes}
	for _, tag := range d.Tags {
		g := docsGroup{apiTag: tag}
		for path, methods := range d.Paths {
			for method, op := range methods {
				if slices.Contains(op.Tags, tag.Name) {
					op.Method, op.Path = strings.ToUpper(method), path
					g.Operations = append(g.Operations, op)
				}
			}
		}
		slices.SortFunc(g.Operations, func(a, b apiOperation) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		})
		p.Groups = append(p.Groups, g)
	}
	return p, nil
}

// show replies with the description of the API as a page. It needs no JavaScript.
func (p docsPage) show(c echo.Context) error { return p.pages.send(c, http.StatusOK, "docs", p) }

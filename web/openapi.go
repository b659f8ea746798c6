package web

import (
	"cmp"
	_ "embed" // the document
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
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
	return serveContent(c, openapiDocument)
}

// schemaTarget is the name of the schema that a value's schema refers to; empty for none.
func schemaTarget(schema map[string]any) string {
	if ref, ok := schema["$ref"].(string); ok {
		return path.Base(ref)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return schemaTarget(items)
	}
	return ""
}

// schemaWords describes a value.
func schemaWords(schema map[string]any) string {
	list := func(values any, separator string, words func(any) string) string {
		var all []string
		for _, v := range values.([]any) {
			all = append(all, words(v))
		}
		return strings.Join(all, separator)
	}
	switch {
	case schema["$ref"] != nil:
		return schemaTarget(schema)
	case schema["items"] != nil:
		return "list of " + schemaWords(schema["items"].(map[string]any))
	case schema["anyOf"] != nil:
		return list(schema["anyOf"], " or ", func(v any) string { return schemaWords(v.(map[string]any)) })
	case schema["enum"] != nil:
		return list(schema["enum"], ", ", func(v any) string {
			if s, ok := v.(string); ok {
				return strconv.Quote(s)
			}
			return fmt.Sprint(v)
		})
	}
	format, _ := schema["format"].(string)
	kind, _ := schema["type"].(string)
	return cmp.Or(format, kind, "any value")
}

// schemaRequires reports whether a member is required.
func schemaRequires(schema map[string]any, member string) bool {
	required, _ := schema["required"].([]any)
	return slices.Contains(required, any(member))
}

// docsPage is the description of the API for people. It needs no JavaScript.
type docsPage struct {
	frame
	API map[string]any // the OpenAPI document
}

func (p *pages) showDocs(c echo.Context) error {
	page, err := p.docs()
	if err != nil {
		return err
	}
	return sendPage(c, http.StatusOK, page)
}

func (p *pages) renderDocs() ([]byte, error) {
	page := docsPage{frame: p.frame("API")}
	if err := json.Unmarshal(openapiDocument, &page.API); err != nil {
		return nil, fmt.Errorf("reading the description of the API: %w", err)
	}
	return p.render("docs", page)
}

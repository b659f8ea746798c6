// Package web serves Ibid over HTTP: the page, the JSON API with its server-sent events, the
// OpenAI API, the Model Context Protocol, and the viewer that citations link to.
//
// [New] returns an [http.Handler]; it opens no port and reads no environment variables.
// [NewHTTPServer] wraps the handler in a server with time limits for an open network.
// [ServeMCP] serves the Model Context Protocol without HTTP.
//
// Documents and models are untrusted: their text is sent as JSON or through html/template,
// never as markup, and the Content-Security-Policy of every reply forbids content from other
// servers.
package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// newRouter returns the router with its middleware.
func (h *handlers) newRouter(o *Options, guard *keyGuard, pages *pages) (*echo.Echo, error) {
	crossOrigin, err := guard.address.refuseCrossOrigin()
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = ipExtractor(o.TrustProxies)
	e.HTTPErrorHandler = errorReplies{pages, h.key}.handle
	// Pre also applies to unknown routes.
	e.Pre(measure(o.Metrics, guard.access), guard.address.stripPrefix, requestID, setHeaders, logRequests(o.Logger, o.Metrics),
		recoverPanics(o.Logger), dropSlowSenders,
		hostCheck{guard.address, o.Addr, o.AllowHosts}.check, guard.admitOrigins(crossOrigin))
	e.Use(guard.admit)
	for _, r := range h.routes(o.UploadFolders != nil, o.Keys != nil) {
		guard.access[r.method+" "+r.path] = r.access
		e.Add(r.method, r.path, r.handler)
		if r.method == http.MethodGet {
			guard.access["HEAD "+r.path] = r.access
			e.Add(http.MethodHead, r.path, r.handler)
		}
	}
	return e, nil
}

// A route is one line of the table of routes.
type route struct {
	method, path string
	access       access // needed if keys guard the server
	handler      echo.HandlerFunc
}

// routes returns the table of all routes. The routes for uploads and for keys are optional.
// HEAD is handled as GET.
func (h *handlers) routes(uploads, keys bool) []route {
	limited, counted := h.limiter.limitHandler, h.catalog.withCodePoints
	table := []route{
		{"GET", "/", readers, compressReplies(h.home.show)},
		{"GET", staticRoute, public, compressReplies(serveStatic)},
		{"GET", "/documents", readers, h.documents.listPage},
		{"GET", "/documents/*", readers, h.documents.viewer},

		{"POST", "/api/ask", visitors, counted(limited(withBody(h.asking.ask)))},
		{"POST", "/api/ask/batch", readers, withBody(h.batch.ask)},
		{"POST", "/api/search", visitors, counted(limited(withBody(h.asking.search)))},
		{"POST", "/api/summarize", readers, counted(limited(withBody(h.asking.summarize)))},
		{"GET", "/api/cite", readers, sendCitePrompt},
		{"POST", "/api/cite", readers, limited(citeAny)},
		{"POST", "/api/runs", readers, limited(withBody(h.runs.begin))},
		{"GET", "/api/runs", readers, h.runs.list},
		{"GET", "/api/runs/:id", readers, counted(h.runs.show)},
		{"DELETE", "/api/runs/:id", readers, h.runs.stop},
		{"PUT", "/api/runs/:id/shared", readers, h.runs.share},
		{"DELETE", "/api/runs/:id/shared", readers, h.runs.share},
		{"GET", "/api/conversations", readers, h.conversations.list},
		{"GET", "/api/conversations/:id", readers, counted(h.conversations.show)},
		{"PATCH", "/api/conversations/:id", readers, withBody(h.conversations.rename)},
		{"DELETE", "/api/conversations/:id", readers, h.conversations.remove},
		{"POST", "/api/feedback", readers, withBody(h.feedback.recordFeedback)},
		{"GET", "/api/feedback", writers, h.feedback.list},
		{"GET", "/api/collections", readers, h.catalog.showCollections},
		{"GET", "/api/suggestions", readers, limited(h.suggestions.list)},
		{"GET", "/api/documents", readers, h.documents.list},
		{"GET", "/api/documents/*", readers, counted(h.documents.show)},
		{"GET", "/api/settings", administrators, limited(h.settings.show)},
		{"PUT", "/api/settings", administrators, limited(h.settings.change)},
		{"POST", "/api/settings/test", administrators, limited(h.settings.test)},
		{"POST", "/api/settings/parts", administrators, limited(h.settings.getPart)},

		{"POST", "/mcp", readers, h.mcp.post},

		{"GET", "/openapi.json", public, compressReplies(sendOpenAPI)},
		{"GET", "/metrics", readers, h.metrics.send},
		{"GET", "/healthz", public, h.health.live},
		{"GET", "/readyz", public, h.health.ready},
	}
	table = append(table, h.openAIRoutes()...)
	if uploads {
		table = append(table, h.uploadRoutes()...)
	}
	if keys {
		table = append(table, h.keyRoutes()...)
	}
	return table
}

func (h *handlers) openAIRoutes() []route {
	limited := h.limiter.limitHandler
	return []route{
		{"POST", "/v1/chat/completions", readers, limited(h.openAI.chat)},
		{"POST", "/v1/completions", readers, limited(h.openAI.completions)},
		{"POST", "/v1/responses", readers, limited(h.openAI.responses)},
		{"GET", "/v1/responses/:id", readers, h.openAI.showResponse},
		{"POST", "/v1/vector_stores/:id/search", readers, limited(h.openAI.library.searchVectors)},
		{"GET", "/v1/vector_stores", readers, h.openAI.library.listStores},
		{"GET", "/v1/vector_stores/:id", readers, h.openAI.library.showStore},
		{"GET", "/v1/files", readers, h.openAI.library.listFiles},
		{"GET", "/v1/files/:id", readers, h.openAI.library.showFile},
		{"GET", "/v1/models", readers, h.openAI.library.listModels},
		{"GET", "/v1/models/*", readers, h.openAI.library.showModel},
	}
}

func (h *handlers) uploadRoutes() []route {
	limited := h.limiter.limitHandler
	return []route{
		{"POST", "/api/documents", writers, limited(h.documents.add)},
		{"POST", "/api/documents/*", writers, limited(h.documents.reread)},
		{"PATCH", "/api/documents/*", writers, limited(withBody(h.documents.setLabels))},
		{"DELETE", "/api/documents/*", writers, h.documents.remove},
		{"POST", "/api/collections", writers, withBody(h.catalog.makeCollection)},
		{"PATCH", "/api/collections/:id", writers, withBody(h.catalog.renameCollection)},
		{"DELETE", "/api/collections/:id", writers, h.catalog.deleteCollection},
		{"POST", "/api/sample", writers, limited(h.documents.addSample)},
	}
}

func (h *handlers) keyRoutes() []route {
	return []route{
		{"GET", resourceMetadata, public, h.mcp.metadata},
		{"GET", "/key", public, h.key.show},
		{"POST", "/key", public, h.key.beginSession},
		{"POST", "/key/leave", public, h.key.endSession},
	}
}

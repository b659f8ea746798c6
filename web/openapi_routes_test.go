package web

import (
	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
)

// An operation describes a route in the OpenAPI document, whose schemas come from
// the Go types. A new route is a line here.
type operation struct {
	route       string // "POST /api/ask", as in the table of accesses
	tag         string
	summary     string
	description string
	query       map[string]string // parameters with their descriptions
	header      map[string]string
	body        map[string]any // by content type; nil is any bytes
	replies     []answerOf
}

// answerOf is a reply: a Go type, a page or file (nil), or a stream of events.
type answerOf struct {
	status      int
	description string
	content     string
	value       any
	events      bool
}

const (
	tagV1      = "OpenAI"
	jsonReply  = "application/json"
	pageType   = "text/html"
	streamType = "text/event-stream"
)

func asJSON(value any) map[string]any { return map[string]any{jsonReply: value} }

type apiTag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// tags group the operations, in this order.
func tags() []apiTag {
	return []apiTag{
		{"Answers", "Questions and summaries. An answer is a stream of events with Accept: text/event-stream, otherwise one JSON object. The last event, done, contains that object."},
		{"Runs", "A run is one answer or summary. Its record has every event, so that it can be shown again, shared, and resumed after an interruption. POST /api/ask and POST /api/summarize stop when the client disconnects; a run of POST /api/runs continues for 60 s without a reader. A record belongs to the key that began the run and is deleted together with any document that it quotes."},
		{"Documents", "The documents of the library, and uploads."},
		{tagV1, "The OpenAI API, for its clients. Errors have OpenAI's form and, where there is one, its code: model_not_found (404), invalid_api_key (401), rate_limit_exceeded (429), context_length_exceeded (400). The other codes are listed below."},
		{"Server", "The state of the server and this description."},
		{"Pages", "The pages for browsers."},
	}
}

// streamEvents are the events of a stream by name.
func streamEvents() map[string]any {
	return map[string]any{
		"retrieved": answer.Retrieved{}, "judged": answer.Judged{}, "draft": answer.Draft{}, "text": answer.Text{},
		"cited": cite.Cited{}, "quoted": cite.Quoted{}, "unanswered": answer.Unanswered{}, "incomplete": answer.Incomplete{},
		"warning": answer.Warning{}, "usage": answer.Usage{}, "error": Problem{}, "done": answered{},
		"block": blockEvent{}, "marked": blockEvent{},
	}
}

func operations() []operation {
	runID := map[string]string{"Last-Event-ID": "id of the last event received; the stream continues after it"}
	html := map[string]string{"html": "1 adds the events block and marked: the answer as sanitized HTML, block by block"}
	page := func(path, summary string) operation {
		return operation{route: "GET " + path, tag: "Pages", summary: summary, replies: []answerOf{{200, "the page", pageType, nil, false}}}
	}
	documentsQuery := func() map[string]string {
		return map[string]string{
			"collection": "only documents of this collection", "root": "only documents of this folder", "path_prefix": "only documents whose path begins with this prefix",
			"format": "only documents of this format", "tag": "only documents with this tag; may be repeated", "author": "only documents whose author's name contains these words",
			"language": "only documents in this language", "since": "only documents dated on this day or later", "until": "only documents dated on this day or earlier",
			"limit": "number of documents on a page", "after": "id of the last document of the previous page",
		}
	}
	place := map[string]string{"start": "first byte of a quote in the document's text", "end": "byte after the quote", "at": "byte around which to show the text when there is no quote"}
	viewer := page("/documents/*", "A document, with the quoted words marked")
	viewer.query = map[string]string{"start": place["start"], "end": place["end"], "at": place["at"],
		"drawn": "number of a page of a PDF, to get its image as PNG", "width": "width of the image in pixels",
		"original": "1 returns the file itself: a PDF to view, other files to download"}
	viewer.replies = append(viewer.replies, answerOf{200, "the page", "image/png", nil, false}, answerOf{200, "the page", "application/pdf", nil, false}, answerOf{200, "the page", "application/octet-stream", nil, false})
	list := page("/documents", "The list of documents")
	list.query = documentsQuery()
	key := page("/key", "The sign-in form")
	key.query = map[string]string{"next": "path to open after signing in"}
	redirect := answerOf{303, "redirect to Location", "", nil, false}
	home := page("/", "The page for questions")
	home.query = map[string]string{"run": "id of a run to show"}
	return []operation{
		{route: "POST /api/ask", tag: "Answers", summary: "Answer a question, with citations",
			description: "The header Ibid-Run of the reply is the id of the run. The run stops when the client disconnects.",
			query:       html, body: asJSON(askRequest{}), replies: []answerOf{{200, "the answer, or that the documents do not contain it", jsonReply, answered{}, false}, {200, "", streamType, nil, true}}},
		{route: "POST /api/summarize", tag: "Answers", summary: "Summarize one document, or all of a collection or filter",
			description: "The header Ibid-Run of the reply is the id of the run. The run stops when the client disconnects.",
			query:       html, body: asJSON(summarizeRequest{}), replies: []answerOf{{200, "the summary", jsonReply, answered{}, false}, {200, "", streamType, nil, true}}},
		{route: "POST /api/search", tag: "Answers", summary: "Find passages that match a question, without an answer",
			body: asJSON(searchRequest{}), replies: []answerOf{{200, "the passages, best first", jsonReply, searched{}, false}}},
		{route: "POST /api/feedback", tag: "Answers", summary: "Rate an answer, or one of its citations",
			description: "It replaces the caller's earlier rating.",
			body:        asJSON(feedbackRequest{}), replies: []answerOf{{201, "the stored feedback", jsonReply, feedbackEntry{}, false}}},
		{route: "GET /api/feedback", tag: "Answers", summary: "List all feedback, newest first",
			query:   map[string]string{"limit": "number of entries on a page; 100 by default, 1000 at most", "after": "next of the previous page"},
			replies: []answerOf{{200, "a page of the list", jsonReply, listedFeedback{}, false}}},

		{route: "POST /api/runs", tag: "Runs", summary: "Start an answer or a summary in the background",
			description: "The body is that of POST /api/ask, or contains that of POST /api/summarize as its member summarize.",
			body:        asJSON(runRequest{}), replies: []answerOf{{202, "the run has started; follow it at Location", jsonReply, begunRun{}, false}}},
		{route: "GET /api/runs", tag: "Runs", summary: "List the caller's recorded runs, newest first",
			query:   map[string]string{"limit": "number of runs on a page; 50 by default, 500 at most", "after": "id of the last run of the previous page"},
			replies: []answerOf{{200, "a page of the list", jsonReply, listedRuns{}, false}}},
		{route: "GET /api/runs/:id", tag: "Runs", summary: "Get the record of a run, or its events",
			description: "With Accept: text/event-stream the reply is every event, from the first or after Last-Event-ID, and then each new one. Every request counts as a reader. While another server works on the run, the reply has its state and no events. state is stopped when the run was stopped or had no reader; answer is then as far as it came, if at all.",
			query:       html, header: runID,
			replies: []answerOf{{200, "the record", jsonReply, answerRecord{}, false}, {200, "", streamType, nil, true}, {204, "the run has ended, and the reader has received all its events", "", nil, false}}},
		{route: "DELETE /api/runs/:id", tag: "Runs", summary: "Stop a run",
			description: "A run that has ended does not change. A run of another server can be stopped only there.",
			query:       map[string]string{"forget": "true also deletes the record, whether the run has ended or not"},
			replies:     []answerOf{{200, "the record", jsonReply, answerRecord{}, false}, {204, "the record is deleted", "", nil, false}}},

		{route: "PUT /api/runs/:id/shared", tag: "Runs", summary: "Share the record of a run",
			description: "Everyone who has its id and a key for all documents that it quotes can see it.",
			replies:     []answerOf{{204, "the record is shared", "", nil, false}}},
		{route: "DELETE /api/runs/:id/shared", tag: "Runs", summary: "Stop sharing the record of a run",
			replies: []answerOf{{204, "the record is not shared", "", nil, false}}},

		{route: "GET /api/documents", tag: "Documents", summary: "List the documents, and the files that couldn't be read",
			query: documentsQuery(), replies: []answerOf{{200, "a page of the list", jsonReply, listing{}, false}}},
		{route: "GET /api/documents/*", tag: "Documents", summary: "Get the text of a document around a place in it",
			query: place, replies: []answerOf{{200, "the text, in blocks", jsonReply, shownDocument{}, false}}},
		{route: "POST /api/documents", tag: "Documents", summary: "Upload a document",
			description: "The body is the file, named by ?name=, or a form with one file in it. It replaces a document of the same name.",
			query:       map[string]string{"name": "file name, where the body is the file itself", "collection": "the collection of uploads, as GET /api/collections lists it"},
			body:        map[string]any{"application/octet-stream": nil, "multipart/form-data": nil},
			replies:     []answerOf{{201, "the document was added; Location is its page", jsonReply, ingest.Change{}, false}, {200, "the document was replaced, or was unchanged", jsonReply, ingest.Change{}, false}}},
		{route: "POST /api/documents/*", tag: "Documents", summary: "Read an uploaded document again",
			replies: []answerOf{{200, "the result", jsonReply, ingest.Change{}, false}}},
		{route: "DELETE /api/documents/*", tag: "Documents", summary: "Delete an uploaded document",
			replies: []answerOf{{204, "the document is deleted", "", nil, false}}},
		{route: "GET /api/collections", tag: "Documents", summary: "List the collections and their contents",
			replies: []answerOf{{200, "the list", jsonReply, listedCollections{}, false}}},

		{route: "GET /healthz", tag: "Server", summary: "Check that the server is running", replies: []answerOf{{200, "it is", jsonReply, liveness{}, false}}},
		{route: "GET /readyz", tag: "Server", summary: "Check that the server is ready for questions",
			description: "A server is ready once it has read its folders, and while its store is available. If it is not, reason says why.",
			replies:     []answerOf{{200, "it is ready", jsonReply, readiness{}, false}, {503, "it is not ready", jsonReply, readiness{}, false}}},
		{route: "GET /metrics", tag: "Server", summary: "Metrics for Prometheus", replies: []answerOf{{200, "the metrics as text", "text/plain", nil, false}}},
		{route: "GET /openapi.json", tag: "Server", summary: "This description", replies: []answerOf{{200, "an OpenAPI 3.1 document", jsonReply, nil, false}}},

		{route: "POST /v1/chat/completions", tag: tagV1, summary: "Answer the last message of a conversation, with citations",
			description: "The model ibid answers from all documents, ibid/COLLECTION from those of one collection. A request for the server's own model by name is passed on to it, without documents. System and developer messages only affect the style. Temperature and similar parameters have no effect. A stream ends with a chunk that has the finish reason, annotations, citations and sources, then [DONE]; after a failure it ends with an error and without [DONE]. finish_reason is length when the answer was cut at max_tokens or is incomplete. The indices of annotations count characters (Unicode code points) of the content.",
			body:        asJSON(chatRequest{}), replies: []answerOf{{200, "the answer, or that the documents do not contain it", jsonReply, completion{}, false}, {200, "", streamType, nil, false}}},
		{route: "GET /v1/models", tag: tagV1, summary: "List the chat models", replies: []answerOf{{200, "the list", jsonReply, v1Models{}, false}}},
		{route: "GET /v1/models/*", tag: tagV1, summary: "Get one model", replies: []answerOf{{200, "the model", jsonReply, v1Model{}, false}}},
		{route: "POST /v1/embeddings", tag: tagV1, summary: "Embed texts with the embedding model of the library",
			description: "The model is ibid, or the embedding model's own name. Token ids are not supported.",
			body:        asJSON(embedRequest{}), replies: []answerOf{{200, "the vectors, in order", jsonReply, v1Vectors{}, false}}},
		{route: "POST /v1/responses", tag: tagV1, summary: "Not available: the reply, 404, names the alternatives", body: map[string]any{jsonReply: nil}},

		{route: "POST /mcp", tag: "Server", summary: "Send a message of the Model Context Protocol",
			description: "JSON-RPC over streamable HTTP: tools to ask, search and read a source, and the documents as resources. Batches are not supported.",
			body:        map[string]any{jsonReply: nil},
			replies:     []answerOf{{200, "the reply, after notifications of progress", streamType, nil, false}, {202, "the notification was accepted", "", nil, false}}},

		home, list, viewer, page("/docs", "This description as a page"), key,
		{route: "GET /static/*", tag: "Pages", summary: "Styles, scripts and images of the pages", replies: []answerOf{{200, "the file", "text/css", nil, false}, {200, "", "text/javascript", nil, false}, {200, "", "image/svg+xml", nil, false}}},
		{route: "POST /key", tag: "Pages", summary: "Sign in with a key", query: map[string]string{},
			body: map[string]any{"application/x-www-form-urlencoded": nil}, replies: []answerOf{redirect, {200, "a page that redirects", pageType, nil, false}}},
		{route: "POST /key/leave", tag: "Pages", summary: "Sign out", replies: []answerOf{redirect}},
	}
}

// schemaNames are the names of schemas that differ from their Go types.
func schemaNames() map[string]string {
	return map[string]string{
		"web.answered": "Answer", "web.askRequest": "AskRequest", "web.searchRequest": "SearchRequest", "web.summarizeRequest": "SummarizeRequest",
		"web.runRequest": "RunRequest", "web.feedbackRequest": "FeedbackRequest", "web.searched": "SearchResult", "web.answerRecord": "Run", "web.begunRun": "BegunRun",
		"web.listedRuns": "RunList", "web.feedbackEntry": "Feedback", "web.listedFeedback": "FeedbackList", "web.listing": "DocumentList", "web.shownDocument": "Document", "web.drawnLink": "DrawnPage",
		"web.block": "Block", "web.span": "BlockRun", "web.listedCollections": "CollectionList", "web.collection": "Collection", "web.collectionRoot": "CollectionRoot",
		"web.chatRequest": "ChatRequest", "web.chatMessage": "ChatMessage", "web.streamOptions": "ChatStreamOptions", "web.responseFormat": "ChatResponseFormat",
		"web.completion": "ChatCompletion", "web.chatChoice": "ChatChoice", "web.chatSaid": "ChatReply", "web.chatDelta": "ChatDelta", "web.chatUsage": "ChatUsage", "web.usageDetails": "ChatUsageDetails",
		"web.annotation": "ChatAnnotation", "web.urlCitation": "URLCitation", "web.uiSource": "ChatSource", "web.uiSourceName": "ChatSourceName", "web.uiSourceDetail": "ChatSourceDetail",
		"web.v1Model": "Model", "web.v1Models": "ModelList", "web.v1Error": "OpenAIError", "web.v1Fault": "OpenAIFault",
		"web.embedRequest": "EmbeddingRequest", "web.v1Vector": "Embedding", "web.v1Vectors": "EmbeddingList", "web.vectorUsage": "EmbeddingUsage",
		"web.liveness": "Health", "web.blockEvent": "HTMLBlock", "answer.Draft": "DraftPiece",
	}
}

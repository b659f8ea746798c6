package web

import (
	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
)

// An operation is what the description says of a route beside what the code
// does: its types come out of the code. A new route is a line here.
type operation struct {
	route       string // "POST /api/ask", as in the table of accesses
	tag         string
	summary     string
	description string
	query       map[string]string // parameters, with what they do
	header      map[string]string
	body        map[string]any // by type of content; nil is any bytes
	replies     []answerOf
}

// answerOf is a reply: of a Go type, a page or file (nil) or, with events, a stream.
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

// tags group the operations, in this order.
func tags() []apiTag {
	return []apiTag{
		{"Answers", "Questions and summaries. Each is a stream of events, given one by one with Accept: text/event-stream or folded into one JSON object; the last event, done, carries that object."},
		{"Runs", "A run is one answer or summary: its record with every event, which can be shown again and shared, and where it broke off its resumption. Of servers that share a store each shows the runs of all; one of them at a time works on a run. POST /api/ask and POST /api/summarize end with their reader; a run of POST /api/runs goes on for 60 s without one. What is kept of a run belongs to the key that began it, and goes when a document whose words are in it is deleted."},
		{"Documents", "What is in the library, and what is sent to it."},
		{tagV1, "The API of OpenAI, for clients that speak it. Its errors have OpenAI's form and, where that has one, its code: model_not_found (404), invalid_api_key (401), rate_limit_exceeded (429), context_length_exceeded (400); the others are the codes below."},
		{"Server", "The state of the server and this description."},
		{"Pages", "What a browser shows."},
	}
}

// events are those of a stream, by name.
func streamEvents() map[string]any {
	return map[string]any{
		"retrieved": answer.Retrieved{}, "judged": answer.Judged{}, "draft": answer.Draft{}, "text": answer.Text{},
		"cited": cite.Cited{}, "quoted": cite.Quoted{}, "unanswered": answer.Unanswered{}, "incomplete": answer.Incomplete{},
		"warning": answer.Warning{}, "usage": answer.Usage{}, "error": Problem{}, "done": answered{},
		"block": blockEvent{}, "marked": blockEvent{},
	}
}

func operations() []operation {
	runID := map[string]string{"Last-Event-ID": "id of the last event that the reader has: those after it are sent"}
	html := map[string]string{"html": "1 adds the events block and marked: the answer as sanitised HTML, block by block"}
	page := func(path, summary string) operation {
		return operation{route: "GET " + path, tag: "Pages", summary: summary, replies: []answerOf{{200, "the page", pageType, nil, false}}}
	}
	documentsQuery := func() map[string]string {
		return map[string]string{
			"collection": "only documents of this collection", "root": "only documents of this folder", "path_prefix": "only documents whose path begins with this",
			"format": "only documents of this format", "tag": "only documents with this tag; may be repeated", "author": "only documents of an author with these words in the name",
			"language": "only documents in this language", "since": "only documents dated on this day or later", "until": "only documents dated on this day or earlier",
			"limit": "how many to list", "after": "list those after this id",
		}
	}
	place := map[string]string{"start": "first byte of a quote in the document's text", "end": "byte behind it", "at": "byte around which to show the text where nothing is quoted"}
	viewer := page("/documents/*", "The viewer of a document, with the quoted words marked")
	viewer.query = map[string]string{"start": place["start"], "end": place["end"], "at": place["at"],
		"drawn": "number of a page of a PDF: its picture as a PNG", "width": "width of the picture in pixels",
		"original": "1 gives the file itself: a PDF to look at, any other to save"}
	viewer.replies = append(viewer.replies, answerOf{200, "the page", "image/png", nil, false}, answerOf{200, "the page", "application/pdf", nil, false}, answerOf{200, "the page", "application/octet-stream", nil, false})
	list := page("/documents", "The list of documents")
	list.query = documentsQuery()
	key := page("/key", "The form in which a browser gives a key")
	key.query = map[string]string{"next": "where to go then"}
	redirect := answerOf{303, "go on to where Location says", "", nil, false}
	home := page("/", "The page on which to ask")
	home.query = map[string]string{"run": "id of a run to show"}
	return []operation{
		{route: "POST /api/ask", tag: "Answers", summary: "Answer a question, with citations",
			description: "The header Ibid-Run of the reply is the id of the run. It stops when the client goes.",
			query:       html, body: asJSON(askRequest{}), replies: []answerOf{{200, "the answer, or that there is none in the documents", jsonReply, answered{}, false}, {200, "", streamType, nil, true}}},
		{route: "POST /api/summarize", tag: "Answers", summary: "Summarize one document, or all of a collection or filter",
			description: "The header Ibid-Run of the reply is the id of the run. It stops when the client goes.",
			query:       html, body: asJSON(summarizeRequest{}), replies: []answerOf{{200, "the summary", jsonReply, answered{}, false}, {200, "", streamType, nil, true}}},
		{route: "POST /api/search", tag: "Answers", summary: "Find passages near a question, without an answer",
			body: asJSON(searchRequest{}), replies: []answerOf{{200, "the passages, best first", jsonReply, searched{}, false}}},
		{route: "POST /api/feedback", tag: "Answers", summary: "Say what an answer, or one citation in it, is worth",
			description: "It takes the place of what the same caller said of it before.",
			body:        asJSON(feedbackRequest{}), replies: []answerOf{{201, "what was kept", jsonReply, feedbackEntry{}, false}}},
		{route: "GET /api/feedback", tag: "Answers", summary: "List what everybody thinks of answers, newest first",
			query:   map[string]string{"limit": "how many to list, 100 unless given, 1000 at most", "after": "next of the page before"},
			replies: []answerOf{{200, "a page of the list", jsonReply, listedFeedback{}, false}}},

		{route: "POST /api/runs", tag: "Runs", summary: "Begin an answer or a summary in the background",
			description: "The body is that of POST /api/ask, or has that of POST /api/summarize in its member summarize.",
			body:        asJSON(runRequest{}), replies: []answerOf{{202, "it has begun; Location is where it can be followed", jsonReply, begunRun{}, false}}},
		{route: "GET /api/runs", tag: "Runs", summary: "List the caller's runs that were kept, newest first",
			query:   map[string]string{"limit": "how many to list, 50 unless given, 500 at most", "after": "list those before this run"},
			replies: []answerOf{{200, "a page of the list", jsonReply, listedRuns{}, false}}},
		{route: "GET /api/runs/:id", tag: "Runs", summary: "The record of a run, or its events",
			description: "With Accept: text/event-stream every event from the first on, or after Last-Event-ID, and then those that come, each once. To have asked counts as a reader. While another server works on the run, this one has its state and no events. state is stopped where the run was stopped, or nobody read it; answer is then what it had come to, if anything.",
			query:       html, header: runID,
			replies: []answerOf{{200, "the record", jsonReply, runRecord{}, false}, {200, "", streamType, nil, true}, {204, "the run has ended, and the reader has all its events", "", nil, false}}},
		{route: "DELETE /api/runs/:id", tag: "Runs", summary: "Stop a run",
			description: "One that has ended stays as it is. One that another server works on is stopped there only.",
			query:       map[string]string{"forget": "true forgets all that is kept of it, whether it has ended or not"},
			replies:     []answerOf{{200, "the record", jsonReply, runRecord{}, false}, {204, "nothing is kept of it", "", nil, false}}},

		{route: "PUT /api/runs/:id/shared", tag: "Runs", summary: "Let others see the record of a run",
			description: "Who knows its id and has a key that reaches all documents whose words are in it.",
			replies:     []answerOf{{204, "it is shared", "", nil, false}}},
		{route: "DELETE /api/runs/:id/shared", tag: "Runs", summary: "Let nobody else see the record of a run again",
			replies: []answerOf{{204, "it is not shared", "", nil, false}}},

		{route: "GET /api/documents", tag: "Documents", summary: "List the documents, and the files that could not be taken in",
			query: documentsQuery(), replies: []answerOf{{200, "a page of the list", jsonReply, listing{}, false}}},
		{route: "GET /api/documents/*", tag: "Documents", summary: "The text of a document around a place in it",
			query: place, replies: []answerOf{{200, "the text, in blocks", jsonReply, shownDocument{}, false}}},
		{route: "POST /api/documents", tag: "Documents", summary: "Send a document",
			description: "The body is the file, named by ?name=, or a form with one file in it. A document of that name is replaced.",
			query:       map[string]string{"name": "file name, where the body is the file itself", "collection": "the one that it is to go into: GET /api/collections tells which that is"},
			body:        map[string]any{"application/octet-stream": nil, "multipart/form-data": nil},
			replies:     []answerOf{{201, "it was added; Location is where it is shown", jsonReply, ingest.Change{}, false}, {200, "it was replaced, or is what was there", jsonReply, ingest.Change{}, false}}},
		{route: "POST /api/documents/*", tag: "Documents", summary: "Read a document that was sent anew",
			replies: []answerOf{{200, "what became of it", jsonReply, ingest.Change{}, false}}},
		{route: "DELETE /api/documents/*", tag: "Documents", summary: "Delete a document that was sent",
			replies: []answerOf{{204, "it is gone", "", nil, false}}},
		{route: "GET /api/collections", tag: "Documents", summary: "List the collections, with what is in them",
			replies: []answerOf{{200, "the list", jsonReply, listedCollections{}, false}}},

		{route: "GET /healthz", tag: "Server", summary: "Whether the server runs", replies: []answerOf{{200, "it does", jsonReply, health{}, false}}},
		{route: "GET /readyz", tag: "Server", summary: "Whether questions should be sent here",
			description: "A server is ready once it has read its folders, and while its store answers: reason says what is amiss.",
			replies:     []answerOf{{200, "they should", jsonReply, readiness{}, false}, {503, "not now", jsonReply, readiness{}, false}}},
		{route: "GET /metrics", tag: "Server", summary: "Figures for Prometheus", replies: []answerOf{{200, "the figures as text", "text/plain", nil, false}}},
		{route: "GET /openapi.json", tag: "Server", summary: "This description", replies: []answerOf{{200, "an OpenAPI 3.1 document", jsonReply, nil, false}}},

		{route: "POST /v1/chat/completions", tag: tagV1, summary: "Answer the last message of a conversation, with citations",
			description: "The model ibid answers from all documents, ibid/COLLECTION from those of one collection; a request for the model by its own name is passed on to it as it is, without documents. What the system or a developer says is heeded as style alone. Temperature and its like change nothing. A stream ends with a chunk that has the finish reason, annotations, citations and sources, then [DONE]; one that fails, with an error and without [DONE]. finish_reason is length where the answer was cut at max_tokens or ends before its end. The indices of annotations count characters (Unicode code points) of the content.",
			body:        asJSON(chatRequest{}), replies: []answerOf{{200, "the answer, or that there is none in the documents", jsonReply, completion{}, false}, {200, "", streamType, nil, false}}},
		{route: "GET /v1/models", tag: tagV1, summary: "List the models that chat", replies: []answerOf{{200, "the list", jsonReply, v1Models{}, false}}},
		{route: "GET /v1/models/*", tag: tagV1, summary: "One model", replies: []answerOf{{200, "the model", jsonReply, v1Model{}, false}}},
		{route: "POST /v1/embeddings", tag: tagV1, summary: "The vectors of texts, by the embedding model of the library",
			description: "The model is ibid, or the embedding model's own name. Token numbers are not understood.",
			body:        asJSON(embedRequest{}), replies: []answerOf{{200, "the vectors, in order", jsonReply, v1Vectors{}, false}}},
		{route: "POST /v1/responses", tag: tagV1, summary: "Not offered: 404 says what to use", body: map[string]any{jsonReply: nil}},

		{route: "POST /mcp", tag: "Server", summary: "A message of the Model Context Protocol",
			description: "JSON-RPC over streamable HTTP: tools to ask, search and read a source, and the documents as resources. Only one message at a time is taken.",
			header:      map[string]string{"Mcp-Session-Id": "the name that the reply to initialize gave: notices that a call is canceled find it by this"},
			body:        map[string]any{jsonReply: nil},
			replies:     []answerOf{{200, "the reply, and before it what is going on", streamType, nil, false}, {202, "a notice was taken", "", nil, false}}},
		{route: "DELETE /mcp", tag: "Server", summary: "End a session of the Model Context Protocol, and what is under way in it",
			replies: []answerOf{{204, "it has ended", "", nil, false}}},

		home, list, viewer, page("/docs", "This description, for people"), key,
		{route: "GET /static/*", tag: "Pages", summary: "Styles, scripts and pictures of the pages", replies: []answerOf{{200, "the file", "text/css", nil, false}, {200, "", "text/javascript", nil, false}, {200, "", "image/svg+xml", nil, false}}},
		{route: "POST /key", tag: "Pages", summary: "Begin a session with a key", query: map[string]string{},
			body: map[string]any{"application/x-www-form-urlencoded": nil}, replies: []answerOf{redirect, {200, "a page that goes on", pageType, nil, false}}},
		{route: "POST /key/leave", tag: "Pages", summary: "End the session", replies: []answerOf{redirect}},
	}
}

// schemaNames are the names of schemas whose Go types are called otherwise.
func schemaNames() map[string]string {
	return map[string]string{
		"web.answered": "Answer", "web.askRequest": "AskRequest", "web.searchRequest": "SearchRequest", "web.summarizeRequest": "SummarizeRequest",
		"web.runRequest": "RunRequest", "web.feedbackRequest": "FeedbackRequest", "web.searched": "SearchResult", "web.runRecord": "Run", "web.begunRun": "BegunRun",
		"web.listedRuns": "RunList", "web.feedbackEntry": "Feedback", "web.listedFeedback": "FeedbackList", "web.listing": "DocumentList", "web.shownDocument": "Document", "web.drawnLink": "DrawnPage",
		"web.block": "Block", "web.run": "BlockRun", "web.listedCollections": "CollectionList", "web.collection": "Collection", "web.collectionRoot": "CollectionRoot",
		"web.chatRequest": "ChatRequest", "web.chatMessage": "ChatMessage", "web.streamOptions": "ChatStreamOptions", "web.responseFormat": "ChatResponseFormat",
		"web.completion": "ChatCompletion", "web.chatChoice": "ChatChoice", "web.chatSaid": "ChatReply", "web.chatDelta": "ChatDelta", "web.chatUsage": "ChatUsage", "web.usageDetails": "ChatUsageDetails",
		"web.annotation": "ChatAnnotation", "web.urlCitation": "URLCitation", "web.uiSource": "ChatSource", "web.uiSourceName": "ChatSourceName", "web.uiSourceDetail": "ChatSourceDetail",
		"web.v1Model": "Model", "web.v1Models": "ModelList", "web.v1Error": "OpenAIError", "web.v1Fault": "OpenAIFault",
		"web.embedRequest": "EmbeddingRequest", "web.v1Vector": "Embedding", "web.v1Vectors": "EmbeddingList", "web.vectorUsage": "EmbeddingUsage",
		"web.health": "Health", "web.blockEvent": "HTMLBlock", "answer.Draft": "DraftPiece",
	}
}

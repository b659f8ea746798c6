package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"io/fs"
	"maps"
	"mime"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/ingest/site"
)

type object = map[string]any

// TestOpenAPI compares openapi.json with the code: its routes, and the members of its
// schemas. -update rewrites the names of operations, the codes and the strategies; all
// else, such as who may use a route, is written by hand.
func TestOpenAPI(t *testing.T) {
	var d object
	decoder := json.NewDecoder(bytes.NewReader(openapiDocument))
	decoder.UseNumber() // some numbers have no exact float64
	must(t, decoder.Decode(&d))
	described := d["paths"].(object)
	for route, a := range accesses() {
		method, pattern, _ := strings.Cut(route, " ")
		path := openapiPath(pattern)
		item, _ := described[path].(object)
		op, ok := item[strings.ToLower(method)].(object)
		if !ok {
			t.Errorf("%s is a route, but openapi.json does not describe it", route)
			continue
		}
		op["operationId"] = operationID(method, path)
		who := map[access]string{public: "everyone", visitors: "keys that read, public ones too", readers: "keys that read",
			writers: "keys that write", administrators: "keys for the settings"}[a]
		if open := op["security"] != nil; op["x-access"] != who || open != (a == public) {
			t.Errorf("%s is for %s, but openapi.json says %v; without a key: %v", route, who, op["x-access"], open)
		}
	}
	routes := 0
	for _, item := range described {
		routes += len(item.(object))
	}
	if n := len(accesses()); routes > n {
		t.Errorf("openapi.json describes %d routes, but only %d exist", routes, n)
	}
	c := comparison{t, d["components"].(object)["schemas"].(object), map[string]reflect.Type{},
		datatest.Lines[map[string]string](t, "testdata/rows/schemas.json")[0]}
	for _, v := range schemaRoots() {
		c.kind(reflect.TypeOf(v))
	}
	for name := range c.schemas {
		if c.compared[name] == nil {
			t.Errorf("no type has the schema %s: delete it, or add its type to schemaRoots", name)
		}
	}
	c.properties("Problem")["code"].(object)["enum"] = codes(t)
	for name, known := range map[string][]string{"AskRequest": answer.Strategies(), "RunRequest": answer.Strategies(),
		"SummarizeRequest": answer.SummaryStrategies()} {
		c.properties(name)["strategy"].(object)["anyOf"].([]any)[0].(object)["enum"] = known
	}

	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	must(t, e.Encode(d))
	if *datatest.Update {
		must(t, os.WriteFile("openapi.json", b.Bytes(), 0o644))
		return
	}
	if !bytes.Equal(b.Bytes(), openapiDocument) {
		t.Error("openapi.json differs from the code: go test ./web -run 'TestOpenAPI$' -update")
	}
	w := call(newHandler(t, nil), "GET", "/openapi.json", "")
	if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), b.Bytes()) || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("GET /openapi.json: %d, %v", w.Code, w.Header())
	}
}

// codes are the codes of problems in the document, with their statuses in statuses.
func codes(t testing.TB) (codes []string) {
	t.Helper()
	checker.load(t)
	return slices.Sorted(maps.Keys(checker.statuses))
}

func openapiPath(pattern string) string {
	switch {
	case pattern == "/static/*":
		return "/static/{file}"
	case pattern == "/v1/models/*":
		return "/v1/models/{model}"
	case strings.HasSuffix(pattern, "*"):
		return strings.TrimSuffix(pattern, "*") + "{document}"
	}
	return regexp.MustCompile(`:(\w+)`).ReplaceAllString(pattern, "{$1}")
}

func operationID(method, path string) string {
	id := strings.ToLower(method)
	for _, part := range regexp.MustCompile(`\w+`).FindAllString(path, -1) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

// A comparison compares the schemas in openapi.json with the Go types.
type comparison struct {
	t        *testing.T
	schemas  object
	compared map[string]reflect.Type // by the names of their schemas
	names    map[string]string       // members that differ from their Go types
}

func (c *comparison) properties(name string) object {
	return c.schemas[name].(object)["properties"].(object)
}

// kind returns the JSON type of a value: for a struct the name of its schema, which is
// compared, and "" for values of any type or with custom encoding.
func (c *comparison) kind(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return c.kind(t.Elem())
	case t == reflect.TypeFor[time.Time](), t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string"
	case t.Kind() == reflect.Interface, reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return ""
	}
	switch t.Kind() {
	case reflect.Slice:
		return "array of " + c.kind(t.Elem())
	case reflect.Struct:
		return c.compare(t)
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Map:
		return "object"
	}
	return t.Kind().String()
}

// kindIn returns the type in a schema.
func kindIn(schema object) string {
	if either, _ := schema["anyOf"].([]any); len(either) == 2 && either[1].(object)["type"] == "null" {
		schema = either[0].(object)
	}
	if items, ok := schema["items"].(object); ok {
		return "array of " + kindIn(items)
	}
	if ref, ok := schema["$ref"].(string); ok {
		return strings.TrimPrefix(ref, "#/components/schemas/")
	}
	kind, _ := schema["type"].(string)
	return kind
}

// compare compares a struct with its schema, whose name it returns.
func (c *comparison) compare(t reflect.Type) string {
	name := cmp.Or(c.names[t.String()], strings.ToUpper(t.Name()[:1])+t.Name()[1:])
	if other := c.compared[name]; other != nil {
		if other != t {
			c.t.Fatalf("two types have the schema name %s: %v and %v; add one to testdata/rows/schemas.json", name, other, t)
		}
		return name
	}
	c.compared[name] = t
	schema, ok := c.schemas[name].(object)
	if !ok {
		c.t.Errorf("there is no schema %s of %v", name, t)
		return name
	}
	properties, _ := schema["properties"].(object)
	required, _ := schema["required"].([]any)
	known := map[string]bool{}
	for _, f := range fieldsOf(t) {
		member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if member = cmp.Or(member, f.Name); member == "-" || known[member] {
			continue
		}
		known[member] = true
		property, _ := properties[member].(object)
		if kind, described := c.kind(f.Type), kindIn(property); property == nil || kind != "" && kind != described {
			c.t.Errorf("%s of the schema %s is %q in openapi.json, but %q in the code", member, name, described, kind)
		}
		if !isRequest(t) && strings.Contains(options, "omit") == slices.Contains(required, any(member)) {
			c.t.Errorf("%s of the schema %s: required differs from the code", member, name)
		}
	}
	for member := range properties {
		if at, points := strings.CutSuffix(member, "_chars"); !known[member] && !(points && known[at]) { // a member for ?chars=1
			c.t.Errorf("%s of the schema %s is not in the code", member, name)
		}
	}
	if unknownMemberCode(t) != "" && schema["additionalProperties"] != false {
		c.t.Errorf("schema %s allows other members", name)
	}
	return name
}

// fieldsOf are the exported fields of a struct and, after them, those of embedded structs.
func fieldsOf(t reflect.Type) (fields []reflect.StructField) {
	var embedded []reflect.StructField
	for f := range t.Fields() {
		if f.Anonymous && f.Tag.Get("json") == "" {
			embedded = append(embedded, fieldsOf(f.Type)...)
		} else if f.IsExported() {
			fields = append(fields, f)
		}
	}
	return append(fields, embedded...)
}

// isRequest reports whether clients send a struct, in which they may omit members.
func isRequest(t reflect.Type) bool {
	return strings.HasSuffix(t.Name(), "Request") || strings.HasPrefix(t.Name(), "named") ||
		slices.Contains([]string{"Filter", "Turn", "labels", "chatMessage"}, t.Name())
}

// sourceFiles lists the Go files of a folder, without tests.
func sourceFiles(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// inSource returns the submatches of a pattern in the Go files of a folder.
func inSource(t *testing.T, dir, pattern string) (found []string) {
	t.Helper()
	for _, name := range sourceFiles(t, dir) {
		text, err := os.ReadFile(name)
		must(t, err)
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
	}
	return found
}

// TestOpenAPILimits checks that the limits in the document equal those in the code.
func TestOpenAPILimits(t *testing.T) {
	for limit, want := range map[string]int{"AskRequest question maxLength": MaxQuestion, "SearchRequest question maxLength": MaxQuestion,
		"AskRequest top_k maximum": MaxTopK, "AskRequest user maxLength": maxUserName, "AskRequest name maxLength": maxConversationName,
		"FeedbackRequest comment maxLength": MaxComment, "Labels tags maxItems": maxTags, "Labels author maxLength": maxLabel,
		"SummarizeRequest max_words maximum": answer.MaxSummaryWords} {
		words := strings.Fields(limit)
		part := regexp.MustCompile(`(?s)\n   "` + words[0] + `": \{.*?\n     "` + words[1] + `": \{.*?"` + words[2] + `": (\d+)`)
		if found := part.FindSubmatch(openapiDocument); found == nil || string(found[1]) != strconv.Itoa(want) {
			t.Errorf("%s = %s, want %d", limit, found, want)
		}
	}
}

// TestOpenAPIQuery checks that every query parameter in the code is described.
func TestOpenAPIQuery(t *testing.T) {
	for _, name := range inSource(t, ".", `(?:QueryParam|\bq\.Get)\("(\w+)"\)`) {
		if !regexp.MustCompile(`"in": "query",\s+"name": "` + name + `"`).Match(openapiDocument) {
			t.Errorf("parameter %q is not described", name)
		}
	}
}

// TestOpenAPICodes checks that the document lists every code of a problem in the
// source, and no others.
func TestOpenAPICodes(t *testing.T) {
	used := inSource(t, ".", `(?:\b(?:invalid|unauthorized|tooMany)\(|jsonProblem\(err, |set\([\w.]+, |[^.]problem\([\w.]+,\s+|invalidField\([^,]+(?:\([^)]*\))?, |Problem\{[^\n]*Code: |\.Code(?:, p\.Detail)? = (?:http\.\w+, )?)"(\w+[a-z])"`)
	used = append(used, inSource(t, ".", `return "(unknown_(?:filter|member))"`)...)
	for _, kind := range inSource(t, "../answer/openai", ` Kind = "(\w+)"`) {
		used = append(used, "model_"+kind)
	}
	for _, what := range inSource(t, "../answer", `QuestionError\{"(\w+)"`) {
		if what != "empty" && what != "too_long" {
			used = append(used, "bad_"+what)
		}
	}
	slices.Sort(used)
	datatest.Same(t, "codes of the source and openapi.json", slices.Compact(used), codes(t))
}

// TestOpenAPIForm checks that everything is described, and that all schemas are valid.
func TestOpenAPIForm(t *testing.T) {
	checker.load(t)
	for path, item := range checker.document["paths"].(object) {
		for method, op := range item.(object) {
			o := op.(object)
			parameters, _ := o["parameters"].([]any)
			for _, p := range parameters {
				if p := p.(object); p["description"] == "" {
					t.Errorf("%s %s: %s is not described", method, path, p["name"])
				}
			}
			for status, r := range o["responses"].(object) {
				if r.(object)["description"] == "" {
					t.Errorf("%s %s: reply %s is not described", method, path, status)
				}
			}
		}
	}
	for _, ref := range regexp.MustCompile(`"#/components/schemas/(\w+)"`).FindAllSubmatch(openapiDocument, -1) {
		checker.schema(t, "/components/schemas/"+string(ref[1]))
	}
}

// checker compares replies with the description.
var checker replyChecker

type replyChecker struct {
	once     sync.Once
	mu       sync.Mutex
	document object
	compiler *jsonschema.Compiler
	statuses map[string][]any // status by code of a problem
	seen     map[string]bool  // operations, with status and type, that were checked
}

const documentURL = "http://ibid.test/openapi.json"

func (r *replyChecker) load(t testing.TB) {
	r.once.Do(func() {
		must(t, json.Unmarshal(openapiDocument, &r.document))
		// A reply must not have a member that is not described.
		strict, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapiDocument))
		must(t, err)
		for _, s := range strict.(object)["components"].(object)["schemas"].(object) {
			if s := s.(object); s["properties"] != nil {
				s["additionalProperties"] = false
			}
		}
		r.compiler = jsonschema.NewCompiler()
		r.compiler.DefaultDraft(jsonschema.Draft2020)
		r.compiler.AssertFormat()
		must(t, r.compiler.AddResource(documentURL, strict))
		r.seen, r.statuses = map[string]bool{}, map[string][]any{}
		for _, c := range r.document["x-codes"].([]any) {
			r.statuses[c.(object)["code"].(string)] = c.(object)["status"].([]any)
		}
	})
}

func (r *replyChecker) schema(t testing.TB, pointer string) *jsonschema.Schema {
	t.Helper()
	s, err := r.compiler.Compile(documentURL + "#" + pointer)
	if err != nil {
		t.Fatalf("compiling the schema %s: %v", pointer, err)
	}
	return s
}

func escaped(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(s)
}

// check compares a reply of a handler with the description.
func (r *replyChecker) check(t testing.TB, e *echo.Echo, method, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	r.load(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := e.NewContext(httptest.NewRequest(method, path, nil), nil)
	e.Router().Find(method, strings.SplitN(path, "?", 2)[0], c)
	if method == "HEAD" {
		method = "GET"
	}
	item, _ := r.document["paths"].(object)[openapiPath(c.Path())].(object)
	op, _ := item[strings.ToLower(method)].(object)
	pointer := "/paths/" + escaped(openapiPath(c.Path())) + "/" + strings.ToLower(method) + "/responses/"
	if op == nil {
		if w.Code < 400 {
			t.Errorf("%s %s is not described, but its status is %d", method, path, w.Code)
		}
		return
	}
	status := strconv.Itoa(w.Code)
	reply, ok := op["responses"].(object)[status].(object)
	kind, _, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if err != nil && w.Body.Len() > 0 {
		t.Errorf("%s %s: status %d without a media type: %v", method, path, w.Code, err)
		return
	}
	if !ok || w.Code >= 400 && kind != jsonReply {
		if w.Code < 400 {
			t.Errorf("%s %s: status %d is not described", method, path, w.Code)
			return
		}
		status, reply = "default", op["responses"].(object)["default"].(object)
	}
	content, _ := reply["content"].(object)
	if w.Body.Len() == 0 {
		if content != nil && method != "GET" && w.Code < 300 {
			t.Errorf("%s %s: status %d has no body", method, path, w.Code)
		}
		r.seen[method+" "+openapiPath(c.Path())+" "+status] = true
		return
	}
	media, ok := content[kind].(object)
	if !ok {
		t.Errorf("%s %s: status %d has the media type %s, which is not described", method, path, w.Code, kind)
		return
	}
	r.seen[method+" "+openapiPath(c.Path())+" "+status+" "+kind] = true
	pointer += status + "/content/" + escaped(kind)
	switch {
	case media["x-events"] != nil:
		for _, ev := range eventsOf(t, w.Body.Bytes()) {
			if media["x-events"].(object)[ev.kind] == nil {
				t.Errorf("%s %s: event %s is not described", method, path, ev.kind)
				continue
			}
			r.valid(t, pointer+"/x-events/"+ev.kind, ev.data, method+" "+path+" "+ev.kind)
		}
	case kind == jsonReply || kind == "application/problem+json":
		r.valid(t, pointer+"/schema", w.Body.Bytes(), method+" "+path)
	}
	if kind == "application/problem+json" {
		var p Problem
		must(t, json.Unmarshal(w.Body.Bytes(), &p))
		if known, ok := r.statuses[p.Code]; ok && !slices.Contains(known, any(float64(w.Code))) || p.Status != w.Code {
			t.Errorf("%s %s: code %s has the status %d", method, path, p.Code, w.Code)
		}
	}
}

func (r *replyChecker) valid(t testing.TB, pointer string, data []byte, what string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err == nil {
		err = r.schema(t, pointer).Validate(v)
	}
	if err != nil {
		t.Errorf("%s differs from its description: %v\n%.2000s", what, err, data)
	}
}

// TestOpenAPIReplies requests every described reply of every operation and
// compares it with the description.
func TestOpenAPIReplies(t *testing.T) {
	var runs Answers
	l := newLedger()
	h := newHandler(t, func(o *Options) {
		o.Ledger, o.KeepAnswers, o.Answers = l, time.Hour, &runs
		o.Sample = fstest.MapFS{"fees.md": {Data: []byte("# Fees")}}
		o.UploadFolders, o.Sites = oneFolder{Uploads: uploadFolder(t)}, oneSite{}
		o.Settings = &panel{part: Part{Name: "english", Languages: 1, State: "missing"}}
		o.Originals = files{"club/guide.pdf": "%PDF-1.4 the guide", "club/handbook/mooring.md": "# Moorings"}
	})
	ask := func(method, path, body string, headers ...string) *httptest.ResponseRecorder {
		t.Helper()
		w := call(h, method, path, body, headers...)
		checker.check(t, h, method, path, w)
		return w
	}
	const question = `{"question":"What is the mooring fee?"}`
	for _, q := range []string{question, `{"question":"drafted"}`, `{"question":"pizza"}`, `{"question":"evil"}`, `{"question":"cut short"}`,
		`{"question":"breaks at once"}`, `{"question":"breaks later"}`, `{"question":"other space"}`, `{"question":"gone"}`,
		`{"question":"index away"}`, `{"question":"index building"}`} {
		ask("POST", "/api/ask", q)
		ask("POST", "/api/ask?html=1&markdown=1&chars=1", q, asEvents...)
	}
	id := into[answerRecord](t, ask("POST", "/api/runs", question), 202).ID
	ask("GET", "/api/runs/"+id+"?markdown=1", "")
	events := eventsOf(t, ask("GET", "/api/runs/"+id+"?html=1", "", asEvents...).Body.Bytes())
	last := ""
	for _, e := range events {
		last = cmp.Or(e.id, last)
	}
	runs.Shutdown(t.Context())
	ask("GET", "/api/runs/"+id, "", "Accept", "text/event-stream", "Last-Event-ID", last)
	ask("POST", "/api/ask", `{"question":"mooring","conversation":"talk","user":"anna"}`)
	for _, r := range []string{"GET /api/conversations", "GET /api/conversations/talk?user=anna",
		`PATCH /api/conversations/talk?user=anna {"name":"Mooring"}`, "DELETE /api/conversations/talk?user=anna"} {
		method, path, _ := strings.Cut(r, " ")
		path, body, _ := strings.Cut(path, " ")
		ask(method, path, body)
	}
	ask("POST", "/api/summarize", `{"document":"club/guide.pdf","max_words":1}`, asEvents...)
	ask("POST", "/api/cite", `{"documents":[{"source":"a"}],"text":"Yes.[1]"}`, asEvents...)
	said := into[response](t, ask("POST", "/v1/responses", `{"model":"ibid","input":"What is the mooring fee?"}`), 200)
	ask("GET", "/v1/responses/"+said.ID, "")
	requests, err := os.ReadFile("testdata/rows/requests.txt")
	must(t, err)
	fill := strings.NewReplacer("RUN", id, "FILE", fileID("club/guide.pdf"))
	for r := range strings.Lines(string(requests)) {
		r = fill.Replace(strings.TrimSuffix(r, "\n"))
		method, rest, _ := strings.Cut(r, " ")
		path, body, _ := strings.Cut(rest, " ")
		accept := jsonReply
		if path == "/mcp" {
			accept += ", " + streamType
		}
		ask(method, path, body, "Content-Type", jsonReply, "Accept", accept)
	}
	ask("GET", "/documents/none", "", "Accept", pageType)
	waiting := newHandler(t, func(o *Options) { o.Indexing = func() Indexing { return Indexing{1, 2, false} } })
	checker.check(t, waiting, "GET", "/readyz", call(waiting, "GET", "/readyz", ""))
	k := newKeyed(t, nil)
	for _, r := range [][3]string{{"GET", resourceMetadata, ""},
		{"GET", "/key", ""}, {"POST", "/key", "key=x"}, {"POST", "/key", "key=" + k.write},
		{"POST", "/key/leave", ""}, {"GET", "/api/runs", ""}} {
		w := call(k, r[0], r[1], r[2], "Content-Type", "application/x-www-form-urlencoded")
		checker.check(t, k.Echo, r[0], r[1], w)
	}

	for path, item := range checker.document["paths"].(object) {
		for method, op := range item.(object) {
			for status, reply := range op.(object)["responses"].(object) {
				content, _ := reply.(object)["content"].(object)
				kinds := slices.Sorted(maps.Keys(content))
				if len(kinds) == 0 {
					kinds = []string{""}
				}
				for _, kind := range kinds {
					want := strings.TrimSpace(strings.ToUpper(method) + " " + path + " " + status + " " + kind)
					// An image needs PDFium, and some pages another server.
					if !checker.seen[want] && kind != "image/png" && status != "default" && !strings.HasPrefix(want, "POST /key") {
						t.Errorf("no request got the reply %s", want)
					}
				}
			}
		}
	}
}

const (
	jsonReply  = "application/json"
	pageType   = "text/html"
	streamType = "text/event-stream"
)

// schemaRoots are the types that openapi.json refers to. It includes the types within them.
func schemaRoots() []any {
	return []any{
		Problem{}, v1Error{}, askRequest{}, summarizeRequest{}, answered{}, answeredBatch{}, searchRequest{}, searchResult{},
		feedbackRequest{}, feedbackEntry{}, feedbackList{}, runRequest{}, runList{}, answerRecord{}, listedConversations{},
		shownConversation{}, namedConversation{}, documentList{}, shownDocument{}, ingest.Change{}, addedDocument{}, citeRequest{},
		citePiece{}, citePrompt{}, rewrite.Result{}, collectionList{}, namedCollection{}, suggestionList{}, addedSample{}, settingsRequest{},
		settingsTest{}, partRequest{}, ShownSettings{}, liveness{}, readiness{}, labels{}, chatRequest{}, completionRequest{},
		chatCompletion{}, responseRequest{}, responseItem{}, response{}, v1Files{}, vectorStoreList{}, vectorSearchRequest{},
		vectorSearchResult{}, v1Models{}, v1Model{}, answer.Retrieved{}, answer.Judged{}, answer.Draft{}, cite.Revised{}, textEvent{},
		cite.Cited{}, cite.Quoted{}, answer.Unanswered{}, answer.Fallback{}, answer.Incomplete{}, answer.Warning{}, answer.Usage{},
		protectedResource{}, blockEvent{}, markdownEvent{}, queued{},
	}
}

// oneSite is a [Sites] that adds one address.
type oneSite struct{}

func (oneSite) SiteStates() []SiteState {
	return []SiteState{{Address: "https://example.org/", Reading: true}}
}

func (oneSite) AddSite(_ context.Context, address, _ string) (ingest.Root, error) {
	if address != "https://example.org/" {
		return ingest.Root{}, &site.RefusedError{Address: address, Reason: "only http and https addresses are fetched"}
	}
	return ingest.Root{Name: "example.org", Path: address, Collection: "default"}, nil
}

// made has the collection that was created for uploads.
type made struct{ UploadFolders }

func (made) CollectionUploads(_ context.Context, name string) (Uploads, error) {
	return nil, ingest.CheckCollection(name)
}
func (made) RootUploads(context.Context, string) (Uploads, string, error) {
	return nil, "", fs.ErrNotExist
}
func (made) Roots(context.Context) ([]ingest.Root, error) { return nil, nil }
func (made) Rename(context.Context, string, string) error { return nil }
func (made) Delete(_ context.Context, name string, _ bool) error {
	if name == "none" {
		return fs.ErrNotExist
	}
	return nil
}

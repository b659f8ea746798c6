package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
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

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/ingest/site"
	"ibid/retrieve"
)

type object = map[string]any

// TestOpenAPI compares openapi.json with the code. Its paths, codes and limits are written
// by hand, as is what a request must have; -update rewrites the rest of the schemas, which
// comes from the Go types and their comments, and who may use a route.
func TestOpenAPI(t *testing.T) {
	var d object
	decoder := json.NewDecoder(bytes.NewReader(openapiDocument))
	decoder.UseNumber() // some are larger than a float64 can be exactly
	must(t, decoder.Decode(&d))
	described := d["paths"].(object)
	for route, access := range accesses() {
		method, pattern, _ := strings.Cut(route, " ")
		path := openapiPath(pattern)
		item, _ := described[path].(object)
		op, ok := item[strings.ToLower(method)].(object)
		if !ok {
			t.Errorf("%s is a route, but openapi.json does not describe it", route)
			continue
		}
		op["operationId"] = operationID(method, path)
		delete(op, "security")
		switch access {
		case public:
			op["x-access"], op["security"] = "everyone", []any{}
		case readers:
			op["x-access"] = "keys that read"
		case writers:
			op["x-access"] = "keys that write"
		case administrators:
			op["x-access"] = "keys for the settings"
		}
	}
	routes := 0
	for _, item := range described {
		routes += len(item.(object))
	}
	if n := len(accesses()); routes > n {
		t.Errorf("openapi.json describes %d routes of %d", routes, n)
	}
	made := newSchemas(t, d["components"].(object)["schemas"].(object))
	for _, v := range schemaRoots() {
		made.of(reflect.TypeOf(v))
	}
	made.made["Problem"]["properties"].(object)["code"].(object)["enum"] = codes(t)
	addPoints(made.made)
	d["components"].(object)["schemas"] = made.made

	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	must(t, e.Encode(d))
	if *update {
		must(t, os.WriteFile("openapi.json", b.Bytes(), 0o644))
		return
	}
	if !bytes.Equal(b.Bytes(), openapiDocument) {
		t.Error("openapi.json differs from the code: go test ./web -run 'TestOpenAPI$' -update")
	}
	w := call(newHandler(t, nil), "GET", "/openapi.json", "")
	if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), b.Bytes()) || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
}

// addPoints adds the members that ?chars=1 adds to replies.
func addPoints(schemas map[string]object) {
	for _, name := range []string{"Citation", "Quoted", "Placed", "Unsupported", "SourcePassage", "Passage", "Closest", "Mark", "Document"} {
		properties, _ := schemas[name]["properties"].(object)
		for _, member := range []string{"start", "end", "text_start", "text_end"} {
			if properties[member] != nil {
				properties[member+"_chars"] = object{"type": "integer", "description": member + " in Unicode characters, with ?chars=1"}
			}
		}
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

// schemas generates JSON schemas from Go types and their comments.
type schemas struct {
	t        *testing.T
	given    object // those of openapi.json
	made     map[string]object
	from     map[string]reflect.Type
	names    map[string]string   // of schemas that differ from their Go types
	comments map[string]string   // of "package.Type" and "package.Type.Field"
	values   map[string][]string // constants of "package.Type"
}

func newSchemas(t *testing.T, given object) *schemas {
	s := &schemas{t: t, given: given, made: map[string]object{}, from: map[string]reflect.Type{}, comments: map[string]string{},
		values: map[string][]string{}, names: datatest.Lines[map[string]string](t, "testdata/rows/schemas.json")[0]}
	module := strings.TrimSuffix(reflect.TypeFor[schemas]().PkgPath(), "/web")
	for room, dir := range map[string]string{"web": ".", "answer": "../answer", "cite": "../cite", "cite/support": "../cite/support",
		"cite/rewrite": "../cite/rewrite",
		"retrieve":     "../retrieve", "ingest": "../ingest"} {
		pkg := module + "/" + room
		for _, file := range parsed(t, dir) {
			for _, decl := range file.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range gen.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						s.comments[pkg+"."+spec.Name.Name] = comment(spec.Doc)
						if !gen.Lparen.IsValid() {
							s.comments[pkg+"."+spec.Name.Name] = comment(gen.Doc)
						}
						if st, ok := spec.Type.(*ast.StructType); ok {
							for _, f := range st.Fields.List {
								for _, n := range f.Names {
									s.comments[pkg+"."+spec.Name.Name+"."+n.Name] = comment(f.Doc, f.Comment)
								}
							}
						}
					case *ast.ValueSpec:
						id, ok := spec.Type.(*ast.Ident)
						if !ok || gen.Tok != token.CONST {
							continue
						}
						for _, v := range spec.Values {
							if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
								text, err := strconv.Unquote(lit.Value)
								must(t, err)
								s.values[pkg+"."+id.Name] = append(s.values[pkg+"."+id.Name], text)
							}
						}
					}
				}
			}
		}
	}
	return s
}

// sourceFiles lists the Go files of a folder, without those of tests.
func sourceFiles(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

func parsed(t testing.TB, dir string) (files []*ast.File) {
	t.Helper()
	for _, name := range sourceFiles(t, dir) {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		must(t, err)
		files = append(files, f)
	}
	return files
}

// comment returns the first comment, without the brackets of Go's references.
func comment(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.TrimSpace(g.Text()); text != "" {
			text = regexp.MustCompile(`\[\*?([\w.]+)\]`).ReplaceAllString(text, "$1")
			return strings.Join(strings.Fields(text), " ")
		}
	}
	return ""
}

// of returns the schema of a type; for a named struct, a reference to it.
func (s *schemas) of(t reflect.Type) object {
	name := t.PkgPath() + "." + t.Name()
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return object{}
	case t == reflect.TypeFor[content]():
		part := object{"type": "object", "properties": object{"type": object{"type": "string", "enum": []string{"text"}},
			"text": object{"type": "string"}}}
		return object{"anyOf": []any{object{"type": "string"}, object{"type": "array", "items": part}}}
	case t == reflect.TypeFor[responseInput]():
		return object{"anyOf": []any{object{"type": "string"}, object{"type": "array", "items": s.of(reflect.TypeFor[responseItem]())}}}
	case t == reflect.TypeFor[stringList]():
		return object{"anyOf": []any{object{"type": "string"}, object{"type": "array", "items": object{"type": "string"}}}}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	case s.values[name] != nil:
		return object{"type": "string", "enum": s.values[name]}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64, reflect.Float32:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		as := s.name(t)
		if other := s.from[as]; other != nil && other != t {
			s.t.Fatalf("two types have the schema name %s: %v and %v; add one to testdata/rows/schemas.json", as, other, t)
		}
		if s.made[as] == nil {
			made, given := object{"type": "object"}, s.givenOf(t)
			s.from[as] = t
			s.made[as] = made
			properties, required := object{}, []string{}
			s.members(t, given, properties, &required, isRequest(t))
			made["properties"] = properties
			if required = append(required, s.givenRequired(t)...); len(required) > 0 {
				slices.Sort(required)
				made["required"] = slices.Compact(required)
			}
			for _, of := range []string{"anyOf", "not"} { // alternatives
				if given[of] != nil {
					made[of] = given[of]
				}
			}
			if strict(t) != "" {
				made["additionalProperties"] = false
			}
			if c := s.comments[name]; c != "" {
				made["description"] = regexp.MustCompile(`^(An? )?`+t.Name()+`\b`).ReplaceAllString(c, as)
			}
		}
		return object{"$ref": "#/components/schemas/" + as}
	}
	s.t.Fatalf("no schema is known for a %v", t)
	return nil
}

// name returns the name in schemas.json, by default that of the Go type with a capital.
func (s *schemas) name(t reflect.Type) string {
	return cmp.Or(s.names[t.String()], strings.ToUpper(t.Name()[:1])+t.Name()[1:])
}

// isRequest reports whether a struct is read from clients, who may leave members out.
func isRequest(t reflect.Type) bool {
	return strings.HasSuffix(t.Name(), "Request") || t == reflect.TypeFor[retrieve.Filter]() || t == reflect.TypeFor[answer.Turn]()
}

// givenOf is the schema of a type in openapi.json.
func (s *schemas) givenOf(t reflect.Type) object {
	given, _ := s.given[s.name(t)].(object)
	return given
}

// givenRequired are the members that a type that is read from clients must have.
func (s *schemas) givenRequired(t reflect.Type) (names []string) {
	if !isRequest(t) && !slices.Contains([]string{"chatMessage", "namedCollection", "namedConversation"}, t.Name()) {
		return nil
	}
	all, _ := s.givenOf(t)["required"].([]any)
	for _, name := range all {
		names = append(names, name.(string))
	}
	return names
}

// limitsIn copies the limits of a member in openapi.json.
func limitsIn(given, p object) {
	if either, _ := given["anyOf"].([]any); len(either) == 2 && either[1].(object)["type"] == "null" {
		given = either[0].(object)
	}
	for _, limit := range []string{"minLength", "maxLength", "pattern", "minimum", "maximum", "minItems", "maxItems", "contains", "enum"} {
		if given[limit] != nil && p[limit] == nil {
			p[limit] = given[limit]
		}
	}
	if items, _ := given["items"].(object); items != nil && items["$ref"] == nil && p["items"] != nil {
		p["items"] = items
	}
	if given["type"] == "null" {
		p["type"] = "null"
	}
}

// members adds the members of a struct and, after them, those of embedded structs.
func (s *schemas) members(t reflect.Type, given, properties object, required *[]string, request bool) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && !ok:
			embedded = append(embedded, f.Type)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		if properties[name] != nil {
			continue
		}
		p := s.of(f.Type)
		omitted := strings.Contains(options, "omit")
		switch {
		case name == "strategy" && t == reflect.TypeFor[askRequest]():
			p["enum"] = answer.Strategies()
		case name == "strategy" && t == reflect.TypeFor[summarizeRequest]():
			p["enum"] = answer.SummaryStrategies()
		}
		if t == reflect.TypeFor[answerRecord]() {
			switch name {
			case "answer":
				p = s.of(reflect.TypeFor[answered]())
			case "error":
				p = s.of(reflect.TypeFor[Problem]())
			case "request":
				p = object{"anyOf": []any{s.of(reflect.TypeFor[askRequest]()), s.of(reflect.TypeFor[summarizeRequest]())}}
			}
		}
		members, _ := given["properties"].(object)
		old, _ := members[name].(object)
		limitsIn(old, p)
		optional := request || f.Type.Kind() == reflect.Pointer && !omitted
		if optional && !slices.Contains(s.givenRequired(t), name) {
			p = object{"anyOf": []any{p, object{"type": "null"}}}
		}
		if c := s.comments[t.PkgPath()+"."+t.Name()+"."+f.Name]; c != "" {
			p["description"] = withMembers(c, t)
		}
		properties[name] = p
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") && !request {
			*required = append(*required, name)
		}
	}
	for _, e := range embedded {
		s.members(e, given, properties, required, request || isRequest(e))
	}
}

// withMembers is the comment of a field with the names that its struct's members have in JSON.
func withMembers(comment string, t reflect.Type) string {
	return regexp.MustCompile(`\b[A-Z]\w*`).ReplaceAllStringFunc(comment, func(word string) string {
		f, ok := t.FieldByName(word)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !ok || name == "-" {
			return word
		}
		return cmp.Or(name, word)
	})
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

// TestOpenAPILimits checks that the limits in the document are those of the code.
func TestOpenAPILimits(t *testing.T) {
	for limit, want := range map[string]int{"AskRequest question maxLength": MaxQuestion, "SearchRequest question maxLength": MaxQuestion,
		"AskRequest top_k maximum": MaxTopK, "AskRequest user maxLength": maxUserName, "AskRequest name maxLength": maxConversationName,
		"FeedbackRequest comment maxLength": MaxComment, "Labels tags maxItems": maxTags, "Labels author maxLength": maxLabel,
		"SummarizeRequest max_words maximum": answer.MaxSummaryWords} {
		words := strings.Fields(limit)
		part := regexp.MustCompile(`(?s)\n   "` + words[0] + `": \{.*?\n     "` + words[1] + `": \{.*?"` + words[2] + `": (\d+)`)
		if found := part.FindSubmatch(openapiDocument); found == nil || string(found[1]) != strconv.Itoa(want) {
			t.Errorf("%s is %s, want %d", limit, found, want)
		}
	}
}

// TestOpenAPIQuery checks that every query parameter in the code is described.
func TestOpenAPIQuery(t *testing.T) {
	for _, name := range inSource(t, ".", `(?:QueryParam|\bq\.Get)\("(\w+)"\)`) {
		if !regexp.MustCompile(`"in": "query",\s+"name": "` + name + `"`).Match(openapiDocument) {
			t.Errorf("the parameter %q is not described", name)
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
	if diff := gocmp.Diff(slices.Compact(used), codes(t)); diff != "" {
		t.Errorf("codes (-source +openapi.json):\n%s", diff)
	}
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
					t.Errorf("%s %s: the reply %s is not described", method, path, status)
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
	statuses map[string][]any // of the codes of problems
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
		t.Fatalf("%s: %v", pointer, err)
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
			t.Errorf("%s %s is not described, but replies %d", method, path, w.Code)
		}
		return
	}
	status := strconv.Itoa(w.Code)
	reply, ok := op["responses"].(object)[status].(object)
	kind, _, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if err != nil && w.Body.Len() > 0 {
		t.Errorf("%s %s: %d without a type: %v", method, path, w.Code, err)
		return
	}
	if !ok || w.Code >= 400 && kind != jsonReply {
		if w.Code < 400 {
			t.Errorf("%s %s: the status %d is not described", method, path, w.Code)
			return
		}
		status, reply = "default", op["responses"].(object)["default"].(object)
	}
	content, _ := reply["content"].(object)
	if w.Body.Len() == 0 {
		if content != nil && method != "GET" && w.Code < 300 {
			t.Errorf("%s %s: %d has no body", method, path, w.Code)
		}
		r.seen[method+" "+openapiPath(c.Path())+" "+status] = true
		return
	}
	media, ok := content[kind].(object)
	if !ok {
		t.Errorf("%s %s: %d is a %s, which is not described", method, path, w.Code, kind)
		return
	}
	r.seen[method+" "+openapiPath(c.Path())+" "+status+" "+kind] = true
	pointer += status + "/content/" + escaped(kind)
	switch {
	case media["x-events"] != nil:
		for _, ev := range eventsOf(t, w.Body.Bytes()) {
			if media["x-events"].(object)[ev.kind] == nil {
				t.Errorf("%s %s: the event %s is not described", method, path, ev.kind)
				continue
			}
			r.valid(t, pointer+"/x-events/"+ev.kind, ev.data, method+" "+path+" "+ev.kind)
		}
	case kind == jsonReply || kind == "application/problem+json":
		r.valid(t, pointer+"/schema", w.Body.Bytes(), method+" "+path)
	}
	if kind == "application/problem+json" {
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Error(err)
		}
		if known, ok := r.statuses[p.Code]; ok && !slices.Contains(known, any(float64(w.Code))) || p.Status != w.Code {
			t.Errorf("%s %s: the code %s has the status %d", method, path, p.Code, w.Code)
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
		t.Errorf("%s is not as described: %v\n%.2000s", what, err, data)
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
	waiting := newHandler(t, func(o *Options) { o.Indexing = func() (int, int, bool) { return 1, 2, false } })
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
					// An image needs PDFium, and some pages need another server.
					if !checker.seen[want] && kind != "image/png" && status != "default" && !strings.HasPrefix(want, "POST /key") {
						t.Errorf("%s: no such reply", want)
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

// schemaRoots are the types that openapi.json refers to. Those inside them follow.
func schemaRoots() []any {
	return []any{
		Problem{}, v1Error{}, askRequest{}, summarizeRequest{}, answered{}, answeredBatch{}, searchRequest{}, searched{},
		feedbackRequest{}, feedbackEntry{},
		listedFeedback{}, backgroundRequest{}, recordPage{}, answerRecord{}, listedConversations{}, shownConversation{},
		namedConversation{}, listing{},
		shownDocument{}, ingest.Change{}, addedDocument{},
		citeRequest{}, citeText{}, citePrompt{}, rewrite.Result{}, listedCollections{}, namedCollection{},
		listedSuggestions{}, addedSample{},
		settingsRequest{}, settingsTest{}, partRequest{}, ShownSettings{},
		liveness{}, readiness{}, labels{}, chatRequest{}, completionRequest{}, completion{}, responsesRequest{}, response{}, v1Files{},
		vectorStores{}, vectorSearchRequest{}, vectorsFound{}, v1Models{}, v1Model{},
		answer.Retrieved{}, answer.Judged{}, answer.Draft{}, cite.Revised{}, textEvent{}, cite.Cited{}, cite.Quoted{}, answer.Unanswered{},
		answer.Fallback{}, answer.Incomplete{},
		answer.Warning{}, answer.Usage{}, protectedResource{}, blockEvent{}, markdownEvent{}, queued{},
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

// made has the collection that was made for uploads.
type made struct{ UploadFolders }

func (made) Into(_ context.Context, name string) (Uploads, error) {
	return nil, ingest.CheckCollection(name)
}
func (made) Of(context.Context, string) (Uploads, string, error) {
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

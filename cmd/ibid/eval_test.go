package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/support"
	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
)

// TestEvalMeasuresTheSearch checks that the measured search returns the documents that
// 'ibid search' does, in the same order.
func TestEvalMeasuresTheSearch(t *testing.T) {
	t.Parallel()
	data, set := t.TempDir(), t.TempDir()
	random := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("harbour boat tea milk winter slipway mast sail rope anchor galley chart room tide wind oar dinghy keel crew " +
		"port lamp storm flag buoy deck cabin map fish net pier")
	text := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = words[min(random.IntN(len(words)), random.IntN(len(words)))]
		}
		return strings.Join(out, " ")
	}
	var corpus, queries, qrels strings.Builder
	for i := range 100 {
		fmt.Fprintf(&corpus, "{\"_id\": \"d%d\", \"text\": %q}\n", i, text(4+random.IntN(30)))
	}
	asked := datatest.Cases(t, 80)
	for i := range asked {
		fmt.Fprintf(&queries, "{\"_id\": \"q%d\", \"text\": %q}\n", i, text(4))
		for d := range 100 {
			fmt.Fprintf(&qrels, "q%d\td%d\t%d\n", i, d, random.IntN(3)*random.IntN(2))
		}
	}
	writeFiles(t, set, map[string]string{"corpus.jsonl": corpus.String(), "queries.jsonl": queries.String(), "qrels.tsv": qrels.String()})
	read, err := eval.ReadSet(os.DirFS(set), "")
	must(t, err)
	details := filepath.Join(t.TempDir(), "details")
	if out, errs, code := ibid(t, data, "eval", "retrieval", set, "--data", data, "--details", details); code != 0 {
		t.Fatalf("eval retrieval: exit code = %d: %s%s", code, out, errs)
	}
	lines, err := os.ReadFile(details)
	must(t, err)
	measured := strings.Split(strings.TrimSpace(string(lines)), "\n")
	if len(measured) != asked {
		t.Fatalf("%d queries measured, want %d", len(measured), asked)
	}
	for i, q := range read.Queries {
		var line struct{ Hybrid map[string]float64 }
		must(t, json.Unmarshal([]byte(measured[i]), &line))
		var ranking []string
		for _, p := range printed[[]struct{ Path string }](t, data, "search", "--json", "--data", data, q.Text) {
			ranking = append(ranking, p.Path)
		}
		want := eval.Metric{Kind: "ndcg", K: 10}.Measure(ranking, read.Grades[q.ID])
		if got := line.Hybrid["ndcg@10"]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: ndcg@10 = %v, want %v as computed from 'ibid search'", q.Text, got, want)
		}
	}
}

func TestSample(t *testing.T) {
	items := make([]int, 100)
	for i := range items {
		items[i] = i
	}
	if got := sample(items, 0); len(got) != 100 {
		t.Errorf("sample of 0 has %d items, want all 100", len(got))
	}
	if got := sample(items, 200); len(got) != 100 {
		t.Errorf("sample of 200 has %d items, want all 100", len(got))
	}
	got := sample(items, 10)
	if len(slices.Compact(slices.Clone(got))) != 10 || !slices.IsSorted(got) || !slices.Equal(got, sample(items, 10)) {
		t.Errorf("sample of 10 = %v, want 10 different items in order, and the same again", got)
	}
}

// sampleReport is about five questions, few enough to count each figure by hand.
func sampleReport() *evalReport {
	right := answered(eval.Question{ID: "q1", Text: "When is tea served?", Kind: "single", Answers: []string{"at four"},
		Expected: "Tea is served at four", Documents: []string{"tea.md"}},
		"Tea is served at four [1]. It is free [1].", "tea.md", retrieved("tea.md", true, "Tea is served at four."),
		retrieved("boats.md", false, ""), retrieved("tea.md", false, "Milk."))
	right.Citations = []cite.Citation{{Number: 1, Document: "tea.md", Quote: "served at four", Support: .9, Verdict: "quoted", TextEnd: 26},
		{Number: 1, Document: "tea.md", Quote: "Milk", Support: .1, Verdict: "weak", TextStart: 27, TextEnd: 42}}
	right.Unsupported = []cite.Unsupported{{TextStart: 27, TextEnd: 42, Reason: "weak"}}
	wrong := answered(eval.Question{ID: "q2", Text: "Where do the boats stand?", Kind: "single", Answers: []string{"slipway"},
		Documents: []string{"boats.md", "harbour.md"}},
		"In the hall [1][2].", "tea.md", retrieved("tea.md", true, ""), retrieved("boats.md", true, ""))
	wrong.Sources = append(wrong.Sources, cite.Source{Number: 2, Document: "boats.md", Title: "Boats"})
	refused := unanswered(eval.Question{ID: "q3", Text: "Who mends the sails?", Answers: []string{"the sailmaker"},
		Documents: []string{"sails.md"}}, "Not said.", retrieved("sails.md", false, ""), retrieved("tea.md", false, ""))
	rightly := unanswered(eval.Question{ID: "q4", Text: "What does gold cost?", Kind: "off-topic", Unanswerable: true}, "Not said.",
		retrieved("tea.md", false, ""), retrieved("boats.md", false, ""), retrieved("sails.md", true, ""))
	open := answered(eval.Question{ID: "q5", Text: "And the weather?"}, "It rains [1].", "weather.md", retrieved("weather.md", true, ""))
	r := &evalReport{Made: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Version: "ibid test", Folder: "club", File: "questions.jsonl",
		Documents: 5, Chunks: 9, Settings: []setting{{"gate", "auto"}, {"model", "m"}, {"rerank-model", ""}},
		Unread: []string{"club/scan.pdf: it has no text"}}
	for i, o := range []*outcome{right, wrong, refused, rightly, open} {
		o.Seconds = []float64{1, 2, .3, .2, .6}[i]
		o.Usage = []answer.Usage{{Calls: 4, PromptTokens: 1000, CompletionTokens: 50},
			{Calls: 2, PromptTokens: 500, CompletionTokens: 10}, {}, {}, {Calls: 1, PromptTokens: 100, CompletionTokens: 20}}[i]
		o.check()
		r.Outcomes = append(r.Outcomes, *o)
	}
	r.measure()
	return r
}

// TestFigures compares every figure with a count by hand from the five outcomes.
func TestFigures(t *testing.T) {
	r := sampleReport()
	want := map[string]float64{
		"passed": 1 / 4., // q4; q5 is open
		// q1 finds its document, q2 one of two, q3 its own.
		"right_found": 1, "recall@5": (1 + .5 + 1) / 3,
		// q1 has two right passages, of which one is kept; q2 one, kept; q3 one, skipped.
		"gate_lost": 1 / 3.,
		"right":     1 / 3., "false_refusals": 1 / 3., "closest": 0, "false_answers": 0,
		// q1, q2 and q5 are answered, with 2, 1 and 1 citations, 1 of them weak.
		"cited": 1, "supported": 3 / 4., "unsupported": 1 / 4., "right_cited": 1,
		"p50": .6, "p95": 2,
		"calls": 7 / 5., "prompt_tokens": 1600 / 5., "completion_tokens": 80 / 5.,
	}
	for _, f := range r.Figures {
		w, ok := want[f.Name]
		if !ok {
			t.Errorf("figure %s = %v has no expected value", f.Name, f.Value)
		}
		if math.Abs(f.Value-w) > 1e-9 {
			t.Errorf("%s is %v, want %v", f.Name, f.Value, w)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("figures not reported: %v", want)
	}
	if r.Passed != 1 || r.Failed != 3 || r.Open != 1 {
		t.Errorf("passed, failed, open = %d, %d, %d; want 1, 3, 1", r.Passed, r.Failed, r.Open)
	}
}

func TestReportText(t *testing.T) { datatest.Golden(t, "testdata/report.txt", sampleReport().text()) }

// TestFiguresAreDocumented checks that the page on measuring documents every figure.
func TestFiguresAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("eval/README.md")
	must(t, err)
	for _, f := range knownFigures() {
		if !strings.Contains(string(readme), "`"+f.Name+"`") {
			t.Errorf("the page doesn't document the figure %s", f.Name)
		}
	}
}

// retrieved returns a passage retrieved from a document, kept or not.
func retrieved(document string, kept bool, text string) tracedPassage {
	p := tracedPassage{Kept: kept, Verdict: answer.Relevant}
	p.ID, p.Document, p.Text = document+"#1", document, text
	if !kept {
		p.Verdict = answer.Irrelevant
	}
	return p
}

// answered returns an outcome whose answer cites a document.
func answered(q eval.Question, text, document string, found ...tracedPassage) *outcome {
	return &outcome{Question: q, Retrieved: found, Answer: cite.Answer{Answered: true, Text: text,
		Sources:   []cite.Source{{Number: 1, Document: document, Title: document}},
		Citations: []cite.Citation{{Number: 1, Document: document, Verdict: support.Quoted, TextEnd: len(text)}}}}
}

func unanswered(q eval.Question, text string, found ...tracedPassage) *outcome {
	return &outcome{Question: q, Retrieved: found, Answer: cite.Answer{Reason: "nothing_relevant", Text: text}}
}

// TestOutcomes checks the rows of testdata/outcomes.txt.
func TestOutcomes(t *testing.T) {
	found := map[string]tracedPassage{
		"found":   retrieved("tea.md", true, "Black  tea is\nserved at four."),
		"skipped": retrieved("tea.md", false, "Black tea is served at four."),
		"other":   retrieved("boats.md", true, "The boats are blue."),
		"green":   retrieved("tea.md", true, "Green tea is served at five."),
	}
	faults := map[string]func(o *outcome){
		"nothing cited": func(o *outcome) { o.Sources, o.Citations = nil, nil },
		"a sentence without support": func(o *outcome) {
			o.Unsupported = []cite.Unsupported{{TextStart: 23, TextEnd: 38, Reason: "weak"}}
		},
		"broken off": func(o *outcome) { o.Incomplete, o.Reason = true, "the server closed the connection" },
		"error":      func(o *outcome) { o.Error = "the model is gone" },
	}
	for _, row := range datatest.Rows(t, "testdata/outcomes.txt", "outcomes")[1:] {
		var q eval.Question
		must(t, json.Unmarshal([]byte("{"+strings.ReplaceAll(row[1], "'", `"`)+"}"), &q))
		var passages []tracedPassage
		for name := range strings.FieldsSeq(row[4]) {
			passages = append(passages, found[name])
		}
		o, why := unanswered(q, "No.", passages...), []string{}
		if row[2] != "" {
			o = answered(q, row[2], row[3], passages...)
		}
		if change := faults[row[0]]; change != nil {
			change(o)
		}
		if row[6] != "" {
			why = strings.Split(row[6], " | ")
		}
		o.check()
		if diff := cmp.Diff(why, o.Why); diff != "" || string(o.Status) != row[5] {
			t.Errorf("%s: status = %s, want %s; why (-want +got)\n%s", row[0], o.Status, row[5], diff)
		}
	}
}

// TestRightPassages checks that passages are right by their quotes if the question has
// some, and by their document otherwise; excerpts are shortened.
func TestRightPassages(t *testing.T) {
	long, quoted := retrieved("a.md", true, strings.Repeat("é", 700)), retrieved("b.md", true, "at four")
	for _, test := range []struct {
		question eval.Question
		want     []bool
	}{
		{eval.Question{Documents: []string{"a.md"}}, []bool{true, false}},
		{eval.Question{Documents: []string{"a.md"}, Quotes: []string{"At  four"}}, []bool{false, true}},
		{eval.Question{}, []bool{false, false}},
	} {
		o := &outcome{Question: test.question, Retrieved: []tracedPassage{long, quoted}}
		o.check()
		if got := []bool{o.Retrieved[0].Right, o.Retrieved[1].Right}; !slices.Equal(got, test.want) {
			t.Errorf("%+v: right = %v, want %v", test.question, got, test.want)
		}
		if got := o.Retrieved[0].Text; got != strings.Repeat("é", 600)+"…" {
			t.Errorf("excerpt has %d bytes, want 600 characters and an ellipsis", len(got))
		}
	}
}

// checkPage checks that a page loads and runs nothing, and that its links have targets.
func checkPage(t *testing.T, page string) {
	t.Helper()
	ids, style, policy := map[string]bool{}, "", ""
	var links []string
	for z := html.NewTokenizer(strings.NewReader(page)); z.Next() != html.ErrorToken; {
		token := z.Token()
		if token.Type == html.TextToken && strings.Contains(token.Data, "{") && style == "" {
			style = token.Data
		}
		if strings.Contains(" script img iframe link base object embed form ", " "+token.Data+" ") && token.Type != html.TextToken {
			t.Errorf("the page has a <%s>", token.Data)
		}
		for _, a := range token.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), strings.Contains(" style src srcset action ", " "+a.Key+" "), a.Key == "href" && a.Val[0] != '#':
				t.Errorf("the page has <%s %s=%q>", token.Data, a.Key, a.Val)
			case a.Key == "href":
				links = append(links, a.Val[1:])
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("two elements have the id %q", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			case a.Key == "content" && strings.HasPrefix(a.Val, "default-src 'none'; "):
				policy = a.Val
			}
		}
	}
	for _, to := range links {
		if !ids[to] {
			t.Errorf("link to #%s, which doesn't exist", to)
		}
	}
	sum := sha256.Sum256([]byte(style))
	if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("policy %q doesn't allow exactly the page's style", policy)
	}
	if i := strings.IndexFunc(page, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == '\u202e' || r == '\u2066' || r == '\ufeff'
	}); i >= 0 {
		t.Errorf("hidden character in the page: %q", page[i:i+3])
	}
}

func TestReportPage(t *testing.T) {
	hostile := sampleReport()
	for i := range hostile.Outcomes {
		o := &hostile.Outcomes[i]
		o.Question.Text, o.Text, o.Reason = `</style><script>document.title = "taken"</script>`, "a\u202egnp.exe\u2066 nul\x00 \xff",
			`"><img src=x onerror=alert(1)>`
		o.Why, o.Status = []string{`<iframe src="https://evil.example/">`, "{{.Version}}"}, failedStatus
		for j := range o.Citations {
			o.Citations[j].TextStart, o.Citations[j].TextEnd = 0, len(o.Text)
		}
	}
	hostile.Failed = len(hostile.Outcomes)
	for name, test := range map[string]struct {
		report *evalReport
		want   []string
	}{
		"sample": {sampleReport(), []string{"no cited passage supports “It is free [1].”", "the gate skipped every right passage: sails.md#1",
			"<strong>1</strong> passed, <strong>3</strong> failed, <strong>1</strong> open"}},
		"hostile": {hostile, []string{"agnp.exe nul \ufffd", "&lt;script&gt;document.title", "{{.Version}}"}},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			must(t, test.report.writeHTML(&b))
			checkPage(t, b.String())
			for _, want := range test.want {
				if !strings.Contains(strings.ReplaceAll(b.String(), "&#43;", "+"), want) {
					t.Errorf("page lacks %q", want)
				}
			}
		})
	}
}

package eval

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// hostileTexts try to leave their place in the page.
var hostileTexts = [...]string{
	`<script>document.title = "taken"</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</style><style>body{display:none}</style>`,
	`</title></svg></details></template><iframe src="https://evil.example/">`, `<!-- `, `]]>`, `{{.Version}}`, `javascript:alert(1)`,
	"a\u202egnp.exe\u2066", "nul\x00bell\x07escape\x1b[2J", "\xff\xfe\xc3", `<base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example/">`,
	`&lt;script&gt;`, "line\nbreak\ttab", `<a href="https://evil.example/">x</a>`,
}

// hostileReport has a hostile text in the place of every text of a report.
func hostileReport(t *testing.T) *Report {
	t.Helper()
	r := compared(t)
	n := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			if v.CanSet() && v.Type() == reflect.TypeFor[string]() {
				v.SetString(hostileTexts[n%len(hostileTexts)] + fmt.Sprint(n))
				n++
			}
		case reflect.Pointer:
			if !v.IsNil() {
				fill(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if name := v.Type().Field(i).Name; name != "Figures" && name != "Differences" && name != "Made" {
					fill(v.Field(i))
				}
			}
		}
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		o.Drafts = []Draft{{1, "x"}}
		o.Warnings = []string{"x"}
		o.Steps = []Step{{Step: 1, Role: "answer", Reason: "same", Invented: []int{9}, Lost: []int{1}}, {Reason: "budget"}}
		o.Question.Quotes, o.Question.Expected, o.Question.Words = []string{"x"}, "x", []string{"y"}
		o.Question.Documents, o.Question.Pages = []string{"x"}, [][]int{{2}}
		o.Status, o.Cause = Failed, causes[i%len(causes)]
	}
	r.Causes = nil
	for _, c := range causes[:5] {
		r.Causes = append(r.Causes, CauseCount{c, 1})
	}
	fill(reflect.ValueOf(r).Elem())
	if n < 150 {
		t.Fatalf("only %d texts", n)
	}
	return r
}

// checkPage holds a page against what it promises, whatever its texts are.
func checkPage(t *testing.T, page []byte) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	ids, links := map[string]bool{}, map[string]bool{}
	var style, policy string
	counts := map[string]int{}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode {
			counts[n.Data]++
			attributes := map[string]string{}
			for _, a := range n.Attr {
				attributes[a.Key] = a.Val
				switch {
				case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src", a.Key == "srcset", a.Key == "action":
					t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
				case a.Key == "href" && !strings.HasPrefix(a.Val, "#"):
					t.Errorf("a link leads to %q", a.Val)
				case a.Key == "href":
					links[a.Val[1:]] = true
				case a.Key == "id" && ids[a.Val]:
					t.Errorf("two elements have the id %q", a.Val)
				case a.Key == "id":
					ids[a.Val] = true
				}
			}
			switch n.Data {
			case "script", "img", "iframe", "link", "base", "object", "embed", "form":
				t.Errorf("there is a <%s>", n.Data)
			case "style":
				style += n.FirstChild.Data
			case "meta":
				if strings.EqualFold(attributes["http-equiv"], "refresh") {
					t.Error("the page goes elsewhere")
				}
				if attributes["http-equiv"] == "Content-Security-Policy" {
					policy = attributes["content"]
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	for to := range links {
		if !ids[to] {
			t.Errorf("a link leads to #%s, which is not there", to)
		}
	}
	sum := sha256.Sum256([]byte(style))
	if counts["style"] != 1 || !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || !strings.HasPrefix(policy, "default-src 'none'; ") {
		t.Errorf("%d styles; the policy %q does not name theirs, or lets something else in", counts["style"], policy)
	}
	for _, name := range []string{"h1", "main"} {
		if counts[name] != 1 {
			t.Errorf("%d <%s>", counts[name], name)
		}
	}
	for _, r := range string(page) {
		if r < ' ' && r != '\n' && r != '\t' || r == '\u202e' || r == '\u2066' || r == '\ufeff' {
			t.Errorf("there is a %U in the page", r)
		}
	}
}

func TestPage(t *testing.T) {
	for name, r := range map[string]*Report{"sample": sampleReport(t), "compared": compared(t), "hostile": hostileReport(t), "one": oneQuestion(t)} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := r.WriteHTML(&b); err != nil {
				t.Fatal(err)
			}
			checkPage(t, b.Bytes())
			if name == "hostile" {
				for _, want := range []string{"⟨U+202E⟩gnp.exe⟨U+2066⟩", "nul⟨U+0000⟩bell⟨U+0007⟩escape⟨U+001B⟩[2J", "&lt;script&gt;document.title", "{{.Version}}"} {
					if !strings.Contains(strings.ReplaceAll(b.String(), "&#43;", "+"), want) {
						t.Errorf("%q does not stand in the page", want)
					}
				}
			}
			if name == "sample" {
				for _, want := range []string{"<mark title=\"nothing cited supports this\">It is free [1].</mark>", "the gate skipped every right passage: sails.md#1",
					"<strong>1</strong> passed, <strong>3</strong> failed, <strong>1</strong> open"} {
					if !strings.Contains(b.String(), want) {
						t.Errorf("%q does not stand in the page", want)
					}
				}
			}
		})
	}
}

// oneQuestion is the smallest report there is.
func oneQuestion(t *testing.T) *Report {
	t.Helper()
	r := &Report{Folder: "x", Outcomes: []Outcome{{Question: Question{ID: "q", Text: "?"}, Reason: "nothing_found", Text: "No."}}}
	r.Outcomes[0].Check()
	r.Measure(nil)
	return r
}

func TestUnits(t *testing.T) {
	for _, test := range []struct {
		unit Unit
		x    float64
		want string
	}{
		{ShareUnit, .12345, "0.123"}, {SecondsUnit, .0000123, "12 µs"}, {SecondsUnit, .01234, "12.3 ms"}, {SecondsUnit, .4567, "457 ms"}, {SecondsUnit, 1.234, "1.23 s"},
		{CountUnit, 3, "3"}, {CountUnit, 3.14159, "3.14"}, {MoneyUnit, .00123456, "0.001235"},
	} {
		if got := test.unit.Write(test.x); got != test.want {
			t.Errorf("%v %s is written %q, want %q", test.x, test.unit, got, test.want)
		}
	}
	if up, down, same := CountUnit.WriteChange(2), CountUnit.WriteChange(-2), CountUnit.WriteChange(0); up != "+2" || down != "−2" || same != "0" {
		t.Error(up, down, same)
	}
}

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// checkPage checks that a page loads and runs nothing.
func checkPage(t *testing.T, page []byte) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	must(t, err)
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
	if counts["style"] != 1 || !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") ||
		!strings.HasPrefix(policy, "default-src 'none'; ") {
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

func TestReportPage(t *testing.T) {
	hostile := sampleReport()
	for i := range hostile.Outcomes {
		o := &hostile.Outcomes[i]
		o.Question.Text, o.Text, o.Reason = `</style><script>document.title = "taken"</script>`, "a\u202egnp.exe\u2066 nul\x00 \xff",
			`"><img src=x onerror=alert(1)>`
		o.Why, o.Status, o.Cause = []string{`<iframe src="https://evil.example/">`, "{{.Version}}"}, failedStatus, atGate
		for j := range o.Citations {
			o.Citations[j].TextStart, o.Citations[j].TextEnd = 0, len(o.Text)
		}
	}
	hostile.Causes = []causeCount{{atGate, len(hostile.Outcomes)}}
	for name, test := range map[string]struct {
		report *evalReport
		want   []string
	}{
		"sample": {sampleReport(), []string{"nothing cited supports “It is free [1].”", "the gate skipped every right passage: sails.md#1",
			"<strong>1</strong> passed, <strong>3</strong> failed, <strong>1</strong> open"}},
		"hostile": {hostile, []string{"⟨U+202E⟩gnp.exe⟨U+2066⟩ nul⟨U+0000⟩", "&lt;script&gt;document.title", "{{.Version}}"}},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			must(t, test.report.writeHTML(&b))
			checkPage(t, b.Bytes())
			for _, want := range test.want {
				if !strings.Contains(strings.ReplaceAll(b.String(), "&#43;", "+"), want) {
					t.Errorf("the page does not contain %q", want)
				}
			}
		})
	}
}

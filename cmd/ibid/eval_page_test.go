package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// checkPage checks that a page loads and runs nothing, and that its links lead somewhere.
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
			t.Errorf("there is a <%s>", token.Data)
		}
		for _, a := range token.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), strings.Contains(" style src srcset action ", " "+a.Key+" "), a.Key == "href" && a.Val[0] != '#':
				t.Errorf("<%s %s=%q>", token.Data, a.Key, a.Val)
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
			t.Errorf("a link leads to #%s, which is not there", to)
		}
	}
	sum := sha256.Sum256([]byte(style))
	if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("the policy %q does not name the style, or lets something else in", policy)
	}
	if i := strings.IndexFunc(page, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == '\u202e' || r == '\u2066' || r == '\ufeff'
	}); i >= 0 {
		t.Errorf("there is a hidden character in the page: %q", page[i:i+3])
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
			checkPage(t, b.String())
			for _, want := range test.want {
				if !strings.Contains(strings.ReplaceAll(b.String(), "&#43;", "+"), want) {
					t.Errorf("the page does not contain %q", want)
				}
			}
		})
	}
}

package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/answer/trial"
	"ibid/data/datatest"
)

// examined returns the findings of 'ibid doctor --json', by check.
func examined(t *testing.T, data string, args ...string) (checks map[string]finding, code int) {
	t.Helper()
	out, errs, code := ibid(t, data, append([]string{"doctor", "--json", "--no-self-test=false"}, args...)...)
	var got struct {
		OK     bool
		Checks []finding
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("doctor --json: %v: %s%s", err, out, errs)
	}
	if got.OK != (code == 0) {
		t.Errorf("ok = %t with exit code %d", got.OK, code)
	}
	checks = map[string]finding{}
	for _, f := range got.Checks {
		checks[f.Check] = f
		if f.State != stateOK && f.Next == "" {
			t.Errorf("finding has no next step: %+v", f)
		}
	}
	return checks, code
}

// good is a model that replies to every prompt as asked.
func good(r openaitest.Request) openaitest.Reply {
	for _, q := range trial.Questions() {
		passage := regexp.MustCompile(`\[(\d)\] Notes\n[^\n]*` + regexp.QuoteMeta(q.Answer)).FindStringSubmatch(r.User)
		_, statement, _ := strings.Cut(r.User, "Statement: ")
		switch {
		case !strings.Contains(r.User, "Question: "+q.Text):
		case r.Role == "verify" && strings.Contains(statement, q.Answer):
			return openaitest.Reply{Text: "yes"}
		case r.Role == "verify":
			return openaitest.Reply{Text: "no"}
		case passage == nil:
			return openaitest.Reply{Text: "NO ANSWER"}
		default:
			return openaitest.Reply{Text: q.Answer + ".[" + passage[1] + "]"}
		}
	}
	if strings.Contains(r.User, "one to twelve") {
		return openaitest.Reply{Text: "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve"}
	}
	return openaitest.Reply{Text: "read"}
}

func TestDoctorModel(t *testing.T) {
	t.Parallel()
	for _, test := range datatest.Lines[struct {
		Name, Check, State, Says string
		Code                     int
		Args                     []string
		To                       string // a part of the prompts, or their role, for which the good reply is replaced
		Cited                    bool   // only in prompts that ask for citations
		Reply                    json.RawMessage
	}](t, "testdata/models.jsonl") {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			url := openaitest.Start(t, &openaitest.Handler{Reply: func(r openaitest.Request) openaitest.Reply {
				reply := good(r)
				if test.Reply != nil && strings.Contains(r.Role+"\n"+r.User, test.To) && (!test.Cited || strings.HasSuffix(reply.Text, "]")) {
					if err := json.Unmarshal(test.Reply, &reply); err != nil {
						t.Error(err)
					}
				}
				return reply
			}})
			args := append([]string{"--model", "test-model", "--base-url", url}, test.Args...)
			if !slices.Contains([]string{"judge", "writer", "self-test"}, test.Check) {
				args = append(args, "--no-self-test")
			}
			checks, code := examined(t, t.TempDir(), args...)
			f := checks[test.Check]
			if f.State != test.State || !strings.Contains(f.Detail+"\n"+f.Next, test.Says) || code != test.Code {
				t.Errorf("exit code = %d, finding = %+v; want %d, %s and %q", code, f, test.Code, test.State, test.Says)
			}
		})
	}
}

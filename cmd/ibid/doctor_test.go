package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/answer/trial"
)

// examined is what 'ibid doctor --json' says, by check.
func examined(t *testing.T, data string, args ...string) (checks map[string]finding, code int) {
	t.Helper()
	out, errs, code := ibid(t, data, append([]string{"doctor", "--json", "--no-self-test=false"}, args...)...)
	var got struct {
		OK     bool
		Checks []finding
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if got.OK != (code == 0) {
		t.Errorf("ok is %t, and the exit code %d", got.OK, code)
	}
	checks = map[string]finding{}
	for _, f := range got.Checks {
		checks[f.Check] = f
		if f.State != stateOK && f.Next == "" {
			t.Errorf("no next step in %+v", f)
		}
	}
	return checks, code
}

// good is a model that does all that is asked of it.
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
	// change gives the good model a fault for the prompts that hold a text.
	change := func(in string, change func(*openaitest.Reply)) func(openaitest.Request) openaitest.Reply {
		return func(r openaitest.Request) openaitest.Reply {
			reply := good(r)
			if strings.Contains(r.Role+"\n"+r.User, in) {
				change(&reply)
			}
			return reply
		}
	}
	fault := func(f openaitest.Fault) func(*openaitest.Reply) {
		return func(r *openaitest.Reply) { r.Fault = f }
	}
	text := func(s string) func(*openaitest.Reply) { return func(r *openaitest.Reply) { r.Text = s } }
	for _, test := range []struct {
		name, check, state, says string
		code                     int
		reply                    func(openaitest.Request) openaitest.Reply
		args                     []string
	}{
		{name: "good", check: "writer", state: stateOK, says: "4 of 4 answers are right, and 4 of these cite", reply: good},
		{name: "good window", check: "context", state: stateOK, says: "was read in full", reply: good},
		{name: "good judge", check: "judge", state: stateOK, says: "AUROC 1.00 (48 verdicts, 50 %", reply: good},
		{name: "good stream", check: "model", state: stateOK, says: "first words after", reply: good},
		{name: "cuts the prompt", check: "context", state: stateFailed, says: "OLLAMA_CONTEXT_LENGTH", code: 1,
			reply: change("Below is a log", func(r *openaitest.Reply) { r.PromptTokens = 2048 })},
		{name: "small window", check: "context", state: stateFailed, says: "set --context-tokens (4096 now)", code: 1,
			reply: change("Below is a log", fault(openaitest.ContextLength))},
		{name: "no usage", check: "context", state: stateWarning, says: "does not report",
			reply: change("", fault(openaitest.NoUsage))},
		{name: "ignores stream", check: "model", state: stateWarning, says: "not as a stream",
			reply: change("", fault(openaitest.PlainJSON))},
		{name: "broken stream", check: "model", state: stateFailed, says: "broke off", code: 1,
			reply: change("", fault(openaitest.NoFinish))},
		{name: "no such model", check: "endpoint", state: stateWarning, says: "it lists test-model", reply: good,
			args: []string{"--model", "nosuch"}},
		{name: "silent", check: "model", state: stateFailed, says: "without text", code: 1, reply: change("one to twelve", text(""))},
		{name: "chatty judge", check: "judge", state: stateWarning, says: "AUROC 0.50",
			reply: change("verify", text("Well, that depends on how you look at it."))},
		{name: "agreeing judge", check: "judge", state: stateWarning, says: "100 % of them yes", reply: change("verify", text("yes"))},
		{name: "answers nothing", check: "writer", state: stateWarning, says: "0 of 4 answers are right",
			reply: change("answer", func(r *openaitest.Reply) {
				if strings.HasSuffix(r.Text, "]") {
					r.Text = "Perhaps."
				}
			})},
		{name: "fails while it is tried", check: "self-test", state: stateFailed, says: "not finished: ", code: 1,
			reply: change("verify", fault(openaitest.BadRequest))},
		{name: "another gate model", check: "gate model", state: stateOK, says: "small: first words", reply: good,
			args: []string{"--gate-model", "small"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			url := openaitest.Start(t, &openaitest.Handler{Reply: test.reply})
			args := append([]string{"--model", "test-model", "--base-url", url}, test.args...)
			if !slices.Contains([]string{"judge", "writer", "self-test"}, test.check) {
				args = append(args, "--no-self-test")
			}
			checks, code := examined(t, t.TempDir(), args...)
			f := checks[test.check]
			if f.State != test.state || !strings.Contains(f.Detail+"\n"+f.Next, test.says) || code != test.code {
				t.Errorf("exit code %d, %+v", code, f)
			}
		})
	}
}

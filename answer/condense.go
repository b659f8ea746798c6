package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ibid/answer/prompt"
	"ibid/answer/replies"
	"ibid/retrieve"
)

// condenseTokens is how many tokens longer than a question its standalone form
// may be.
const condenseTokens = 256

// turnTokens is what a turn costs in a prompt in addition to its text.
const turnTokens = 4

// condenseQuestion rewrites a follow-up as a standalone question. If no model is set, it
// applies a rule, which may need a search. If the model fails, the question is unchanged.
func (f *finder) condenseQuestion(ctx context.Context) (string, error) {
	q := f.question
	f.writer.Question = q.Text
	if len(q.History) == 0 {
		return q.Text, nil
	}
	length := f.writer.Count(q.Text) + condenseTokens
	turns, err := f.latestTurns(length)
	if err != nil {
		return "", err
	}
	if f.Model == nil || len(turns) == 0 {
		return followUp(q.Text, q.History, q.CitedUnder, func(question, whole string) (bool, error) {
			return f.foundTogether(ctx, question, whole)
		})
	}
	p, err := f.writePrompt(RoleCondense, prompt.Slots{History: turns})
	if err != nil {
		return "", err
	}
	p.MaxTokens = length
	standalone, err := f.rewordQuestion(ctx, p)
	return cmp.Or(standalone, q.Text), err
}

// foundTogether reports whether the best passage for the whole, completed question has at least
// as many terms of the original question as the best passage for the original. It reports false
// if the original has several terms and its best passage has them all, since it then needs no
// further words.
func (f *finder) foundTogether(ctx context.Context, question, whole string) (bool, error) {
	terms, has := retrieve.Terms(question), [2]int{}
	for i, text := range []string{question, whole} {
		found, err := f.Retriever.Search(ctx, retrieve.Query{Text: text, K: 1, Filter: f.question.Filter})
		if err != nil {
			return false, fmt.Errorf("searching: %w", err) // without the question, which must not be logged
		}
		for _, p := range found {
			of := retrieve.Terms(p.Title + " " + p.Heading + " " + p.Text)
			for _, t := range terms {
				if slices.Contains(of, t) {
					has[i]++
				}
			}
		}
	}
	return has[1] >= has[0] && (len(terms) == 1 || has[0] < len(terms)), nil
}

// translateQuestion returns the question in the language of the documents, for searching only.
// It uses a stored translation or asks the model. It returns "" if the model fails.
func (f *finder) translateQuestion(ctx context.Context, language string) (string, error) {
	question := f.standalone
	p, err := f.writePrompt(RoleTranslate, prompt.Slots{Language: language})
	if err != nil || !f.canAfford(f.promptSize(p)+f.leastTokens(question)) {
		return "", err
	}
	p.MaxTokens = 2*f.writer.Count(question) + condenseTokens
	known, key := cmp.Or(f.Translations, &Translations{}), language+"\n"+question
	if kept, ok := known.kept.Load(key); ok {
		c := f.newCall(p)
		if !c.loadReply(ctx) {
			c.text, c.finish = []byte(kept.(string)), "stop"
			c.saveReply(ctx) // so that a resumed answer searches with the same text
		}
		f.addUsage(c)
		return findQuestion(string(c.text)), nil
	}
	q, err := f.rewordQuestion(ctx, p)
	if q != "" && q != question {
		if known.count.Add(1)%256 == 0 { // the store is full
			known.kept.Clear()
		}
		known.kept.Store(key, q)
	}
	return q, err
}

// Translations are questions that a model has translated, up to 256 of them. The zero
// value is empty. It is safe for concurrent use.
type Translations struct {
	kept  sync.Map // the translation, by language and question
	count atomic.Int64
}

// rewordQuestion returns the model's version of the question: the first line of its reply. If
// the model fails or the version is too long, it warns and returns "".
func (f *finder) rewordQuestion(ctx context.Context, p Prompt) (string, error) {
	c := f.newCall(p)
	err := c.readWhole(ctx, f.Model)
	f.addUsage(c)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if isUnusable(err) && (f.NoFallback || !allowsFallback(ctx, err)) {
		return "", err
	}
	reply := string(c.text)
	if c.finish == "length" { // the last line is cut
		reply = reply[:strings.LastIndexByte(reply, '\n')+1]
	}
	q := findQuestion(reply)
	if reason, _ := (replies.NonAnswers{NoAnswer: true}).Reason(reply); err == nil && reason != "" {
		q, err = "", errors.New("the model did not rewrite it")
	}
	if err == nil && (q == "" && c.finish == "length" || len(q) > MaxQuestionBytes) {
		err = errors.New("the model's version of it was too long")
	}
	if err != nil {
		f.warn("the question was searched for unchanged: %s", err)
		return "", nil
	}
	return q, nil
}

// latestTurns returns the latest turns of the history that fit half of the context window, or
// less if the question and a reply of the given length leave less room, or if the budget
// does.
func (f *finder) latestTurns(length int) ([]prompt.Turn, error) {
	w, q := f.writer, f.question
	overhead, err := w.Overhead(prompt.Condense, 0)
	if err != nil {
		return nil, err
	}
	room := min(w.Window()/2, w.Window()-overhead-length)
	if f.budget > 0 {
		room = min(room, f.budget-overhead-length-f.leastTokens(q.Text))
	}
	var turns []prompt.Turn
	for i := len(q.History) - 1; i >= 0 && room > turnTokens; i-- {
		t := prompt.Turn(q.History[i])
		if t.Content = w.Fit(strings.TrimSpace(prompt.Inert(t.Content)), room-turnTokens); t.Content != "" {
			turns = append([]prompt.Turn{t}, turns...)
			room -= w.Count(t.Content) + turnTokens
		}
	}
	return turns, nil
}

// preamble matches the words that models write before the question.
var preamble = regexp.MustCompile(`(?i)^[*_#\s]*(?:(?:sure|certainly|of course|okay|ok|here)\b[^:?]*:|` +
	`(?:the )?(?:standalone |rewritten |rephrased |translated )?question(?: in \p{L}+)?:)[*_\s]*`)

// findQuestion returns the question in the reply to condense.tmpl or translate.tmpl: the first line
// that is not just a preamble, without the preamble and the quotes around it.
func findQuestion(reply string) string {
	for line := range strings.Lines(reply) {
		line = trimQuotes(preamble.ReplaceAllString(trimQuotes(line), ""))
		if line != "" && !strings.HasSuffix(line, ":") {
			return line
		}
	}
	return ""
}

func trimQuotes(s string) string { return strings.Trim(s, "*`\"'“”„«»「」 \t\r\n") }

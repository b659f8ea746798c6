package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// Grade reads a judge's reply as a verdict, in any case and with any quotes,
// asterisks and final punctuation around it: one of the known words by itself,
// after a label ("Answer: yes") or as the only member of a JSON object, or a yes
// or no that a sentence begins with ("No, the passage does not say."). Anything
// else is [Unparsable].
func Grade(reply string) Decision {
	decision, _ := grade(reply)
	return decision
}

var (
	gradeLabel = regexp.MustCompile(`^(?i:answer|verdict|relevant|relevance|decision|score)[ *]*[:=]`)
	gradeJSON  = regexp.MustCompile(`^(?i:json\s*)?(\{(?s:.*)\})$`)
	// gradeFirst is a yes or no that decides whatever follows, gradeNumber one that
	// does not ("No. 5 is the jetty").
	gradeFirst  = regexp.MustCompile("^((?i:yes|no))[\"'`*]*(?:[,.;:!–—\r\n]| +[-–—\r\n])")
	gradeNumber = regexp.MustCompile(`^(?i:no)\. *\pN`)
)

// grade is Grade. It also returns what follows a verdict that a sentence begins
// with.
func grade(reply string) (decision Decision, rest string) {
	said := undress(reply)
	if decision = gradeWord(said); decision != Unparsable {
		return decision, ""
	}
	said = undress(said[len(gradeLabel.FindString(said)):])
	if decision = gradeWord(said); decision != Unparsable {
		return decision, ""
	}
	if object := gradeJSON.FindStringSubmatch(said); object != nil {
		said = undress(onlyMember(object[1]))
	}
	if decision = gradeWord(said); decision != Unparsable || gradeNumber.MatchString(said) {
		return decision, ""
	}
	if first := gradeFirst.FindStringSubmatch(said); first != nil {
		return gradeWord(first[1]), said[len(first[0]):]
	}
	return Unparsable, ""
}

// undress removes what may be around a verdict.
func undress(s string) string {
	isSpaceOr := func(marks string) func(rune) bool {
		return func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(marks, r) }
	}
	s = strings.TrimLeftFunc(s, isSpaceOr("\"'`*"))
	return strings.TrimRightFunc(s, isSpaceOr("\"'`*.,;:!?"))
}

func gradeWord(s string) Decision {
	switch strings.ToLower(s) {
	case "yes", "y", "true", "relevant", "1":
		return Relevant
	case "no", "n", "false", "irrelevant", "not relevant", "0":
		return Irrelevant
	}
	return Unparsable
}

// onlyMember returns the value of a JSON object's only member, if that is a word
// or a number.
func onlyMember(object string) string {
	d := json.NewDecoder(strings.NewReader(strings.ToLower(object)))
	d.UseNumber()
	var tokens []json.Token
	for t, err := d.Token(); err == nil; t, err = d.Token() {
		tokens = append(tokens, t)
	}
	if _, err := d.Token(); len(tokens) != 4 || !errors.Is(err, io.EOF) {
		return ""
	}
	switch tokens[2].(type) {
	case string, bool, json.Number:
		return fmt.Sprint(tokens[2])
	}
	return ""
}

// A judgement reads a judge's reply as it streams: the verdict from the first line
// that is not blank, or from all lines if that has none, and a reason from what
// follows it.
type judgement struct {
	word    bool // the first word decides: nothing else was asked for
	reply   strings.Builder
	verdict Decision // empty while unknown
	reason  string
}

const (
	maxVerdictBytes = 200 // of a reply, within which a verdict must be found
	maxReasonBytes  = 160
	maxReasonWords  = 12
)

// add takes the next piece and reports whether the rest does not matter, so that
// the call can be stopped. A relevant verdict needs no reason.
func (j *judgement) add(piece string) (done bool) {
	j.reply.WriteString(piece)
	text := strings.TrimLeftFunc(j.reply.String(), unicode.IsSpace)
	if j.word {
		word := firstWord.FindString(text)
		return word != "" && len(word) < len(text)
	}
	first, rest, ended := strings.Cut(text, "\n")
	if len(first) > maxVerdictBytes {
		j.verdict, j.reason = gradeCut(first)
		return true
	}
	if !ended {
		return false
	}
	if j.verdict, j.reason = grade(first); j.verdict == Unparsable {
		j.verdict = ""
		if len(text) > maxVerdictBytes {
			j.verdict = Unparsable
		}
		return j.verdict != ""
	}
	if j.verdict != Irrelevant || shortReason(j.reason) != "" {
		return true
	}
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	line, _, ended := strings.Cut(rest, "\n")
	j.reason = line
	return ended || len(line) > maxReasonBytes || len(strings.Fields(line)) > maxReasonWords
}

// end returns the verdict of a reply that ends here.
func (j *judgement) end(cut bool) (Decision, string) {
	switch {
	case j.word:
		if j.verdict = Grade(j.reply.String()); j.verdict == Unparsable {
			j.verdict = gradeWord(undress(firstWord.FindString(j.reply.String())))
		}
	case j.verdict == "" && cut:
		j.verdict, j.reason = gradeCut(j.reply.String())
	case j.verdict == "":
		j.verdict, j.reason = grade(j.reply.String())
	}
	return j.verdict, shortReason(j.reason)
}

// firstWord is a yes or no that a reply begins with.
var firstWord = regexp.MustCompile("^[\\s\"'`*]*(?i:yes|no)\\b")

// gradeCut reads a reply whose end is missing: only what no end can change is a
// verdict. With a number after them, only such ones are left.
func gradeCut(reply string) (decision Decision, reason string) {
	decision, reason = grade(reply + " 5")
	return decision, strings.TrimSuffix(reason, "5")
}

// shortReason makes the judge's words safe to show: one line of printable
// characters, at most maxReasonWords words.
func shortReason(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	words := strings.Fields(s)
	if len(words) > maxReasonWords {
		words = words[:maxReasonWords]
	}
	s = strings.Join(words, " ")
	for len(s) > maxReasonBytes {
		cut := strings.LastIndexByte(s, ' ')
		if cut < 0 {
			return ""
		}
		s = s[:cut]
	}
	return strings.TrimRight(s, ".,;: ")
}

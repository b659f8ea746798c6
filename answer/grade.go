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

// Grade reads a judge's reply as a verdict. It accepts one of the known words alone,
// after a label ("Answer: yes") or as the only member of a JSON object, or a yes
// or no that begins a sentence ("No, the passage does not say."). It ignores case,
// and quotes, asterisks and final punctuation around them. Any other reply is
// [Unparsable].
func Grade(reply string) Decision {
	said := trimWrapping(reply)
	if decision := gradeWord(said); decision != Unparsable {
		return decision
	}
	said = trimWrapping(said[len(gradeLabel.FindString(said)):])
	if decision := gradeWord(said); decision != Unparsable {
		return decision
	}
	if object := gradeJSON.FindStringSubmatch(said); object != nil {
		said = trimWrapping(onlyMember(object[1]))
	}
	if first := gradeFirst.FindStringSubmatch(said); first != nil && !gradeNumber.MatchString(said) {
		return gradeWord(first[1])
	}
	return gradeWord(said)
}

var (
	gradeLabel = regexp.MustCompile(`^(?i:answer|verdict|relevant|relevance|decision|score)[ *]*[:=]`)
	gradeJSON  = regexp.MustCompile(`^(?i:json\s*)?(\{(?s:.*)\})$`)
	// gradeFirst matches a yes or no that decides, whatever follows it; gradeNumber
	// matches a "No." that means "number" ("No. 5 is the jetty").
	gradeFirst  = regexp.MustCompile("^((?i:yes|no))[\"'`*]*(?:[,.;:!–—\r\n]| +[-–—\r\n])")
	gradeNumber = regexp.MustCompile(`^(?i:no)\. *\pN`)
)

// trimWrapping removes white space, quotes, asterisks and punctuation around a verdict.
func trimWrapping(s string) string {
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

// maxVerdictBytes is how much of a reply is read to find a verdict.
const maxVerdictBytes = 200

// hasVerdict reports whether enough of a streaming reply has been read. A yes or no at the
// beginning decides, whatever follows.
func hasVerdict(reply string) bool {
	text := strings.TrimLeftFunc(reply, unicode.IsSpace)
	word := firstWord.FindString(text)
	return word != "" && len(word) < len(text) || len(text) > maxVerdictBytes
}

// readVerdict returns the verdict of a reply, or of as much of it as was read.
func readVerdict(reply string) Decision {
	if d := Grade(reply); d != Unparsable {
		return d
	}
	return gradeWord(trimWrapping(firstWord.FindString(reply)))
}

// firstWord matches a yes or no at the beginning of a reply.
var firstWord = regexp.MustCompile("^[\\s\"'`*]*(?i:yes|no)\\b")

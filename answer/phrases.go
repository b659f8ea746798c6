package answer

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	"ibid/answer/replies"
	"ibid/retrieve"
)

// The reasons of Unanswered.
const (
	nothingFound    = "nothing_found"
	nothingRelevant = "nothing_relevant"
	noAnswer        = replies.NoAnswer
	talk            = "small_talk"

	// uncertain is not a value of Unanswered.Reason. It selects the sentence for
	// noAnswer if there was an answer that was too uncertain.
	uncertain = "uncertain"
)

//go:embed phrases.txt
var phraseTable string

// sentences are Ibid's own replies, by language and reason. courtesies are the small talk
// of users, English first.
var sentences, courtesies = func() (map[string]map[string]string, []*courtesy) {
	sentences, courtesies := map[string]map[string]string{}, []*courtesy{{language: "en", kinds: map[string]string{}}}
	for line := range strings.Lines(phraseTable) {
		language, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, text, _ := strings.Cut(rest, " ")
		if language == "" || language == "#" {
			continue
		}
		if sentences[language] == nil {
			sentences[language] = map[string]string{}
		}
		if kind != greeting && kind != help && kind != filler && kind != please {
			sentences[language][kind] = text
			continue
		}
		i := slices.IndexFunc(courtesies, func(c *courtesy) bool { return c.language == language })
		if i < 0 {
			i = len(courtesies)
			courtesies = append(courtesies, &courtesy{language, map[string]string{}})
		}
		for said := range strings.SplitSeq(text, "|") {
			courtesies[i].kinds[plainWords(said)] = kind
		}
	}
	return sentences, courtesies
}()

// refusal returns the sentence that states a reason, in the likeliest language of the
// question if phrases.txt has it, else in English.
func refusal(reason, question string) string {
	language, _ := retrieve.AskedLanguage(question)
	said, ok := sentences[language]
	if !ok {
		said = sentences["en"]
	}
	return said[reason]
}

// ClosestWords returns the words that introduce the nearest passages, in the language of
// the refusal before them.
func ClosestWords(refusal string) string {
	said := sentences["en"]
	for _, of := range sentences {
		if slices.Contains(slices.Collect(maps.Values(of)), refusal) {
			said = of
		}
	}
	return said["closest"]
}

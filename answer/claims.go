package answer

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/sentence"
	"ibid/cite/support"
	"ibid/ingest"
	"ibid/retrieve"
)

// quotesWhole reports whether a statement is one sentence of a passage, or one item or row, word
// for word and from its first word to its last: in a part of a sentence an "only if" may be
// missing, or its subject. quote is where the passage has these words.
func quotesWhole(passage, statement string, quote support.Quote) bool {
	if quote.Verdict != support.Quoted {
		return false
	}
	claim := spoken(withoutNumber(statement))
	if len(claim) == 0 {
		return false
	}
	for s := range ingest.Sentences(passage) {
		if s.Start < quote.End && quote.Start < s.End {
			text := withoutNumber(passage[s.Start:s.End])
			return !isQuestion(text) && !refersBack(claim[0]) && slices.Equal(claim, spoken(text))
		}
	}
	return false
}

// withoutNumber returns a sentence without the signs of lists and the numbers before it.
func withoutNumber(text string) string {
	return sectionNumber.ReplaceAllString(strings.TrimSpace(sentence.WithoutLead(text)), "")
}

// sectionNumber is the number of a section before its first sentence.
var sectionNumber = regexp.MustCompile(`^\d+(?:\.\d+)+\.?\s+`)

// refersBack reports whether a sentence that begins with a word, or without spaces is one, says
// something about the subject of the sentence before, which may be another one in an answer.
func refersBack(word string) bool {
	return leansOn[word] || leansUnspaced.MatchString(word)
}

var (
	leansOn = setOf(`it they he she this that these those such its their his her both neither otherwise then however
	er sie es dies diese dieser dieses il elle ils elles ce cette ces el ella ellos esto`)
	leansUnspaced = regexp.MustCompile(`^(?:[它他她这那此其彼]|[これそ][れのちう]|否则|两者|มัน|เขา|นี่|นั่น|สิ่งนี้)`)
)

// hasInRow reports whether a sentence has the words of a short reply one after the other.
// "Answer:" before them is not one.
func hasInRow(text, reply string) bool {
	words := spoken(reply)
	for len(words) > 1 && aboutAnswers[retrieve.Stem(words[0])] {
		words = words[1:]
	}
	border := " "
	if strings.ContainsFunc(reply, isUnspaced) {
		border = ""
	}
	return len(words) > 0 && strings.Contains(border+strings.Join(spoken(text), " ")+border, border+strings.Join(words, " ")+border)
}

// isOpening reports whether a text only prepares for an answer, as "Good question!" does, or
// leads to a reference.
func isOpening(text string) bool {
	return sentence.Pointers(text) >= 0 || !slices.ContainsFunc(spoken(text), func(w string) bool { return !aboutAnswers[retrieve.Stem(w)] })
}

// spoken returns the words of a text in lower case, without punctuation at their ends and
// the signs of Markdown.
func spoken(text string) (words []string) {
	for w := range strings.FieldsSeq(unmarked.Replace(strings.ToLower(text))) {
		if w = strings.Trim(w, `.,;:!?"'“”„‘’«»()[]。，；：！？、`); w != "" {
			words = append(words, w)
		}
	}
	return words
}

var unmarked = strings.NewReplacer("*", "", "`", "", "|", " ", "’", "'")

// isQuestion reports whether a text ends as a question.
func isQuestion(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, "*_\"'”’)` "))
	return last == '?' || last == '？'
}

// isUnspaced reports whether a character is of the words of a script without spaces.
func isUnspaced(r rune) bool { return unicode.In(r, unicode.Han, unicode.Katakana, unicode.Thai) }

// joining parts a text without spaces at words that join others or are about answers.
var joining = replaceAll(`的 和 与 或 及 以下 如下 下列 下面 以上 这些 这是 有关 关于 文档 资料 文件 问题 回答 答案 例如 说明 列出 包括 根据 了解 知道 什么 需要 更多 其他 帮助 希望
	次 通 質問 文書 資料 説明 例 ดังนี้ ดังต่อไปนี้ ต่อไปนี้ ด้านล่าง คำตอบ คำถาม เอกสาร เกี่ยวกับ ตัวอย่าง รายการ สำหรับ และ ของ คือ`)

func replaceAll(words string) *strings.Replacer {
	var pairs []string
	for w := range strings.FieldsSeq(words) {
		pairs = append(pairs, w, " ")
	}
	return strings.NewReplacer(pairs...)
}

func stems(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range spoken(text) {
		set[retrieve.Stem(w)] = true
	}
	return set
}

var aboutAnswers = stems(`good great excellent happy glad sure hello hi thanks help question answer ask know want like say said go
	list item follow following below above overview summary detail information document documents passage source text according example
	exception rule point step case type kind note important main different several various more further frage antwort folgende dokument`)

// hasPredicate reports whether words have a verb, and what it says of a subject: not "the
// fees are" or "these are the fees".
func hasPredicate(words []string) bool {
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case i == 0 || next == "":
		case sentence.IsAuxiliary(w):
			announces := i == 1 && presents[words[0]] && !strings.HasSuffix(next, "ed")
			closes := slices.Contains([]string{"as", "the", "these", "listed", "wie"}, next) && i+3 >= len(words)
			if !announces && !closes {
				return true
			}
		case determines[next] && strings.HasSuffix(w, "s") && !sentence.IsAuxiliary(w) && !determines[w],
			determines[next] && strings.HasSuffix(w, "ed"):
			return true
		}
	}
	last := words[len(words)-1]
	return !presents[words[0]] && strings.HasSuffix(last, "ed") && len(words) > 3
}

// presents are the words before "are the fees", determines those after a verb.
var (
	presents   = setOf("here there these this those below following what how hier dies diese folgende voici estos estas")
	determines = setOf("the a an them it him her all every no none nothing their its his half only")
)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

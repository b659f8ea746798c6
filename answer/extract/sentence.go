package extract

import (
	"regexp"
	"strings"
	"unicode"

	"ibid/cite/marker"
	"ibid/ingest"
)

// A sentence is a unit that can be quoted alone: a sentence, a list item, a table row, a block
// of code.
type sentence struct {
	letterPart
	passage  int         // index of the kept passage
	index    int         // position among the sentences of its passage
	span     ingest.Span // in the passage, unlike that of its part
	text     string
	joins    bool // in the paragraph or list item of the previous sentence
	title    bool // a heading
	asks     bool // a question
	bare     bool // cannot answer: a rule, a path, a licence
	licensed bool // part of a licence
	other    bool // answers another question, such as one about another year
	inAsked  bool // in the section or declaration that the question asks for
	outside  bool // a greeting or signature of a mail
	together int  // place among the rows that are asked for together, from 1; else 0
	code     bool // a block of code
	headed   bool // a block of code right under a heading
	declares bool // in source code, of which whole declarations are quoted
	terms    map[string]bool
	covers   coverage // of the question
	window   coverage // covers with the headings and neighbours
	signals  [sentenceSignals]float64
	about    passageReading
	score    float64 // log-odds against other sentences, up to a constant
	second   float64 // see SecondScores
}

// mayAnswer reports whether a sentence may be an answer.
func (s *sentence) mayAnswer() bool { return !s.title && !s.asks && !s.bare && !s.other }

// section returns the bounds of the section, or the body of a mail, that contains sentence k.
func section(in []sentence, k int) (start, end int) {
	for start = k; start > 0 && !in[start-1].title && !in[start-1].outside; start-- {
	}
	for end = k + 1; end < len(in) && !in[end].title && !in[end].outside; end++ {
	}
	return start, end
}

// lastTitle returns the last heading or question before sentence k, or a zero sentence.
func lastTitle(in []sentence, k int) sentence {
	for k--; k >= 0; k-- {
		if in[k].title || in[k].asks {
			return in[k]
		}
	}
	return sentence{}
}

// plainLine returns a sentence on one line, without a bullet.
func plainLine(s string) string {
	s, _ = cutBullet(strings.TrimSpace(s))
	return strings.Join(strings.Fields(brokenWord.ReplaceAllString(s, "$1$2")), " ")
}

var bullet = regexp.MustCompile(`^(?:[-*+•‣◦▪●–·]|\d{1,3}[.)]) `)

// cutBullet removes the bullet or number of a list item.
func cutBullet(s string) (rest string, ok bool) {
	at := bullet.FindStringIndex(s)
	if at == nil {
		return s, false
	}
	return strings.TrimSpace(s[at[1]:]), true
}

var brokenWord = regexp.MustCompile(`(\pL[-\x{2010}\x{ad}])\s*\n\s*(\pL)`)

func isAsking(s string) bool {
	s = strings.TrimRight(strings.TrimSpace(s), "\"'”’)*_")
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// antecedent returns the sentence that a pronoun at the beginning of sentence k refers to, or k
// if there is no pronoun or no such sentence in the section.
func antecedent(in []sentence, k int) int {
	for i := k; i >= 0 && !in[i].title; i-- {
		if !refersBack(in[i].text) {
			return i
		}
	}
	return k
}

// refersBack reports whether a sentence begins with a pronoun, or has one after an opening
// preposition, verb or time.
func refersBack(s string) bool {
	s = plainLine(s)
	words, places := lowerWords(s), kindNamed("place").words
	return pronouns.beginsAt(words, 0) || places.beginsAt(words, 0) && pronouns.beginsAt(words, 1) || pronounForm.MatchString(s)
}

// pronounForm matches a pronoun after a verb ("Gebaut wurde es von …"), a pronoun that may be an
// article before a past verb ("La fundó …") or where no article fits ("Lo dirige …"), and a
// pronoun after a time ("During the war he …", "In May 1903 she …").
var pronounForm = regexp.MustCompile(`^(?i:\pL+ (?:wird|wurden?|werden|ist|sind|war|waren|hat|haben|werd|is|was) ` +
	`(?:er|sie|es|ihn|hij|zij|het)\b|` +
	`(?:se|lo|la|los|las|le|les) \pL+(?:[óòì]|aron|ieron|aba|aban)(?:[^\pL]|$)|` +
	`lo (?:[^szgpxy\P{L}]|s[aeiouàèéìòùáíóú]|g[^n\P{L}]|p[^s\P{L}]))|` +
	`^(?:In|On|At|By|Since|After|Before|From|Until|During|For) (?:(?:\d+|\p{Ll}+|` + months + `),? ){1,4}(?:he|she|they)\b`)

// months are the English names of the months.
const months = `January|February|March|April|May|June|July|August|September|October|November|December`

var pronouns = phrases(marker.WordSet(`he she it they him her them his hers its their theirs this that these those
	er sie es ihn ihm ihr ihnen sein seine seinen seinem seiner ihre ihren ihrem ihrer deren dessen dieser diese dieses diesen diesem
	dort dabei dafür dagegen damit danach daran darauf daraus darin darüber davon davor dazu
	il elle ils elles cela ceci ce cet cette ces celui-ci celle-ci son sa ses leur leurs lui
	él ella ellos ellas su sus este esta esto estos estas ese esa eso esos esas aquel aquella allí ahí fue fueron
	он она оно они его её ее ему ей им их него неё нее нему ней ним нём нем них ими там туда здесь
	это этот эта эти этого этой этому этим этом эту этих
	hij zij dit deze zijn haar hun daar hem
	lui lei essi loro suo sua suoi sue questo questa questi queste ciò fu furono
	ele ela eles elas dele dela seu seus suas isso isto esse essa este esta foi foram
	هو هي هم هذا هذه ذلك تلك वह वे यह ये इस इसका इसकी इसके इसे उस उसका उसकी उसके उसे इनका उनका उन्होंने उसने 它 他 她 这 那 此 これ それ この その 彼`))

// first and after return the bounds of the paragraph or list item of sentence k.
func first(in []sentence, k int) int {
	for in[k].joins {
		k--
	}
	return k
}

func after(in []sentence, k int) int {
	for k++; k < len(in) && in[k].joins; k++ {
	}
	return k
}

func size(in []sentence, start, end int) int { return in[end-1].span.End - in[start].span.Start }

func isStep(s string) bool {
	s = strings.TrimSpace(s)
	return isItem(s) && unicode.IsDigit(rune(s[0]))
}

func endsOpen(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：")
}

func isItem(s string) bool { return bullet.MatchString(strings.TrimSpace(s)) }

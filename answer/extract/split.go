package extract

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/ingest"
	"ibid/retrieve"
)

// spansOf cuts a passage into its sentences, and into blocks of code, each with the part
// of a letter that it is in.
func spansOf(p retrieve.Passage) (spans []ingest.Span, code []bool, parts []letterPart) {
	for _, part := range letterOf(p).parts {
		for span := range ingest.Sentences(p.Text[part.span.Start:part.span.End]) {
			span.Start, span.End = part.span.Start+span.Start, part.span.Start+span.End
			indented, last := isIndented(p, span), len(spans)-1
			if last >= 0 && parts[last] == part && (indented && code[last] ||
				!indented && !code[last] && continues(p, spans[last], span)) {
				spans[last].End = span.End
				continue
			}
			spans, code, parts = append(spans, span), append(code, indented), append(parts, part)
		}
	}
	return spans, code, parts
}

// split cuts a passage, the i-th of those that are kept, into its sentences and blocks of code.
func split(q *query, i int, p retrieve.Passage) []sentence {
	spans, code, parts := spansOf(p)
	in := make([]sentence, len(spans))
	rows, before := rowReader{q}, sentence{}
	for k, span := range spans {
		text, rest := p.Text[span.Start:span.End], p.Text[span.End:]
		terms, said := termSet(text), text
		if !code[k] {
			said = q.headsOfCompounds(text)
		}
		s := sentence{
			passage: i, index: k, span: span, text: text, code: code[k], declares: p.Format == "code",
			terms: terms, covers: q.coverageOf(termSet(said)), reply: parts[k].reply, by: parts[k].by,
		}
		if s.code {
			s.headed = before.title && !s.declares
			s.bare = !s.headed || !q.needs.kind.isWay()
		} else {
			s.joins = k > 0 && joins(p.Text[before.span.End:span.Start], before, text)
			s.asks = isAsking(text)
			s.title = isTitle(text, rest) || isHeading(text, p)
			s.outside = parts[k].head || parts[k].end
			s.licensed = !s.outside && (licence.MatchString(plainLine(text)) || s.joins && before.licensed)
			s.other = isRow(text) && (rows.otherYears(text, p) || rows.unpriced(text, p)) || q.answersOther(lastTitle(in, k), text)
			s.bare = s.outside || isBare(text) || s.licensed && !asksLicence.MatchString(q.text) || q.saysNothing(s, before, p)
		}
		in[k], before = s, s
	}
	return in
}

// saysNothing reports whether a sentence says nothing that the question does not say, or is about another number.
func (q *query) saysNothing(s, before sentence, p retrieve.Passage) bool {
	tells := s.by != "" && q.asksSender() || q.isNamedBy(before, s, p) ||
		endsOpen(s.text) || refersBack(s.text) && s.joins // with what it refers to
	return !tells && q.repeats(s) || q.otherNumber(s.text)
}

// joins reports whether a sentence is in the paragraph or list item of the one before
// it, with gap between them.
func joins(gap string, before sentence, text string) bool {
	if before.code || before.title || isItem(text) || isRow(text) {
		return false
	}
	return !strings.Contains(gap, "\n") || strings.Count(gap, "\n") == 1 && !isRow(before.text)
}

// indentsCode reports whether in a passage only code is indented: readers of marked-up
// text and of source code see to it.
func indentsCode(p retrieve.Passage) bool {
	return !slices.Contains([]string{"", "text", "pdf", "image", "mail", "mbox", "outlook", "subtitles"}, p.Format)
}

// isIndented reports whether a sentence is a line of a block of code.
func isIndented(p retrieve.Passage, s ingest.Span) bool {
	if !indentsCode(p) {
		return false
	}
	start := strings.LastIndexByte(p.Text[:s.Start], '\n') + 1
	if line, rest, _ := strings.Cut(p.Text, "\n"); start == 0 && strings.HasPrefix(rest, "    ") && s.End <= len(line) {
		return true // the passage begins within a block: there is no blank line after this one
	}
	line := p.Text[start:s.Start]
	return strings.HasPrefix(line, "    ") && strings.TrimSpace(line) == ""
}

// repeats reports whether a text without a verdict of its own says nothing that
// the question does not say: "Tesla Q2 2020 revenue." for "Tesla Q2 2020 revenue?".
func (q *query) repeats(s sentence) bool {
	if q.needs.kind != nil && q.needs.kind.name == "yes" {
		return false
	}
	for t := range s.terms {
		if !slices.Contains(q.nearness[t], 1) {
			return false
		}
	}
	return len(s.terms) > 0
}

// numbered is a word and the number of one of several things, with the word after it.
var numbered = regexp.MustCompile(`(\pL{3,})[ -](\d+)\b[ -]?(\pL*)`)

// otherNumber reports whether a text is about another of several numbered things
// than the question: Level 3 where it asks about Level 2. An amount numbers nothing: it is
// after a word that says nothing of a subject, before a unit, or before what both count.
func (q *query) otherNumber(text string) bool {
	of := numbered.FindAllStringSubmatch(strings.ToLower(text), -1)
	return slices.ContainsFunc(numbered.FindAllStringSubmatch(strings.ToLower(q.text), -1), func(asked []string) bool {
		if !q.needs.asksOf(asked[1]) || unitWords[asked[3]] {
			return false
		}
		other, same := false, false
		for _, m := range of {
			if m[1] == asked[1] {
				other = true
				same = same || m[2] == asked[2] || m[3] == asked[3] && q.needs.asksOf(m[3])
			}
		}
		return other && !same
	})
}

// verdict matches a text that begins with a yes or no.
var verdict = func() *regexp.Regexp {
	words := slices.Sorted(maps.Keys(wordsOf("yes")))
	return regexp.MustCompile(`^(?i:` + strings.Join(words, "|") + `)(?:[,;:!.]*$|[,;:!.]? ?[–—-] |[,;:!] |\. \D)`)
}()

// answersOther reports whether a text is a yes or no to the question or heading before it,
// which is not like this question.
func (q *query) answersOther(title sentence, text string) bool {
	return title.text != "" && q.needs.near(title.covers) < asksSame && verdict.MatchString(plainLine(text))
}

// isTitle reports whether a sentence is a short line of its own.
func isTitle(s, rest string) bool {
	if isRow(s) {
		return false
	}
	s, _ = cutBullet(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return len(strings.Fields(s)) <= 8 && (unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune(")?？", last)) &&
		strings.HasPrefix(strings.TrimLeft(rest, " \t"), "\n\n")
}

// continues reports whether a sentence is the rest of the one before it.
func continues(p retrieve.Passage, before, s ingest.Span) bool {
	text := p.Text[before.Start:before.End]
	return s.End-before.Start <= maxListBytes && wraps(text, p.Text[before.End:]) && !inTitleCase(text)
}

// inTitleCase reports whether all words but short ones begin with a capital, and nothing parts
// them: a title, or several.
func inTitleCase(s string) bool {
	return !strings.ContainsAny(s, ".,;:") && !slices.ContainsFunc(strings.Fields(s), func(w string) bool {
		first, _ := utf8.DecodeRuneInString(w)
		return utf8.RuneCountInString(w) > 3 && !unicode.IsUpper(first)
	})
}

// wraps reports whether a sentence that was cut at the end of a line continues
// on the next one.
func wraps(s, rest string) bool {
	next, ok := strings.CutPrefix(rest, "\n")
	if !ok || strings.HasPrefix(strings.TrimLeft(next, " \t"), "\n") || isRow(s) {
		return false
	}
	line, _, _ := strings.Cut(next, "\n")
	line = strings.TrimLeft(line, " \t")
	last, _ := utf8.DecodeLastRuneInString(s)
	open := unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune(",-\u2010\u00ad", last)
	return open && strings.Contains(s, " ") && !isItem(line) && !isRow(line)
}

// isHeading reports whether a sentence is the title of its passage's document or
// one of the headings above it.
func isHeading(s string, p retrieve.Passage) bool {
	s = strings.TrimSpace(strings.TrimLeft(s, "# "))
	for _, path := range []string{p.Title, p.Heading} {
		for h := range strings.SplitSeq(path, ingest.HeadingSeparator) {
			if strings.EqualFold(s, strings.TrimSpace(h)) {
				return true
			}
		}
	}
	return false
}

// licence matches what the usual licences say.
var (
	asksLicence = regexp.MustCompile(`(?i)licen[cs]|copyright`)
	licence     = regexp.MustCompile(`(?i)permission (?:is (?:hereby )?granted|to use, copy)|redistributions? (?:of source|in binary|and use in)|` +
		`provided (?:on an )?[“"'‘]as[ -]is|without (?:any )?warrant(?:y|ies) (?:of|or)|free software[:;,] you|you may not use this (?:file|work|software) except|` +
		`\b(?:governed by|(?:licen[cs]|releas|distribut)ed under) .{2,60}\blicen[cs]e`)
)

// boilerplate is what documents have in common: the head of a message, licences, navigation, entries of a table of contents.
var boilerplate = regexp.MustCompile(`^(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|In-Reply-To):\s|` +
	`(?i:all rights reserved|^(?:copyright )?(?:©|\(c\)) |^copyright .{0,20}\d{4}|` +
	`^skip to (?:main )?content|^edit (?:this page|on github)|^was this (?:page )?helpful|^table of contents$)|` +
	`\S [›»>] \S+(?: \S+){0,3} [›»>] \S|\.{4,}\s*\d+$|(?: \.){4,}\s*\d+$`)

// isBare reports whether a line says nothing that could be an answer: a drawing,
// a rule, a path, boilerplate.
func isBare(s string) bool {
	letters, others := 0, 0
	for _, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			letters++
		case r >= 0x2500 && r < 0x2600: // a line, a box or a triangle
			return true
		case !unicode.IsSpace(r):
			others++
		}
	}
	return letters < 2 || letters < others || boilerplate.MatchString(plainLine(s))
}

// compound is words with hyphens between them, the last of which says what it is: a request-id is an id.
var compound = regexp.MustCompile(`\pL+(?:-\pL+)+`)

// headsOfCompounds is a text with only the last words of its compounds that the question has not.
func (q *query) headsOfCompounds(text string) string {
	return compound.ReplaceAllStringFunc(text, func(c string) string {
		parts := strings.Split(c, "-")
		if !slices.ContainsFunc(parts, func(p string) bool { return q.needs.exact(q.coverageOf(termSet(p))) == 0 }) {
			return c
		}
		return parts[len(parts)-1]
	})
}

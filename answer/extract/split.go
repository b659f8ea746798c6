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

// cut cuts a passage into sentences and blocks of code, with their spans and parts of the mail.
func cut(p retrieve.Passage) (in []sentence) {
	for _, part := range letterOf(p).parts {
		for span := range ingest.Sentences(p.Text[part.span.Start:part.span.End]) {
			span.Start, span.End = part.span.Start+span.Start, part.span.Start+span.End
			s, last := sentence{letterPart: part, span: span, code: isIndented(p, span)}, len(in)-1
			if last >= 0 && in[last].letterPart == part && in[last].code == s.code && (s.code || continues(p, in[last].span, span)) {
				in[last].span.End = span.End
				continue
			}
			in = append(in, s)
		}
	}
	return in
}

// split cuts a passage, the i-th of the kept ones, into sentences and blocks of code.
func split(q *query, i int, p retrieve.Passage) []sentence {
	in, before := cut(p), sentence{}
	for k := range in {
		s := &in[k]
		text, rest := p.Text[s.span.Start:s.span.End], p.Text[s.span.End:]
		s.passage, s.index, s.text, s.declares, s.terms = i, k, text, p.Format == "code", termSet(text)
		if s.code {
			s.covers = q.coverageOf(s.terms)
			s.headed = before.title && !s.declares
			s.bare = !s.headed || !q.needs.kind.is("way")
		} else {
			s.covers = q.coverageOf(termSet(q.headsOfCompounds(text)))
			s.joins = k > 0 && joins(p.Text[before.span.End:s.span.Start], before, text)
			s.asks = isAsking(text)
			s.title = isTitle(text, rest) || isHeading(text, p)
			s.outside = s.head || s.end
			s.licensed = !s.outside && (licence.MatchString(plainLine(text)) || s.joins && before.licensed)
			s.other = isRow(text) && (q.otherYears(text, p) || q.lacksPrice(text, p)) ||
				q.answersOther(lastTitle(in, k), text) || q.isByAnother(s.by)
			s.bare = s.outside || isBare(text) || s.licensed && !asksLicence.MatchString(q.text) || q.saysNothing(*s, before, p)
		}
		before = *s
	}
	return in
}

// saysNothing reports whether a sentence only repeats the question, or is about another numbered
// thing.
func (q *query) saysNothing(s, before sentence, p retrieve.Passage) bool {
	tells := s.by != "" && q.asksSender() || q.isNamedBy(before, s, p) ||
		endsOpen(s.text) || refersBack(s.text) && s.joins // quoted with the sentence that it refers to
	return !tells && q.repeats(s) || q.otherNumber(s.text)
}

// joins reports whether text, after a gap, is in the same paragraph or list item as the sentence
// before.
func joins(gap string, before sentence, text string) bool {
	if before.code || before.title || isItem(text) || isRow(text) {
		return false
	}
	return !strings.Contains(gap, "\n") ||
		strings.Count(gap, "\n") == 1 && !isEntry(text) && !isEntry(before.text) && !isRow(before.text)
}

// indentsCode reports whether only code is indented in a passage, as the readers of marked-up
// text and source code ensure.
func indentsCode(p retrieve.Passage) bool {
	return !slices.Contains([]string{"", "text", "pdf", "image", "mail", "mbox", "outlook", "subtitles"}, p.Format)
}

// isIndented reports whether a sentence is in a block of code.
func isIndented(p retrieve.Passage, s ingest.Span) bool {
	if !indentsCode(p) {
		return false
	}
	start := strings.LastIndexByte(p.Text[:s.Start], '\n') + 1
	if line, rest, _ := strings.Cut(p.Text, "\n"); start == 0 && strings.HasPrefix(rest, "    ") && s.End <= len(line) {
		return true // the passage begins inside a block: no blank line follows
	}
	line := p.Text[start:s.Start]
	return strings.HasPrefix(line, "    ") && strings.TrimSpace(line) == ""
}

// repeats reports whether a sentence says nothing new: "Tesla Q2 2020 revenue." for "Tesla Q2
// 2020 revenue?". A question for yes or no may be repeated as the answer.
func (q *query) repeats(s sentence) bool {
	if q.needs.kind.is("yes") {
		return false
	}
	for t := range s.terms {
		if !slices.Contains(q.nearness[t], 1) {
			return false
		}
	}
	return len(s.terms) > 0
}

// numbered matches a word, the number after it, and the word after that.
var numbered = regexp.MustCompile(`(\pL{3,})[ -](\d+)\b[ -]?(\pL*)`)

// otherNumber reports whether a text is about another numbered thing than the question: Level 3
// instead of Level 2. An amount is not such a number: it follows a word that is not in the
// question, or precedes a unit or a noun that both texts count, and no capitalised word is
// before it.
func (q *query) otherNumber(text string) bool {
	of := numbered.FindAllStringSubmatch(strings.ToLower(text), -1)
	return slices.ContainsFunc(numbered.FindAllString(q.text, -1), func(name string) bool {
		asked := numbered.FindStringSubmatch(strings.ToLower(name))
		if !q.needs.asksOf(asked[1]) || unitWords[asked[3]] {
			return false
		}
		named := strings.ToLower(name)[0] != name[0]
		other, same := false, false
		for _, m := range of {
			if m[1] == asked[1] {
				other = true
				same = same || m[2] == asked[2] || !named && m[3] == asked[3] && q.needs.asksOf(m[3])
			}
		}
		return other && !same
	})
}

// verdict matches a text that begins with a yes or no.
var verdict = func() *regexp.Regexp {
	words := slices.Sorted(maps.Keys(kindNamed("yes").words))
	return regexp.MustCompile(`^(?i:` + strings.Join(words, "|") + `)(?:[,;:!.]*$|[,;:!.]? ?[–—-] |[,;:!] |\. \D)`)
}()

// answersOther reports whether a text is a yes or no to a question or heading before it that
// differs from the question asked.
func (q *query) answersOther(title sentence, text string) bool {
	return title.text != "" && q.needs.nearShare(title.covers) < asksSame && verdict.MatchString(plainLine(text))
}

// isTitle reports whether a sentence is a short line before a blank one, or in capitals.
func isTitle(s, rest string) bool {
	if isRow(s) {
		return false
	}
	s, _ = cutBullet(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return len(strings.Fields(s)) <= 8 && (unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune(")?？", last)) &&
		(inCapitals(s) || strings.HasPrefix(strings.TrimLeft(rest, " \t"), "\n\n"))
}

// inCapitals reports whether a text has at least three letters, all capitals, like the
// headings of printed manual pages.
func inCapitals(s string) bool {
	letters := 0
	for _, r := range s {
		if unicode.IsLower(r) {
			return false
		}
		if unicode.IsUpper(r) {
			letters++
		}
	}
	return letters >= 3
}

// continues reports whether a sentence continues the one before it.
func continues(p retrieve.Passage, before, s ingest.Span) bool {
	text := p.Text[before.Start:before.End]
	return s.End-before.Start <= maxListBytes && wraps(text, p.Text[before.End:]) && !inTitleCase(text) && !inCapitals(text)
}

// inTitleCase reports whether all longer words are capitalised, without punctuation between
// them, as in titles.
func inTitleCase(s string) bool {
	return !strings.ContainsAny(s, ".,;:") && !slices.ContainsFunc(strings.Fields(s), func(w string) bool {
		first, _ := utf8.DecodeRuneInString(w)
		return utf8.RuneCountInString(w) > 3 && !unicode.IsUpper(first)
	})
}

// wraps reports whether a sentence that ends with a line continues on the next one.
func wraps(s, rest string) bool {
	next, ok := strings.CutPrefix(rest, "\n")
	if !ok || strings.HasPrefix(strings.TrimLeft(next, " \t"), "\n") || isRow(s) {
		return false
	}
	line, _, _ := strings.Cut(next, "\n")
	line = strings.TrimLeft(line, " \t")
	last, _ := utf8.DecodeLastRuneInString(s)
	open := unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune(",-\u2010\u00ad", last)
	return open && strings.Contains(s, " ") && !isItem(line) && !isRow(line) && !isEntry(line)
}

var entry = regexp.MustCompile(`^\d{1,5}(?:\t|  |[ \t]+[-–—=:] )`)

// isEntry reports whether a line begins with a number that it explains, as in a list of exit
// codes: "4 - no space left".
func isEntry(line string) bool { return entry.MatchString(line) }

// isHeading reports whether a sentence repeats the title or a heading of its passage.
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

// licence matches common licences, asksLicence a question about one.
var (
	asksLicence = regexp.MustCompile(`(?i)licen[cs]|copyright`)
	licence     = regexp.MustCompile(`(?i)permission (?:is (?:hereby )?granted|to use, copy)|` +
		`redistributions? (?:of source|in binary|and use in)|provided (?:on an )?[“"'‘]as[ -]is|` +
		`without (?:any )?warrant(?:y|ies) (?:of|or)|free software[:;,] you|you may not use this (?:file|work|software) except|` +
		`\b(?:governed by|(?:licen[cs]|releas|distribut)ed under) .{2,60}\blicen[cs]e`)
)

// boilerplate matches text that says nothing in any document: mail headers, copyright lines,
// navigation, tables of contents.
var boilerplate = regexp.MustCompile(`^(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|In-Reply-To):\s|` +
	`(?i:all rights reserved|^(?:copyright )?(?:©|\(c\)) |^copyright .{0,20}\d{4}|` +
	`^skip to (?:main )?content|^edit (?:this page|on github)|^was this (?:page )?helpful|^table of contents$)|` +
	`\S [›»>] \S+(?: \S+){0,3} [›»>] \S|\.{4,}\s*\d+$|(?: \.){4,}\s*\d+$`)

// isBare reports whether a line cannot answer: a drawing, a rule, a path, boilerplate.
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

// compound matches words joined by hyphens. The last one is the noun: a request-id is an id.
var compound = regexp.MustCompile(`\pL+(?:-\pL+)+`)

// headsOfCompounds reduces each compound with a word that the question lacks to its last word.
func (q *query) headsOfCompounds(text string) string {
	return compound.ReplaceAllStringFunc(text, func(c string) string {
		parts := strings.Split(c, "-")
		if !slices.ContainsFunc(parts, func(p string) bool { return q.needs.exactShare(q.coverageOf(termSet(p))) == 0 }) {
			return c
		}
		return parts[len(parts)-1]
	})
}

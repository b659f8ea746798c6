package format

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

var (
	cueTimes    = regexp.MustCompile(`^(?:(\d{1,3}):)?(\d{2}):(\d{2})[.,](\d{1,3})\s*-->\s*(?:(\d{1,3}):)?(\d{2}):(\d{2})[.,](\d{1,3})`)
	cueVoice    = regexp.MustCompile(`<v(?:\.[^\s>]*)?\s+([^>]*)>`)
	sentenceEnd = regexp.MustCompile(`[.?!…。？！]["'”’)]*$`)
	cueTags     = regexp.MustCompile(`</?[^<>]{0,80}>|\{\\[^{}]{0,80}\}`)
)

const (
	// A passage of speech ends with the first sentence that ends after speechBytes,
	speechBytes = 500
	// or anywhere after maxSpeechBytes,
	maxSpeechBytes = 1500
	// or before a silence.
	silence = 4 * time.Second
)

// Subtitles reads SubRip and WebVTT as speech: it joins successive cues into paragraphs. The anchor
// of a paragraph's section is its start time as a media fragment ("t=754" is 12:34; Media Fragments
// URI 1.0, 4.2.1).
func Subtitles(doc *Document, src string) error {
	var b builder
	var speech []string
	var began, ended time.Duration
	size, number, last := 0, 0, ""
	flush := func() {
		b.begin(Section{Level: 1, Anchor: fmt.Sprintf("t=%d", began/time.Second)}, func() { b.Paragraph(strings.Join(speech, "\n")) })
		speech, size = nil, 0
	}
	inside, cues := false, 0
	for text := range strings.SplitSeq(unixLines(src), "\n") {
		number++
		text = strings.TrimSpace(text)
		if m := cueTimes.FindStringSubmatch(text); m != nil {
			from := cueTime(m[1:5])
			if size > maxSpeechBytes || size > speechBytes && sentenceEnd.MatchString(last) || size > 0 && from-ended > silence {
				flush()
			}
			if len(speech) == 0 {
				began, b.line = from, number
			}
			ended, inside = cueTime(m[5:9]), true
			cues++
		} else if text == "" {
			inside = false
		} else if text = cueText(text); inside && text != "" && text != last { // rolling captions repeat lines
			speech = append(speech, text)
			size += len(text)
			last = text
		}
	}
	if cues == 0 {
		return errors.New("it has no line with times: is it a subtitle file?")
	}
	flush()
	b.moveTo(doc)
	return nil
}

// cueText replaces a speaker's tag by the name and removes all other tags.
func cueText(line string) string {
	return strings.TrimSpace(cueTags.ReplaceAllString(cueVoice.ReplaceAllString(line, "$1: "), ""))
}

// cueTime parses hours, minutes, seconds and thousandths.
func cueTime(parts []string) time.Duration {
	// Digits are always a valid duration.
	t, _ := time.ParseDuration(cmp.Or(parts[0], "0") + "h" + parts[1] + "m" + parts[2] + "s" + parts[3] + "ms")
	return t
}

package sentence

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/data/datatest"
)

// A "¦" separates the sentences of the texts.
func TestSentences(t *testing.T) {
	for _, text := range []string{
		"",
		"One.",
		"No full stop",
		"One. ¦Two! ¦Three? ¦Four…",
		"It costs 3.50 euros. ¦Version 1.2.3 is out.",
		"See e.g. the rules. ¦Ask Dr. Smith or J. Doe. ¦Then go.",
		"The answer is no. ¦See no. 5 for more.",
		"He said \"Stop.\" ¦Then he left.",
		"The U.S. Coast Guard closed the pier in May. ¦At 5 p.m. Monday it opened again.",
		"He moved to the U.S. ¦The pier closed. ¦Ask the U.K. Embassy.",
		"It opens at 8.30 a.m. ¦Boats leave at 5 p.m. EST or at 6 p.m. on 3 May.",
		"She has a Ph.D. ¦It is in maths. ¦Ask a Ph.D. Student of hers.",
		"It closes at 5 p.m.",
		"Der Unterricht beginnt am 12. April und endet am 26. Oktober. ¦Danach sind Ferien.",
		"Sie war am 3. Tag bis zum 12. Jahrhundert dort. ¦Er ist 12. ¦Sie ist 13.",
		"Sie bleibt bis zum 12. ¦Danach geht sie. ¦Vom 12. 4. 2024 an ist offen.",
		"Škola začíná 12. dubna. ¦Loma alkaa 3. kesäkuuta. ¦Det er den 3. maj.",
		"It begins on 12. April 2024. ¦I am 12. ¦She is 14.",
		"Dr. Grey et al. (2004) commanded it. ¦Later work (cf. Smith et al. 2004. Also Grey) agrees. ¦So do Smith et al. ¦The end.",
		"Wellesley (b. 1769) met Lt. Smith. ¦Siehe Abb. 3 und Nr. 5 nach Art. 7. ¦Die Art. ¦Ende.",
		"(It was late. It was cold.) ¦So they left :( early. ¦Then it was warm.",
		"(It is closed.) ¦Come back.",
		"It is **closed.** ¦Come back.",
		"Really?! ¦Yes... ¦Fine.",
		"it stops. but goes on in lower case",
		"a soft\nwrap goes on.",
		"A paragraph\n\n¦another",
		"# Heading\n¦Text of it",
		"These are:\n¦- one\n¦- two\n¦* three\n¦1. four. ¦Five\n¦2) six",
		"| a | b |\n¦| 1 | 2 |",
		"> quoted\n¦> again",
		"図書館は閉まっています。¦日曜日は開きます！¦はい。",
		"Größe zählt. ¦Übung auch.",
		"Visit example.com today. ¦Bye.",
		"A\r\n\r\n¦B",
		"Wait" + strings.Repeat(" ", 200) + "for it. ¦" + strings.Repeat(" ", 200) + "Now.",
	} {
		want := strings.Split(text, "¦")
		for i := range want {
			want[i] = strings.TrimSpace(want[i])
		}
		want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
		text = strings.ReplaceAll(text, "¦", "")
		var got []string
		for _, s := range splitSentences(text) {
			got = append(got, text[s.Start:s.End])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
		// A growing text has the same sentences.
		var grown []string
		var sp Splitter
		for n := 0; n <= len(text); n++ {
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n++
			}
			for {
				s, ok := sp.Next([]byte(text[:n]), nil, nil, n == len(text))
				if !ok {
					break
				}
				grown = append(grown, text[s.Start:s.End])
			}
		}
		if !slices.Equal(grown, want) {
			t.Errorf("%q growing:\n got %q\nwant %q", text, grown, want)
		}
	}
}

// splitSentences returns the sentences of a whole text.
func splitSentences(text string) (found []Span) {
	var s Splitter
	for {
		sentence, ok := s.Next([]byte(text), nil, nil, true)
		if !ok {
			return found
		}
		found = append(found, sentence)
	}
}

func TestStates(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/states.txt", "states") {
		if got := States(row[1], row[1], row[1]); fmt.Sprint(got) != row[0] {
			t.Errorf("%s: %t, want %s", row[1], got, row[0])
		}
	}
}

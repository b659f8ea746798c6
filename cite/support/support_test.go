package support

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/ingest"
	"ibid/retrieve"
)

// full is the Prover as package answer makes it.
var full = Prover{Stem: retrieve.Stem, Sentences: sentencesOf}

func sentencesOf(text string) (spans []Span) {
	for s := range ingest.Sentences(text) {
		spans = append(spans, Span{s.Start, s.End})
	}
	return spans
}

const harbour = `The harbour of Westhaven was opened on 3 May 1987 by Mayor Ellen Brandt. It has room for 1,250 boats and two slipways.

Swimming is not allowed between the piers. The night ferry to Norby leaves at 22:30 and costs €14.50, but children under 12 travel free.

Members pay 25% less than guests. The harbour master failed to renew the insurance in 2019, so the crane stood still for a year.`

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name, sentence string
		verdict        Verdict
		quote          string // a part of the quote
	}{
		{"verbatim", "The harbour of Westhaven was opened on 3 May 1987 by Mayor Ellen Brandt.", Quoted,
			"The harbour of Westhaven was opened on 3 May 1987 by Mayor Ellen Brandt."},
		{"verbatim part", "children under 12 travel free", Quoted, "children under 12 travel free."},
		{"verbatim but for space and punctuation", "The night ferry to **Norby** leaves at\n22:30, and costs €14.50!", Quoted,
			"The night ferry to Norby leaves at 22:30 and costs €14.50"},
		{"verbatim over two sentences", "Ellen Brandt. It has room", Quoted, "Ellen Brandt. It has room"},
		{"other word order", "On 3 May 1987 Mayor Ellen Brandt opened the harbour of Westhaven.", Supported, "3 May 1987"},
		{"other forms", "Mayor Ellen Brandt opened Westhaven harbour on May 3, 1987.", Supported, "3 May 1987"},
		{"two sentences together", "Westhaven harbour, opened in 1987, has room for 1,250 boats.", Supported, "1,250 boats"},
		{"negation kept", "You are not allowed to swim between the piers.", Supported, "Swimming is not allowed"},
		{"denied without a negator", "The harbour master did not renew the insurance in 2019.", Supported, "failed to renew"},
		{"other year", "The harbour of Westhaven was opened on 3 May 1978 by Mayor Ellen Brandt.", Weak, "3 May 1987"},
		{"other amount", "It has room for 1,350 boats and two slipways.", Weak, "1,250 boats"},
		{"other day", "The harbour of Westhaven was opened on 4 May 1987 by Mayor Ellen Brandt.", Weak, ""},
		{"other month", "It was opened on 3 July 1987.", Weak, ""},
		{"other name", "The harbour was opened by Mayor Joan Fisher in 1987.", Weak, ""},
		{"one name of many", "The harbour of Westhaven was opened on 3 May 1987 by Mayor Ellen Fisher.", Weak, "Ellen Brandt"},
		{"another port", "The night ferry to Sandvik leaves at 22:30 and costs €14.50, but children under 12 travel free.", Weak,
			"night ferry to Norby"},
		{"negation lost", "Swimming is allowed between the piers.", Weak, "Swimming is not allowed"},
		{"negation won", "Children under 12 do not travel free on the ferry.", Weak, ""},
		{"opposite", "Members pay 25% more than guests.", Weak, "25% less"},
		{"another sign", "Members pay €25 less than guests.", Weak, "25% less"},
		{"the same sign", "25 percent less is paid by members than by guests.", Supported, "25% less"},
		{"unrelated", "The castle is famous for its baroque ceiling paintings.", Weak, ""},
		{"half of it", "The night ferry to Norby leaves at 22:30 and arrives in time for the first train to the capital.", Weak, "night ferry"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := full.Find(test.sentence, Passage{Text: harbour})
			quote := harbour[q.Start:q.End]
			if q.Verdict != test.verdict || !strings.Contains(quote, test.quote) {
				t.Errorf("Find(%q)\n got %s (%.2f) %q\nwant %s %q", test.sentence, q.Verdict, q.Support, quote, test.verdict, test.quote)
			}
			if (q.Verdict == Weak) != (q.Support < Threshold) {
				t.Errorf("verdict %s with support %.2f", q.Verdict, q.Support)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	const more = " A lost card costs five euros."
	for _, test := range []struct {
		claim, text string
		verdict     Verdict
	}{
		{"Allowed on the pier.", "Dogs are not allowed on the pier.", Weak},
		{"In 1987 Ellen Fisher gave the chair to Tom Brandt.", "In 1987 Tom Brandt gave the chair to Ellen Fisher.", Weak},
		{"Mrs Fisher, the mayor, gave Tom Brandt the chair in 1987.", "In 1987 Ellen Fisher gave the chair to Tom Brandt.", Supported},
		{"Members must leave their keys at the desk in winter.", "Members may leave their keys at the desk in winter.", Weak},
		{"Some boats in the harbour have a radio.", "All boats in the harbour have a radio.", Weak},
		{"The boats are not only cheap but safe.", "The boats are cheap and safe, and have a radio.", Supported},
		{"The boats are not just cheap.", "The boats are just cheap.", Weak},
		{"Open in winter.", "The kiosk is never really open in winter.", Weak},
		{"60 euros a day into the boat fund.", "Who cannot come pays 60 euros a day into the boat fund.", Quoted},
		{"The island has a hospital.", "It is not true that the island has a hospital. The island has a hospital.", Quoted},
		{"The island has a hospital.", "No dogs. The island has a hospital.", Quoted},
		{"Boats may leave at noon. Without a licence nobody may sail.", "Boats may leave at noon. Without a licence nobody may sail.", Quoted},
		{"200 euros per night for guests.", "It costs 1 200 euros per night for guests.", Weak},
		{"200 euros per night for guests.", "It costs 1 200 euros per night for guests.", Weak},
		{"For guests it costs 1,200 euros per night.", "It costs 1 200 euros per night for guests.", Supported},
		{"Who says the club is open on Sundays?", "Who says the club is open on Sundays?", Quoted},
		{"Dogs are unwelcome in the garden.", "Dogs are welcome in the garden.", Weak},
		{"Members are able to sail.", "Members are unable to sail.", Weak},
		{"The paint is toxic.", "The paint is non-toxic and dries fast.", Weak},
		{"Members who are unable to come pay nothing.", "Members pay nothing if they are unable to come.", Supported},

		{"All rooms except the cellar are heated.", "All rooms are heated, but the cellar is not.", Supported},

		{"The fee is due by 1 April.", "The fee is due before 1 April.", Supported},
		{"The fee is due on the 1st of April.", "On 1 April the fee is due.", Supported},
		{"The hall is open from 1 April.", "The hall opens on 1 April.", Supported},
		{"The committee met after the fire in 1998.", "In 1998, after the fire, the committee met.", Supported},
		{"Before 1 April the fee is 20 euros, from 1 April it is 30 euros.",
			"The fee is 20 euros before 1 April and 30 euros from 1 April.", Supported},
		{"Die Bibliothek ist montags offen.", "Die Bibliothek ist montags geschlossen.", Weak},

		{"The engine of the launch has 40 kilowatts.", "The launch has an engine of 40 kW.", Supported},
		{"After five days the hall is opened.", "The hall is opened after 5 days.", Supported},
		{"The season's first race she won.", "She won the first race of the season, and lost the second race.", Supported},
		{"可以借六本书，每人。", "每人可以借六本书，或五本杂志。", Supported},
		{"There is a fee for guests.", "There is no fee for guests.", Weak},
		{"It has a lift for wheelchairs.", "It has no lift for wheelchairs.", Weak},
		{"You must wear a vest on the pier.", "You need not wear a vest on the pier.", Weak},
		{"Anyone under sixteen may sail alone after dark.", "Nobody under sixteen may sail alone after dark.", Weak},
		{"Jeder darf ohne Weste segeln.", "Niemand darf ohne Weste segeln.", Weak},

		{"For guests there is no fee.", "There is no fee for guests.", Supported},
		{"At the kiosk they accept cards.", "They accept cards at the kiosk, not cheques.", Supported},
		{"The engine may run without cooling water for ten minutes.", "The engine must never run without cooling water for ten minutes.", Weak},
		{"The boat may not leave without a radio.", "The boat may leave without a radio.", Weak},
		{"You may enter the harbour without a radio.", "Do not enter the harbour without a radio.", Weak},
		{"The lift holds at most 8 people and no dogs.", "The lift holds at least 8 people and no dogs.", Weak},
		{"Sales rose in May and did not recover later.", "Sales fell in May and did not recover later.", Weak},
		{"The gate is closed at night without exception.", "The gate is open at night without exception.", Weak},
		{"Refunded after 1 April, not later than noon.", "Refunded before 1 April, not later than noon.", Weak},

		{"Without a radio the boat may not leave.", "The boat may not leave without a radio.", Supported},
		{"Without exception the gate is open at night.", "The gate is open at night without exception.", Supported},
		{"In May sales fell, and later they did not recover.", "Sales fell in May and did not recover later.", Supported},
		{"On Mondays the library is not closed.", "The library is not closed but open on Mondays.", Supported},
		{"Die Bibliothek ist montags nicht geschlossen.", "Die Bibliothek ist montags geschlossen.", Weak},
		{"Montags ist die Bibliothek geschlossen.", "Die Bibliothek ist montags nicht geschlossen.", Weak},
		{"Im Garten sind Hunde nicht erlaubt.", "Hunde sind im Garten nicht erlaubt.", Supported},
		{"Kinder zahlen keine Gebühr.", "Kinder zahlen eine Gebühr.", Weak},
		{"Die Bibliothek ist geschlossen.", "Die Bibliothek ist geschlossen, nicht aber das Museum.", Quoted},
		{"La bibliothèque n'est pas fermée le lundi.", "La bibliothèque est fermée le lundi.", Weak},
		{"图书馆星期一不开放。", "图书馆星期一开放。", Weak},
		{"星期一图书馆开放。", "图书馆星期一不开放。", Weak},
		{"星期一图书馆不开放。", "图书馆星期一不开放。", Supported},
		{"星期一不少图书馆开放。", "不少图书馆星期一开放。", Supported},
	} {
		q := full.Find(test.claim, Passage{Text: test.text + more})
		if q.Verdict != test.verdict {
			t.Errorf("Find(%q) in %q = %s (%.2f), want %s", test.claim, test.text, q.Verdict, q.Support, test.verdict)
		}
	}
}

// TestTurnedRound checks short claims that say the opposite in the passage's own
// words, also when another sentence of the passage has the word put in.
func TestTurnedRound(t *testing.T) {
	const text = "The library is closed on Mondays. A lost card costs five euros. Dogs are welcome in the garden. " +
		"The pier opened in 1998. Members may not borrow maps. Entry is free on Fridays and the hall is open. In May the tower is shut. " +
		"Ann leads the choir. Bob leads the band. The chair is Ada Low. The treasurer is Tom Hale."
	for _, test := range []struct {
		claim   string
		verdict Verdict
	}{
		{"The library is never closed on Mondays.", Weak},
		{"The library is not closed on Mondays.", Weak},
		{"The library is by no means closed on Mondays.", Weak},
		{"Dogs are welcome nowhere in the garden.", Weak},
		{"Nobody is welcome in the garden.", Weak},
		{"The pier closed in 1998.", Weak},
		{"In 1998 the pier closed.", Weak},
		{"Members may borrow maps.", Weak},
		{"Bob leads the choir.", Weak},
		{"Ann leads the band.", Weak},
		{"The chair is Tom Hale.", Weak},
		{"Ann leads the choir, and Bob leads the band.", Supported},
		{"Members can never borrow maps.", Supported},
		{"Nobody who is a member may borrow maps.", Supported},
		{"On Mondays the library is closed.", Supported},
		{"In 1998 the pier opened.", Supported},
		{"The library is closed on Mondays, and the hall is open on Fridays.", Supported},
		{"On Fridays entry is free, and on Mondays the library is closed.", Supported},
	} {
		if q := full.Find(test.claim, Passage{Text: text}); q.Verdict != test.verdict {
			t.Errorf("Find(%q) = %s (%.2f) %q, want %s", test.claim, q.Verdict, q.Support, text[q.Start:q.End], test.verdict)
		}
	}
}

func TestByHeadings(t *testing.T) {
	p := Passage{Text: "It is 75 metres long and carries 14 passengers."}
	const claim = "The Zeppelin NT is 75 metres long and carries 14 passengers."
	if q := full.Find(claim, p); q.Support > 0.6 {
		t.Errorf("without headings the name is not borne out, yet support is %.2f", q.Support)
	}
	bare := full.Find(claim, p).Support
	p.Heading = "Airships" + " › " + "Zeppelin NT"
	if q := full.Find(claim, p); q.Support <= bare || q.Verdict != Supported {
		t.Errorf("with the name in the heading: %s %.2f, without %.2f", q.Verdict, q.Support, bare)
	}
}

func TestWeakQuotes(t *testing.T) {
	const text = "# Winter hours\n\nThe library opens at ten. Dogs are welcome.\n\nLost cards\n\nFive euros are due.\n\n## Fees for late books\n\nSee the desk."
	for claim, want := range map[string]string{
		"The winter hours of the pool are short.":        "The library opens at ten.",
		"The cards are green.":                           "Five euros are due.",
		"Late books are sold by the mayor.":              "See the desk.",
		"Nothing of this kind.":                          "The library opens at ten.",
		"Dogs and wolves fight over the prey of winter.": "Dogs are welcome.",
	} {
		q := full.Find(claim, Passage{Text: text})
		if got := text[q.Start:q.End]; q.Verdict != Weak || got != want {
			t.Errorf("Find(%q) = %s %q, want %q", claim, q.Verdict, got, want)
		}
	}
}

func TestOtherScripts(t *testing.T) {
	for _, test := range []struct {
		text, sentence string
		verdict        Verdict
	}{
		{"西港于1987年5月3日启用。港口可停泊1250艘船。", "港口可停泊1250艘船。", Quoted},
		{"西港于1987年5月3日启用。港口可停泊1250艘船。", "港口可停泊1350艘船。", Weak},
		{"Der Hafen wurde 1987 eröffnet. Er bietet Platz für 1250 Boote.", "Der Hafen wurde 1987 eröffnet.", Quoted},
		{"码头在冬季开放。", "港口在夏季关闭。", Weak},
		{"Гавань открыли в 1987 году. В ней помещается 1250 лодок.", "В гавани, открытой в 1978 году, есть место.", Weak},
	} {
		q := full.Find(test.sentence, Passage{Text: test.text})
		if q.Verdict != test.verdict {
			t.Errorf("Find(%q) in %q = %s (%.2f), want %s", test.sentence, test.text, q.Verdict, q.Support, test.verdict)
		}
	}
}

func TestZeroValue(t *testing.T) {
	q := Prover{}.Find("On 3 May 1987 Mayor Ellen Brandt opened the harbour of Westhaven.", Passage{Text: harbour})
	if q.Verdict != Supported {
		t.Errorf("got %s (%.2f)", q.Verdict, q.Support)
	}
	for _, text := range []string{"", " \n ", "...", "\xff"} {
		q := Prover{}.Find("The harbour was opened.", Passage{Text: text})
		if q.Verdict != Weak || q.Support != 0 || q.Start < 0 || q.End > len(text) {
			t.Errorf("Find in %q = %+v", text, q)
		}
	}
}

func TestJoin(t *testing.T) {
	const closed, fee, dogs, pier = "The library is closed on Mondays. On other days it opens at nine.", "A lost card costs five euros. Children pay nothing.",
		"Dogs are not welcome in the reading room.", "The pier opened in 1998."
	for _, test := range []struct {
		claim, passages, parts string
		supported              bool
	}{
		{"The library is closed on Mondays and a lost card costs five euros.", closed + "|" + fee, "01", true},
		{"A lost card costs five euros, and the library is closed on Mondays.", closed + "|" + fee + "|" + pier, "01-", true},
		{"The library is closed on Mondays and a lost card costs six euros.", closed + "|" + fee, "", false},
		{"The library is closed on Mondays and a lost card costs five euros.", closed + "|" + pier, "", false},
		{"The library is closed on Mondays and dogs are welcome in the reading room.", closed + "|" + dogs, "", false},
		{"The library is closed on Mondays and dogs are not welcome in the reading room.", closed + "|" + dogs, "01", true},
		{"The library is not closed on Mondays and a lost card costs five euros.", closed + "|" + fee, "", false},
		{"The library opened in 1998.", closed + "|" + pier, "", false},
		{"The library is closed on Mondays and a lost card costs five euros.", closed + "|" + closed + "|" + fee, "012", true},
	} {
		var passages []Passage
		for text := range strings.SplitSeq(test.passages, "|") {
			passages = append(passages, Passage{Text: text})
		}
		got := full.Join(test.claim, passages)
		if (got.Support >= Threshold) != test.supported {
			t.Errorf("%q by %q: %.2f %v", test.claim, test.passages, got.Support, got.Parts)
		}
		for i, c := range test.parts {
			if got.Parts[i] != (c != '-') {
				t.Errorf("%q by %q: parts %v, want %s", test.claim, test.passages, got.Parts, test.parts)
			}
		}
	}
}
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"The 1,500 boats":                  "the 1500# boats",
		"1.5 million and 2 hundred":        "1.5# million and 2# hundred",
		"twenty-five, 1.50 and 3,14":       "20# 5# 1.5# and 3.14#",
		"13th of May 2013":                 "13# th of may.* 2013#",
		"on 2013-05-13":                    "on 2013# 5# 13#",
		"It may. May 5, Sept. 6":           "it may may.* 5# sep.* 6#",
		"2018–19, 2018-2019, 1.5-20":       "2018# 2019# 2018# 2019# 1.5# 20#",
		"at -5 or (−3), 7-8 and €14.50":    "at -5# or -3# 7# 8# and 14.5# €",
		"the 1990s, MH17":                  "the 1990# s mh17*",
		"Ellen's boat isn't Zoë’s":         "ellen boat isn't zoë*",
		"No stop. Then Norby":              "no stop then norby*",
		"1 200, 12 345 678 and 1 20":       "1200# 12345678# and 1# 20#",
		"1.2.3 and 10.":                    "1.2.3# and 10#",
		"港口可停 A":                           "港口 口可 可停 a",
		"Ａ１ half-width ½":                  "ａ１* half width ½",
		strings.Repeat("9", 100) + " nine": strings.Repeat("9", 64) + "# 9#",
	} {
		var got []string
		l := lexer{}
		for _, w := range l.read(text, 0) {
			mark := map[wordKind]string{name: "*", number: "#"}[w.kind]
			got = append(got, w.key+mark)
			if w.Start < 0 || w.End > len(text) || w.Start >= w.End {
				t.Errorf("%q: word %+v is out of the text", text, w)
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("words of %q\n got %s\nwant %s", text, g, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("The harbour was opened in 1987.", harbour)
	f.Add("港口可停泊1250艘船。", "港口可停泊1350艘船。")
	f.Add("1,2.3,4-05-06 May U.S. isn't 5th", "\xff\xc3(1990s) twenty-five million ½ \u00ad")
	f.Add("a a a", "not a a a a a")
	f.Fuzz(func(t *testing.T, sentence, text string) {
		for _, s := range []Prover{{}, full} {
			q := s.Find(sentence, Passage{Text: text})
			if q.Start < 0 || q.End > len(text) || q.Start > q.End || q.Start == q.End && text != "" {
				t.Fatalf("range [%d:%d] of %d bytes", q.Start, q.End, len(text))
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[q.Start:q.End]) {
				t.Fatalf("range [%d:%d] cuts a character of %q", q.Start, q.End, text)
			}
			if !(q.Support >= 0 && q.Support <= 1) {
				t.Fatalf("support %v", q.Support)
			}
			if (q.Verdict == Weak) != (q.Support < Threshold) {
				t.Fatalf("verdict %s with support %v", q.Verdict, q.Support)
			}
			if again := s.Find(sentence, Passage{Text: text}); again != q {
				t.Fatalf("%+v, then %+v", q, again)
			}
			half := len(clip(text, len(text)/2))
			passages := []Passage{Passage{Text: text[:half]}, Passage{Text: harbour}, Passage{Text: text[half:]}, Passage{Text: text}}
			j := s.Join(sentence, passages)
			parts := 0
			for _, part := range j.Parts {
				if part {
					parts++
				}
			}
			if !(j.Support >= 0 && j.Support <= 1) || len(j.Parts) != len(passages) || j.Support > 0 && parts < 2 {
				t.Fatalf("together %+v", j)
			}
			if again := s.Join(sentence, passages); !reflect.DeepEqual(again, j) {
				t.Fatalf("%+v, then %+v", j, again)
			}
		}
	})
}

// TestQuotesItself quotes every sentence of a passage in other layouts.
func TestQuotesItself(t *testing.T) {
	for _, s := range sentencesOf(harbour) {
		sentence := harbour[s.Start:s.End]
		for _, said := range []string{sentence, strings.ToUpper(sentence), strings.ReplaceAll(sentence, " ", "\n  "),
			"*" + strings.Trim(sentence, ".") + "*"} {
			q := full.Find(said, Passage{Text: harbour})
			if q.Verdict != Quoted || q.Start != s.Start || q.End != s.End {
				t.Errorf("Find(%q) = %s %q", said, q.Verdict, harbour[q.Start:q.End])
			}
		}
	}
}

// repeated repeats a text up to a size, with each copy's number for its %d.
func repeated(text string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Replace(text, "%d", strconv.Itoa(i), 1))
	}
	return b.String()[:size]
}

// TestIsLinear reads texts that would take minutes if all pairs of words were
// compared.
func TestIsLinear(t *testing.T) {
	const size = 1 << 15
	for _, hostile := range [][2]string{
		{"abcdef%d ", "abcdeg%d "}, {"welcome%d ", "unwelcome%d "}, {"unlike%d more ", "like%d less "}, {"not a ", "a not "},
	} {
		sentence, text := repeated(hostile[0], size), repeated(hostile[1], size)
		full.Find(sentence, Passage{Text: text})
	}
}

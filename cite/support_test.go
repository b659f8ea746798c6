package cite

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ibid/ingest"
	"ibid/retrieve"
)

// full is Support as the program uses it.
var full = Support{Stem: retrieve.Stem, Sentences: ingest.Sentences}

func passage(text string) retrieve.Passage {
	return retrieve.Passage{Chunk: ingest.Chunk{Text: text}}
}

const harbour = `The harbour of Westhaven was opened on 3 May 1987 by Mayor Ellen Brandt. It has room for 1,250 boats and two slipways.

Swimming is not allowed between the piers. The night ferry to Norby leaves at 22:30 and costs €14.50, but children under 12 travel free.

Members pay 25% less than guests. The harbour master failed to renew the insurance in 2019, so the crane stood still for a year.`

func TestSupport(t *testing.T) {
	for _, test := range []struct {
		name, sentence string
		verdict        Verdict
		quote          string // a part of the quote
	}{
		{"verbatim", "The harbour of Westhaven was opened on 3 May 1987 by Mayor Ellen Brandt.", VerdictQuoted, "The harbour of Westhaven was opened on 3 May 1987 by Mayor Ellen Brandt."},
		{"verbatim part", "children under 12 travel free", VerdictQuoted, "children under 12 travel free."},
		{"verbatim but for space and punctuation", "The night ferry to **Norby** leaves at\n22:30, and costs €14.50!", VerdictQuoted, "The night ferry to Norby leaves at 22:30 and costs €14.50"},
		{"verbatim over two sentences", "Ellen Brandt. It has room", VerdictQuoted, "Ellen Brandt. It has room"},
		{"other word order", "On 3 May 1987 Mayor Ellen Brandt opened the harbour of Westhaven.", VerdictSupported, "3 May 1987"},
		{"other forms", "Mayor Ellen Brandt opened Westhaven harbour on May 3, 1987.", VerdictSupported, "3 May 1987"},
		{"number spelled", "It has room for 1250 boats and 2 slipways.", VerdictSupported, "1,250 boats"},
		{"date in digits", "The harbour of Westhaven opened on 1987-05-03.", VerdictSupported, "3 May 1987"},
		{"two sentences together", "Westhaven harbour, opened in 1987, has room for 1,250 boats.", VerdictSupported, "1,250 boats"},
		{"negation kept", "You are not allowed to swim between the piers.", VerdictSupported, "Swimming is not allowed"},
		{"denied without a negator", "The harbour master did not renew the insurance in 2019.", VerdictSupported, "failed to renew"},
		{"a reply first", "No, the harbour master failed to renew the insurance in 2019.", VerdictSupported, "failed to renew"},
		{"another reply first", "Yes: members pay 25% less than guests.", VerdictSupported, "25% less"},
		{"other year", "The harbour of Westhaven was opened on 3 May 1978 by Mayor Ellen Brandt.", VerdictWeak, "3 May 1987"},
		{"other amount", "It has room for 1,350 boats and two slipways.", VerdictWeak, "1,250 boats"},
		{"other day", "The harbour of Westhaven was opened on 4 May 1987 by Mayor Ellen Brandt.", VerdictWeak, ""},
		{"other month", "It was opened on 3 July 1987.", VerdictWeak, ""},
		{"other name", "The harbour was opened by Mayor Joan Fisher in 1987.", VerdictWeak, ""},
		{"one name of many", "The harbour of Westhaven was opened on 3 May 1987 by Mayor Ellen Fisher.", VerdictWeak, "Ellen Brandt"},
		{"another port", "The night ferry to Sandvik leaves at 22:30 and costs €14.50, but children under 12 travel free.", VerdictWeak, "night ferry to Norby"},
		{"negation lost", "Swimming is allowed between the piers.", VerdictWeak, "Swimming is not allowed"},
		{"negation won", "Children under 12 do not travel free on the ferry.", VerdictWeak, ""},
		{"opposite", "Members pay 25% more than guests.", VerdictWeak, "25% less"},
		{"another sign", "Members pay €25 less than guests.", VerdictWeak, "25% less"},
		{"the same sign", "25 percent less is paid by members than by guests.", VerdictSupported, "25% less"},
		{"unrelated", "The castle is famous for its baroque ceiling paintings.", VerdictWeak, ""},
		{"half of it", "The night ferry to Norby leaves at 22:30 and arrives in time for the first train to the capital.", VerdictWeak, "night ferry"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := full.Find(test.sentence, passage(harbour))
			quote := harbour[q.Start:q.End]
			if q.Verdict != test.verdict || !strings.Contains(quote, test.quote) {
				t.Errorf("Find(%q)\n got %s (%.2f) %q\nwant %s %q", test.sentence, q.Verdict, q.Support, quote, test.verdict, test.quote)
			}
			if (q.Verdict == VerdictWeak) != (q.Support < Supported) {
				t.Errorf("verdict %s with support %.2f", q.Verdict, q.Support)
			}
		})
	}
}

func TestSupportDenied(t *testing.T) {
	for _, test := range []struct {
		text, claim string
		verdict     Verdict
	}{
		{"It is not true that the island has a hospital. The clinic is open daily.", "The island has a hospital.", VerdictWeak},
		{"The council denied that the island has a hospital.", "The island has a hospital.", VerdictWeak},
		{"Dogs are not allowed on the pier.", "Allowed on the pier.", VerdictWeak},
		{"The kiosk is never really open in winter.", "Open in winter.", VerdictWeak},
		{"Who cannot come pays 60 euros a day into the boat fund.", "60 euros a day into the boat fund.", VerdictQuoted},
		{"It is not true that the island has a hospital. The island has a hospital.", "The island has a hospital.", VerdictQuoted},
		{"No dogs. The island has a hospital.", "The island has a hospital.", VerdictQuoted},
		{"Boats may leave at noon. Without a licence nobody may sail.", "Boats may leave at noon without a licence.", VerdictWeak},
		{"Boats may leave at noon. Without a licence nobody may sail.", "Boats may leave at noon. Without a licence nobody may sail.", VerdictQuoted},
		{"It costs 1 200 euros per night for guests.", "200 euros per night for guests.", VerdictWeak},
		{"It costs 1 200 euros per night for guests.", "200 euros per night for guests.", VerdictWeak},
		{"It costs 1 200 euros per night for guests.", "For guests it costs 1,200 euros per night.", VerdictSupported},
		{"Guests of the hotel pay 1 200 euros.", "Guests of the hotel pay 1.", VerdictWeak},
		{"The rumour that the club closes in winter is false.", "The club closes in winter.", VerdictWeak},
		{"The rumour that the club closes in winter was never true.", "The club closes in winter.", VerdictWeak},
		{"It is wrong to say the club closes in winter.", "The club closes in winter.", VerdictWeak},
		{"The club is open on Sundays? Never.", "The club is open on Sundays.", VerdictWeak},
		{"Is it true the club is open on Sundays? No.", "The club is open on Sundays.", VerdictWeak},
		{"Is it true the club is open on Sundays? Yes.", "The club is open on Sundays.", VerdictSupported},
		{"Who says the club is open on Sundays?", "Who says the club is open on Sundays?", VerdictQuoted},
		{"They say the club closes in winter.", "The club closes in winter.", VerdictQuoted},
	} {
		q := full.Find(test.claim, passage(test.text))
		if q.Verdict != test.verdict {
			t.Errorf("Find(%q) in %q = %s (%.2f) %q, want %s", test.claim, test.text, q.Verdict, q.Support, test.text[q.Start:q.End], test.verdict)
		}
	}
}

// A short sentence that says the opposite in the passage's own words is weak,
// also when another sentence of the passage has the word put in.
func TestSupportTurnedRound(t *testing.T) {
	const text = "The library is closed on Mondays. A lost card costs five euros. Dogs are welcome in the garden. " +
		"The pier opened in 1998. Members may not borrow maps. Entry is free on Fridays and the hall is open. In May the tower is shut."
	for _, test := range []struct {
		claim   string
		verdict Verdict
	}{
		{"The library is never closed on Mondays.", VerdictWeak},
		{"The library is not closed on Mondays.", VerdictWeak},
		{"The library is hardly closed on Mondays.", VerdictWeak},
		{"The library is rarely closed on Mondays.", VerdictWeak},
		{"The library is by no means closed on Mondays.", VerdictWeak},
		{"In no way is the library closed on Mondays.", VerdictWeak},
		{"Dogs are never welcome in the garden.", VerdictWeak},
		{"Dogs are welcome nowhere in the garden.", VerdictWeak},
		{"Nobody is welcome in the garden.", VerdictWeak},
		{"The pier closed in 1998.", VerdictWeak},
		{"In 1998 the pier closed.", VerdictWeak},
		{"Members may borrow maps.", VerdictWeak},
		{"Members can never borrow maps.", VerdictSupported},
		{"Nobody who is a member may borrow maps.", VerdictSupported},
		{"On Mondays the library is closed.", VerdictSupported},
		{"In 1998 the pier opened.", VerdictSupported},
		{"The library is closed on Mondays, and the hall is open on Fridays.", VerdictSupported},
		{"On Fridays entry is free, and on Mondays the library is closed.", VerdictSupported},
	} {
		if q := full.Find(test.claim, passage(text)); q.Verdict != test.verdict {
			t.Errorf("Find(%q) = %s (%.2f) %q, want %s", test.claim, q.Verdict, q.Support, text[q.Start:q.End], test.verdict)
		}
	}
}

func TestSupportByHeadings(t *testing.T) {
	p := passage("It is 75 metres long and carries 14 passengers.")
	const claim = "The Zeppelin NT is 75 metres long and carries 14 passengers."
	if q := full.Find(claim, p); q.Support > 0.6 {
		t.Errorf("without headings the name is not borne out, yet support is %.2f", q.Support)
	}
	bare := full.Find(claim, p).Support
	p.Heading = "Airships" + ingest.HeadingSeparator + "Zeppelin NT"
	if q := full.Find(claim, p); q.Support <= bare || q.Verdict != VerdictSupported {
		t.Errorf("with the name in the heading: %s %.2f, without %.2f", q.Verdict, q.Support, bare)
	}
}

// What turns a statement round is known in a few languages more.
func TestSupportNegatedElsewhere(t *testing.T) {
	checkVerdicts(t, "", []verdictCase{
		{"Die Bibliothek ist montags nicht geschlossen.", "Die Bibliothek ist montags geschlossen.", VerdictWeak},
		{"Montags ist die Bibliothek geschlossen.", "Die Bibliothek ist montags nicht geschlossen.", VerdictWeak},
		{"Im Garten sind Hunde nicht erlaubt.", "Hunde sind im Garten nicht erlaubt.", VerdictSupported},
		{"Kinder zahlen keine Gebühr.", "Kinder zahlen eine Gebühr.", VerdictWeak},
		{"Eine Gebühr zahlen Kinder.", "Eine Gebühr zahlen Kinder nicht.", VerdictWeak},
		{"Die Bibliothek ist geschlossen.", "Die Bibliothek ist geschlossen, nicht aber das Museum.", VerdictQuoted},
		{"La bibliothèque n'est pas fermée le lundi.", "La bibliothèque est fermée le lundi.", VerdictWeak},
		{"图书馆星期一不开放。", "图书馆星期一开放。", VerdictWeak},
		{"星期一图书馆开放。", "图书馆星期一不开放。", VerdictWeak},
		{"星期一图书馆不开放。", "图书馆星期一不开放。", VerdictSupported},
		{"星期一不少图书馆开放。", "不少图书馆星期一开放。", VerdictSupported},
		{"図書館は月曜日に開きません。", "図書館は月曜日に開きます。", VerdictWeak},
		{"月曜日に図書館は開きます。", "図書館は月曜日に開きません。", VerdictWeak},
	})
}

func TestSupportOtherScripts(t *testing.T) {
	for _, test := range []struct {
		text, sentence string
		verdict        Verdict
	}{
		{"西港于1987年5月3日启用。港口可停泊1250艘船。", "港口可停泊1250艘船。", VerdictQuoted},
		{"西港于1987年5月3日启用。港口可停泊1250艘船。", "港口可停泊1350艘船。", VerdictWeak},
		{"Der Hafen wurde 1987 eröffnet. Er bietet Platz für 1250 Boote.", "Der Hafen wurde 1987 eröffnet.", VerdictQuoted},
		{"码头在冬季开放。", "港口在夏季关闭。", VerdictWeak},
		{"Гавань открыли в 1987 году. В ней помещается 1250 лодок.", "В гавани, открытой в 1978 году, есть место.", VerdictWeak},
	} {
		q := full.Find(test.sentence, passage(test.text))
		if q.Verdict != test.verdict {
			t.Errorf("Find(%q) in %q = %s (%.2f), want %s", test.sentence, test.text, q.Verdict, q.Support, test.verdict)
		}
	}
}

func TestSupportZeroValue(t *testing.T) {
	q := Support{}.Find("On 3 May 1987 Mayor Ellen Brandt opened the harbour of Westhaven.", passage(harbour))
	if q.Verdict != VerdictSupported {
		t.Errorf("got %s (%.2f)", q.Verdict, q.Support)
	}
	for _, text := range []string{"", " \n ", "...", "\xff"} {
		q := Support{}.Find("The harbour was opened.", passage(text))
		if q.Verdict != VerdictWeak || q.Support != 0 || q.Start < 0 || q.End > len(text) {
			t.Errorf("Find in %q = %+v", text, q)
		}
	}
}

func TestAlike(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"historic", "historian", true}, {"founder", "founding", false}, {"боцмана", "боцману", true},
		{"contract", "contrast", true}, // the price of it
		{"inter", "international", false}, {"house", "hour", false}, {"кот", "код", false}, {"港口", "港叠", false},
	} {
		if got := alike(test.a, test.b); got != test.want {
			t.Errorf("alike(%q, %q) = %t", test.a, test.b, got)
		}
	}
}

// What is behind the words that are looked up is not borne out.
func TestSupportOfEndlessClaim(t *testing.T) {
	var claim, text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&claim, "word%dx ", i)
		if i < 500 {
			fmt.Fprintf(&text, "word%dx ", i)
		}
	}
	if q := full.Find(claim.String(), passage(text.String())); q.Verdict != VerdictWeak {
		t.Errorf("%s (%.2f)", q.Verdict, q.Support)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"The 1,500 boats":                  "the 1500# boats",
		"1.5 million and 2 hundred":        "1500000# and 200#",
		"twenty-five, 1.50 and 3,14":       "25# 1.5# and 3.14#",
		"13th of May 2013":                 "13# of may.* 2013#",
		"on 2013-05-13":                    "on 2013# may.* 13#",
		"It may. May 5, Sept. 6":           "it may may.* 5# sep.* 6#",
		"2018–19, 2018-2019, 1.5-20":       "2018# 2019# 2018# 2019# 1.5# 20#",
		"at -5 or (−3), 7-8 and €14.50":    "at -5# or -3# 7# 8# and 14.5#",
		"the 1990s, MH17":                  "the 1990s# mh17*",
		"in the U.S. and US, for us":       "in the us* and us* for us",
		"Ellen's boat isn't Zoë’s":         "ellen boat isn't zoe*",
		"No stop. Then Norby":              "no stop then norby*",
		"5km at 10am":                      "5# km at 10#",
		"8.30 a.m., 22:30, 9:00":           "8# 30# 22# 30# 9#",
		"1 200, 12 345 678 and 1 20":       "1200# 12345678# and 1# 20#",
		"1.2.3 and 10.":                    "1.2.3# and 10#",
		"港口可停 A":                           "港口 口可 可停 a",
		"Ａ１ half-width ½":                  "a1* half width 1⁄2",
		strings.Repeat("9", 100) + " nine": strings.Repeat("9", 64) + "# 9#",
	} {
		var got []string
		l := lexer{}
		for _, w := range l.read(text) {
			mark := map[wordKind]string{name: "*", number: "#"}[w.kind]
			got = append(got, w.key+mark)
			if w.start < 0 || w.end > len(text) || w.start >= w.end {
				t.Errorf("%q: word %+v is out of the text", text, w)
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("words of %q\n got %s\nwant %s", text, g, want)
		}
	}
}

func FuzzSupport(f *testing.F) {
	f.Add("The harbour was opened in 1987.", harbour)
	f.Add("港口可停泊1250艘船。", "港口可停泊1350艘船。")
	f.Add("1,2.3,4-05-06 May U.S. isn't 5th", "\xff\xc3(1990s) twenty-five million ½ \u00ad")
	f.Add("a a a", "not a a a a a")
	f.Fuzz(func(t *testing.T, sentence, text string) {
		for _, s := range []Support{{}, full} {
			q := s.Find(sentence, passage(text))
			if q.Start < 0 || q.End > len(text) || q.Start > q.End || q.Start == q.End && text != "" {
				t.Fatalf("range [%d:%d] of %d bytes", q.Start, q.End, len(text))
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[q.Start:q.End]) {
				t.Fatalf("range [%d:%d] cuts a character of %q", q.Start, q.End, text)
			}
			if !(q.Support >= 0 && q.Support <= 1) {
				t.Fatalf("support %v", q.Support)
			}
			if (q.Verdict == VerdictWeak) != (q.Support < Supported) {
				t.Fatalf("verdict %s with support %v", q.Verdict, q.Support)
			}
			if again := s.Find(sentence, passage(text)); again != q {
				t.Fatalf("%+v, then %+v", q, again)
			}
			half := len(clip(text, len(text)/2))
			passages := []retrieve.Passage{passage(text[:half]), passage(harbour), passage(text[half:]), passage(text)}
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

// every passage quotes itself, however it is laid out.
func TestSupportQuotesItself(t *testing.T) {
	for s := range ingest.Sentences(harbour) {
		sentence := harbour[s.Start:s.End]
		for _, said := range []string{sentence, strings.ToUpper(sentence), strings.ReplaceAll(sentence, " ", "\n  "), "*" + strings.Trim(sentence, ".") + "*"} {
			q := full.Find(said, passage(harbour))
			if q.Verdict != VerdictQuoted || q.Start != s.Start || q.End != s.End {
				t.Errorf("Find(%q) = %s %q", said, q.Verdict, harbour[q.Start:q.End])
			}
		}
	}
}

func BenchmarkSupport(b *testing.B) {
	text := strings.Repeat(harbour+"\n\n", 4) // about 400 tokens
	const claim = "Mayor Ellen Brandt, who opened Westhaven harbour in 1987, also planned room for 1,250 boats and a free ferry for children."
	b.Run("passage", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			full.Find(claim, passage(text))
		}
	})
	for _, hostile := range []struct{ name, sentence, text string }{
		{"letters", "a", "a"}, {"words", "not a a a ", "not a a a "}, {"stops", "a. ", "b. "}, {"numbers", "1,2", "1.1"},
		{"lines", "x\n", "x\n"}, {"beginnings", "abcdef%d ", "abcdeg%d "}, {"blanks", " ", " \n"},
		{"prefixes", "welcome%d ", "unwelcome%d "}, {"opposites", "more ", "less "}, {"denials", "a not ", "not a "},
		{"units", "7 km ", "7 h "}, {"dates", "after 7 May ", "before 7 May "}, {"ideographs", "六本不", "五本没"}, {"groups", "1 200 ", "1 300 "},
	} {
		for _, size := range []int{1 << 16, 1 << 18} {
			b.Run(hostile.name+"/"+map[int]string{1 << 16: "64k", 1 << 18: "256k"}[size], func(b *testing.B) {
				sentence, text := repeated(hostile.sentence, size), repeated(hostile.text, size)
				b.SetBytes(int64(size))
				for b.Loop() {
					full.Find(sentence, passage(text))
				}
			})
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

// What compared all pairs of words took half a minute for such texts.
func TestSupportIsLinear(t *testing.T) {
	const size, most = 1 << 16, 5 * time.Second
	for _, hostile := range [][2]string{
		{"abcdef%d ", "abcdeg%d "}, {"welcome%d ", "unwelcome%d "}, {"unlike%d more ", "like%d less "}, {"not a ", "a not "},
	} {
		sentence, text := repeated(hostile[0], size), repeated(hostile[1], size)
		start := time.Now()
		full.Find(sentence, passage(text))
		if took := time.Since(start); took > most {
			t.Errorf("%q in %q: %v for %d bytes", hostile[0], hostile[1], took, size)
		}
	}
}

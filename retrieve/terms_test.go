package retrieve

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/data/datatest"
)

var must = datatest.Must

func TestTerms(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"The harbours were closing", "harbour close"},
		{"to be or not to be", "to be or not to be"},
		{"Café Zürich, naïve", "cafe zurich naiv"},
		{"Straße", "strass"},
		{"getUserName", "getusernam get user name"},
		{"HTTPServer", "httpserver http server"},
		{"foo_bar", "foobar foo bar"},
		{"v1.2.3 of 1,234.5", "1.2.3 1234.5"},
		{"fs.ReadFile", "fs.readfil fs readfil read file"},
		{"the U.S.A. and the boat's mast", "usa boat mast"},
		{"don't", "dont"},
		{"I can't sail, who's there? They’ll ask", "sail ask"},
		{"Id, ill and hell are words", "id ill hell word"},
		{"the 1990s", "1990s 1990"},
		{"東京都庁", "東 京 東京 京都 庁 都庁"},
		{"東 京", "東 京"},
		{"한국어", "한국 국어"},
		{"ภาษาไทย", "ภา าษ ษา าไ ไท ทย"},
		{"паруса ёлка", "парус елк"},
		{"लड़कों लडके लड़का ज़मीन जमीन", "लडक लडक लडक जमीन जमीन"},
		{"नावें पुस्तकालयों", "नाव पुस्तकालय"},
		{"...!? --", ""},
		{"ﬁnd", "find"},
		{"HTTPServer2", "httpserver2 httpserver http server"},
		{"C++17 and C#, F#", "c c++ 17 c c# f f#"},
		{"page#part", "page part"},
		{".NET, ASP.NET", "net .net asp.net aspnet asp net"},
		{"--flag-name", "flag name"},
		{"node.js", "node.j nodej node js"},
		{"an A-320", "320"},
		{"A320", "a320 320"},
		{"e-mails", "e mail email"},
		{"john.doe@example.com", "john.do john doe example.com exampl com"},
		{"1 234 or 1\u202f234,50", "1 234 1 234.50"},
		{"/etc/ssh/sshd_config", "etc ssh sshdconfig sshd config"},
		{"L’eau d'Alsace, dell'acqua", "eau alsac acqua"},
		{"Wie viele Häuser hat die Stadt?", "viel hauser haus stadt"},
		{"香港有多少个议席？", "香 港 香港 港有 少个 议 个议 席 议席"},
		{"多少", "多 少 多少"},
	} {
		got := strings.Join(Terms(c.text), " ")
		if got != c.want {
			t.Errorf("Terms(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestIndexTermsKeepsStopWords(t *testing.T) {
	if got := strings.Join(flat(indexed("To be, or not")), " "); got != "to be or not" {
		t.Errorf("got %q", got)
	}
}

func TestIndexTerms(t *testing.T) {
	for _, c := range []struct {
		text, want string
		length     int
	}{
		{"the A-320", "the a 320 a320", 3},
		{"GPT-4", "gpt 4 gpt4", 2},
		{"1990-1995", "1990 1995", 2},
		{"X-rays", "x ray xray", 2},
		{"well-known", "well known", 2},
		{"log-in", "log in login", 2},
		{"LLMs and mRNAs", "llm llms and mrna mrnas rna rnas", 4},
		{"python3.11 and v1.2.3", "python3.11 python 3.11 3 and 1.2.3 1.2 1", 5},
		{"1.2.3-rc.1", "1.2.3 1.2 1 rc 1", 3},
		{"x86_64-linux", "x8664 x86 86 64 linux", 4},
		{"1\u202f234 «\u202foui\u202f»", "1 234 oui", 3},
		{"1.234 of 1,234.50", "1234 1.234 of 1234.50", 3},
		{"C++", "c c++", 1},
		{"Das sind die Häuser", "das sind die hauser haus", 4},
	} {
		if got := strings.Join(flat(indexed(c.text)), " "); got != c.want {
			t.Errorf("indexed(%q) = %q, want %q", c.text, got, c.want)
		}
		if _, length := CountTerms(c.text); length != c.length {
			t.Errorf("CountTerms(%q) has the length %d, want %d", c.text, length, c.length)
		}
	}
}

// covers is the share of a question's words that are in a text, all words
// counting alike.
func covers(text, asked string) float64 {
	l := newLexicalScorer(question(asked), Stats{Chunks: 1000, MeanTerms: 10})
	all, length := CountTerms(text)
	var terms []string
	var counts []int
	for _, c := range all {
		terms, counts = append(terms, c.Term), append(counts, c.Count)
	}
	var s Scores
	l.score(&s, terms, counts, length)
	return s.Coverage
}

// TestMeetings: a word written in one way is found when it is asked for in
// another, by no small part of the question's terms.
func TestMeetings(t *testing.T) {
	for _, c := range []struct {
		text      string
		questions []string
	}{
		{"needs go1.26", []string{"1.26", "go 1.26", "Go1.26"}},
		{"needs python3.11", []string{"python 3", "Python 3.11", "python3.11", "3.11"}},
		{"on python3", []string{"python 3", "Python3"}},
		{"on Python 3", []string{"python3"}},
		{"H₂O and CO₂ in 10 m²", []string{"H2O", "h2o", "Ｈ₂Ｏ", "CO2", "m2", "m²"}},
		{"H2O and CO2 in 10 m2", []string{"H₂O", "Ｈ２Ｏ", "CO₂", "m²"}},
		{"Paris¹² in 1994.³", []string{"Paris", "1994", "paris 1994"}},
		{"the userIDs", []string{"user ids", "userID", "user_id", "user-id", "UserId"}},
		{"a list of IDs and URLs", []string{"id", "url", "IDs", "urls"}},
		{"IPv6 and an IPv4Address", []string{"ipv6", "IPv6", "ipv4", "IPv4Address", "ipv4 address"}},
		{"class HTTPServer2", []string{"HTTPServer2", "http server", "HTTPServer", "httpserver2", "HTTPServer 2"}},
		{"HTTP2Server", []string{"http2", "server", "HTTP 2 server"}},
		{"for x86_64", []string{"x86-64", "x86", "x86_64", "X86 64"}},
		{"for x86-64", []string{"x86_64", "x86", "x86-64"}},
		{"release 1.2.3-rc.1", []string{"1.2.3", "v1.2.3", "1.2", "1.2.3-rc1", "1.2.3rc1", "v1.2.3-rc.1"}},
		{"release v1.2", []string{"1.2", "v1.2", "version 1.2", "V1.2"}},
		{"V2 of it", []string{"v2", "V2", "2"}},
		{"costs 1.234,56", []string{"1234.56", "1,234.56", "1'234.56", "1’234,56"}},
		{"costs 1,234.56", []string{"1234.56", "1.234,56", "1'234.56"}},
		{"1.234 people", []string{"1234", "1,234", "1.234", "1'234"}},
		{"1,234 people", []string{"1234", "1,234", "1.234"}},
		{"1 234 people", []string{"1 234", "1\u202f234"}},
		{"1.234.567 people", []string{"1234567", "1,234,567", "1.234.567"}},
		{"1000 euros, 3,14", []string{"€1.000,00", "1,000.00", "3.14"}},
		{"in ٢٠٢٤ and २०२५", []string{"2024", "2025"}},
		{"in 2024, ١٬٢٣٤٫٥", []string{"٢٠٢٤", "２０２４", "1,234.5"}},
		{"on 24.12.2024", []string{"2024", "24.12.2024"}},
		{"AT&T and Q & A", []string{"AT&T", "at&t", "Q&A"}},
		{"C++, C# and .NET", []string{"c++", "C#", ".net", "NET"}},
		{"in node.js", []string{"nodejs", "Node.js", "NodeJS", "node"}},
		{"in nodejs", []string{"node.js", "NodeJS"}},
		{"the foo_bar", []string{"fooBar", "foo_bar", "FOO_BAR", "foobar", "foo bar", "foo-bar", "foo.bar"}},
		{"the fooBar", []string{"foo_bar", "foobar", "foo bar"}},
		{"getUserName()", []string{"get_user_name", "getusername", "user name", "GetUserName"}},
		{"run with --dry-run", []string{"dry-run", "--dry-run", "dry run", "dryrun"}},
		{"in /etc/hosts", []string{"/etc/hosts", "etc hosts", "hosts"}},
		{"to user@example.com", []string{"user@example.com", "example.com", "User@Example.com"}},
		{"at 10.0.0.1:8080", []string{"10.0.0.1", "8080"}},
		{"O'Brien", []string{"O’Brien", "OBrien", "obrien", "o'brien", "Oʼbrien", "Brien"}},
		{"naïve Café", []string{"naive", "nai\u0308ve", "cafe", "CAFÉ"}},
		{"log-in by Wi-Fi and e-mail", []string{"login", "wifi", "WiFi", "email", "wi fi"}},
		{"login by wifi and email", []string{"Wi-Fi", "e-mail"}},
		{"Straße, Größe", []string{"Strasse", "STRASSE", "strasse", "Grösse", "GROẞE"}},
		{"in Kadıköy, İzmir, IĞDIR", []string{"Kadikoy", "KADIKÖY", "izmir", "Iğdır", "ığdır"}},
		{"ο Οδυσσεύς στον δρόμο", []string{"ΟΔΥΣΣΕΥΣ", "οδυσσευς", "ΔΡΟΜΟ"}},
		{"كِتَابٌ كـــتـاب أحمد", []string{"كتاب", "احمد", "كـتاب"}},
		{"کتاب یک", []string{"كتاب", "كِتَاب"}},
		{"שָׁלוֹם וצה\u05f4ל", []string{"שלום", "וצה\"ל"}},
		{"ज़मीन और लड़का", []string{"जमीन", "लडका", "ज\u093cमीन"}},
		{"집에서 한국어를", []string{"한국어", "한국어는", "한국"}},
		{"집을 팔았다", []string{"집", "집은", "집이"}},
		{"Python을 2024년에 AI는", []string{"Python", "2024", "AI", "python은"}},
		{"ภาษาไทย", []string{"ภาษา", "ไทย"}},
		{"Đà Nẵng, Việt Nam", []string{"Da Nang", "Viet Nam", "đà nẵng", "VIỆT"}},
		{"コンピューター", []string{"コンピュータ", "ｺﾝﾋﾟｭｰﾀｰ"}},
		{"за\u0301мок и ёлка", []string{"замок", "елка", "ЁЛКА"}},
		{"con\ufb01g co\u00adoperate", []string{"config", "cooperate"}},
		{"об\u02bcєкт", []string{"об'єкт", "об’єкт"}},
	} {
		for _, q := range c.questions {
			if got := covers(c.text, q); got < .25 {
				t.Errorf("%.2f of %q (%q) is in %q (%q)", got, q, Terms(q), c.text, flat(indexed(c.text)))
			}
		}
	}
}

// TestApart: what only looks alike has nothing in common.
func TestApart(t *testing.T) {
	for _, c := range []struct{ text, question string }{
		{"1.2.3", "1.2.4"},
		{"1.2.3", "v1.2.30"},
		{"10.0.0.1", "10.0.0.2"},
		{"10.0.0.1", "10001"},
		{"192.168.100.200", "192168100200"},
		{"10² of 1994³", "102"},
		{"10² of 1994³", "19943"},
		{"1,2,3", "123"},
		{"1,23", "123"},
		{"0.123", "123"},
		{"python3.111", "3111"},
		{"userIDs", "ds"},
		{"IPv6", "pv"},
		{"1 23", "123"},
		{"1 234 567 890 123", "1234567890123"},
		{"2020 100 200", "100200"},
		{"AT&T", "ATT"},
		{"R&D", "RD"},
		{"/etc/hosts", "etchosts"},
		{"user@example.com", "userexample"},
		{"foo_bar", "fo obar"},
		{"Python을", "을"},
		{"한국", "국한"},
	} {
		if got := covers(c.text, c.question); got != 0 {
			t.Errorf("%q (%q) meets %q (%q)", c.question, Terms(c.question), c.text, flat(indexed(c.text)))
		}
	}
}

// TestNearer: of two texts the one that matches the question comes first.
func TestNearer(t *testing.T) {
	for _, c := range []struct{ question, right, wrong string }{
		{"IPv6", "it has IPv6", "it has IPv4"},
		{"go1.26", "needs go 1.26", "needs go 1.25"},
		{"go 1.26", "needs go1.26", "needs go1.25"},
		{"python 3", "runs on python3.11", "runs on python2.7"},
		{"1.2.3-rc.1", "the 1.2.3-rc.1", "the 1.2.3"},
		{"C++", "written in C++", "written in C"},
		{"C#", "written in C#", "written in C"},
		{".NET", "for .NET", "for net weight"},
		{"user@example.com", "to user@example.com", "to user@example.org"},
		{"H₂O", "of H2O", "of H 2 O"},
		{"x86_64", "for x86_64", "for aarch64"},
		{"AT&T", "of AT&T", "at t"},
		{"R&D", "the R&D", "the R and then D"},
		{"1.234", "1.234 of them", "1,234 of them"},
		{"getUserName", "calls getUserName", "gets the user a name"},
	} {
		if right, wrong := covers(c.right, c.question), covers(c.wrong, c.question); right <= wrong {
			t.Errorf("%q: %.2f of it in %q, %.2f in %q", c.question, right, c.right, wrong, c.wrong)
		}
	}
}

// Where there is no word but only letters, the index has the start of them. A
// step that were quadratic in their number would not end here.
func TestTermsOfEndlessWord(t *testing.T) {
	terms := flat(indexed("die Länge ist nicht die der " + strings.Repeat("ä", 1<<19)))
	if last := terms[len(terms)-1]; last != strings.Repeat("a", maxTerm) {
		t.Errorf("the word is found by %q", last)
	}
}

func FuzzTerms(f *testing.F) {
	f.Add("The getUserName of 東京 v1.2.3 … ภาษา don't U.S.A. _x_ \u0301")
	f.Add("1 234,5 H₂O AI는 x86_64-linux IPv4Address 1\u202f234 ١٬٢٣٤ LLMs")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("documents are valid UTF-8")
		}
		for _, terms := range [][]string{Terms(text), flat(indexed(text))} {
			for _, term := range terms {
				if term == "" || len(term) > maxTerm || !utf8.ValidString(term) {
					t.Fatalf("bad term %q of %q", term, text)
				}
			}
		}
		upper := strings.ToUpper(text)
		if isPlain(text) && !equal(Terms(text), Terms(strings.ToLower(upper))) && text == strings.ToLower(text) {
			t.Fatalf("case matters in %q", text)
		}
	})
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func equal(a, b []string) bool { return strings.Join(a, "\x00") == strings.Join(b, "\x00") }

package retrieve

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTerms(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"The harbours were closing", "harbour close"},
		{"to be or not to be", "to be or not to be"},
		{"Café Zürich, naïve", "cafe zurich naiv"},
		{"Straße", "strass"},
		{"getUserName", "getusernam get user name"},
		{"HTTPServer", "httpserver http server"},
		{"foo_bar", "foo_bar foo bar"},
		{"v1.2.3 of 1,234.5", "1.2.3 1234.5"},
		{"fs.ReadFile", "fs.readfil fs read file"},
		{"the U.S.A. and the boat's mast", "usa boat mast"},
		{"don't", "dont"},
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
		{"HTTPServer2", "httpserver2 http server"},
		{"C++17 and C#, F#", "c c++ 17 c c# f f#"},
		{"page#part", "page part"},
		{".NET, ASP.NET", "net .net asp.net asp net"},
		{"--flag-name", "flag name"},
		{"node.js", "node.j node js"},
		{"an A-320", "320"},
		{"A320", "a320 320"},
		{"e-mails", "e mail email"},
		{"john.doe@example.com", "john.do john doe example.com exampl com"},
		{"/etc/ssh/sshd_config", "etc ssh sshd_config sshd config"},
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
	if got := strings.Join(IndexTerms("To be, or not"), " "); got != "to be or not" {
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
		{"C++", "c c++", 1},
		{"Das sind die Häuser", "das sind die hauser haus", 4},
	} {
		if got := strings.Join(IndexTerms(c.text), " "); got != c.want {
			t.Errorf("IndexTerms(%q) = %q, want %q", c.text, got, c.want)
		}
		if _, length := CountTerms(c.text); length != c.length {
			t.Errorf("CountTerms(%q) has the length %d, want %d", c.text, length, c.length)
		}
	}
}

func FuzzTerms(f *testing.F) {
	f.Add("The getUserName of 東京 v1.2.3 … ภาษา don't U.S.A. _x_ \u0301")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("documents are valid UTF-8")
		}
		for _, terms := range [][]string{Terms(text), IndexTerms(text)} {
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

func BenchmarkTerms(b *testing.B) {
	text := strings.Repeat("An experimental study of a wing in a propeller slipstream was made in order to determine the spanwise distribution of the lift increase due to slipstream at different angles of attack of the wing. ", 5)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		IndexTerms(text)
	}
}

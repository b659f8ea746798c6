package charset

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"

	"ibid/data/datatest"
)

var must = datatest.Must

// Each folder is named for the encoding of its files, some also for the
// language. The decoder gets no declaration.
func TestShareDecodedRight(t *testing.T) {
	dir := datatest.Sets(t, "files/encodings-chardet")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	right, unsupported := 0, 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		must(t, err)
		want, ok := reference(t, filepath.Base(filepath.Dir(name)), data)
		got, err := Decode(data, "")
		if !ok && err != nil { // Johab, ISO-2022-KR, UTF-32
			unsupported++
			continue
		}
		if err != nil || got != want {
			enc, _, _ := encodingOf(data, "")
			t.Logf("%s: taken for %v, %v", name, enc, err)
			continue
		}
		right++
	}
	t.Logf("figure: files of encodings-chardet decoded right, nothing declared: %d of %d (%.3f)", right, len(files),
		float64(right)/float64(len(files)))
	if unsupported > 5 || right+unsupported < len(files) {
		t.Errorf("%d of %d decoded right", right, len(files))
	}
}

// reference decodes data as a folder's name says; ok is false when it says
// nothing.
func reference(t *testing.T, folder string, data []byte) (text string, ok bool) {
	t.Helper()
	name := strings.ToLower(folder)
	if i := strings.LastIndexByte(name, '-'); i > 0 && strings.Trim(name[i:], "-abcdefghijklmnopqrstuvwxyz") == "" && len(name[i:]) > 4 {
		name = name[:i]
	}
	var enc encoding.Encoding
	switch name {
	case "ascii", "utf-8", "utf-8-sig":
		enc = unicode.UTF8BOM
	case "utf-16": // with a byte order mark
		enc, data, _ = byOrderMark(data)
	case "utf-16le":
		enc = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case "utf-16be":
		enc = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case "tis-620":
		enc = charmap.Windows874
	case "maccyrillic":
		enc = charmap.MacintoshCyrillic
	default:
		enc = Lookup(name)
	}
	if enc == nil {
		return "", false
	}
	out, err := enc.NewDecoder().Bytes(data)
	must(t, err)
	return string(out), true
}

// A sentence or two in each language is enough, and a false declaration does
// no harm.
func TestShortTexts(t *testing.T) {
	const (
		russian   = "Библиотека открывается в девять часов утра. По воскресеньям она закрыта."
		ukrainian = "Бібліотека відчиняється о дев'ятій ранку. Щонеділі вона зачинена, їжте вдома."
		bulgarian = "Библиотеката отваря в девет часа сутринта. В неделя тя е затворена."
		greek     = "Η βιβλιοθήκη ανοίγει στις εννέα το πρωί. Την Κυριακή είναι κλειστή."
		hebrew    = "הספרייה נפתחת בשעה תשע בבוקר. ביום שבת היא סגורה."
		arabic    = "تفتح المكتبة أبوابها في الساعة التاسعة صباحا، وتغلق يوم الجمعة."
		thai      = "ห้องสมุดเปิดเวลาเก้าโมงเช้า และปิดในวันอาทิตย์"
		polish    = "Biblioteka jest otwarta od dziewiątej rano. W niedzielę jest zamknięta, książki można zwrócić później. Żółw śpi."
		czech     = "Knihovna se otevírá v devět hodin ráno. V neděli je zavřeno, knihy lze vrátit oknem. Příště šťastně."
		hungarian = "A könyvtár reggel kilenc órakor nyit. Vasárnap zárva tart, a könyvek az ablakon át adhatók vissza. Előző nap " +
			"hűvös volt."
		turkish   = "Kütüphane sabah dokuzda açılır. Pazar günleri kapalıdır, kitaplar pencereden iade edilebilir. Şişli çok uzak."
		german    = "Die Bücherei öffnet um neun Uhr früh. Für Bücher, die zu spät zurückkommen, fällt eine Gebühr an."
		french    = "La bibliothèque ouvre à neuf heures. Elle est fermée le dimanche, même en été ; ça gêne les élèves."
		english   = "The library opens at nine. It’s closed on Sundays – a “quiet” day."
		japanese1 = "図書館は九時に開きます。日曜日は休館です。本は窓口でお返しください。"
		chinese   = "图书馆九点开门。星期日不开放。迟还的书要付费，请到窗口办理还书手续。"
		taiwan    = "圖書館九點開門。星期日不開放。遲還的書要付費，請到窗口辦理還書手續。"
		korean1   = "도서관은 아홉 시에 엽니다. 일요일에는 쉽니다. 책은 창구에 돌려주세요."
	)
	littleEndian, bigEndian := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	for _, tt := range []struct {
		text string
		in   []encoding.Encoding
	}{
		{russian, []encoding.Encoding{littleEndian, bigEndian, charmap.Windows1251,
			charmap.KOI8R, charmap.ISO8859_5, charmap.CodePage866, charmap.CodePage855,
			charmap.MacintoshCyrillic}},
		{ukrainian, []encoding.Encoding{charmap.Windows1251, charmap.KOI8U, charmap.ISO8859_5}},
		{bulgarian, []encoding.Encoding{charmap.Windows1251, charmap.ISO8859_5}},
		{greek, []encoding.Encoding{charmap.Windows1253, charmap.ISO8859_7}},
		{hebrew, []encoding.Encoding{charmap.Windows1255, charmap.ISO8859_8}},
		{arabic, []encoding.Encoding{littleEndian, bigEndian, charmap.Windows1256, charmap.ISO8859_6}},
		{thai, []encoding.Encoding{charmap.Windows874}},
		{polish, []encoding.Encoding{charmap.Windows1250, charmap.ISO8859_2, charmap.CodePage852}},
		{czech, []encoding.Encoding{charmap.Windows1250, charmap.ISO8859_2, charmap.CodePage852}},
		{hungarian, []encoding.Encoding{charmap.Windows1250, charmap.ISO8859_2}},
		{turkish, []encoding.Encoding{charmap.Windows1254, charmap.ISO8859_9}},
		{german, []encoding.Encoding{charmap.Windows1252, charmap.ISO8859_1, charmap.Macintosh, unicode.UTF8BOM,
			unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), littleEndian, bigEndian}},
		{french, []encoding.Encoding{charmap.Windows1252, charmap.ISO8859_1, charmap.Macintosh, charmap.CodePage850}},
		{english, []encoding.Encoding{charmap.Windows1252}},
		{japanese1, []encoding.Encoding{japanese.ShiftJIS, japanese.EUCJP, japanese.ISO2022JP}},
		{chinese, []encoding.Encoding{simplifiedchinese.GBK, simplifiedchinese.GB18030}},
		{chinese + "\r\n", []encoding.Encoding{littleEndian, bigEndian}},
		{japanese1 + "\n" + thai, []encoding.Encoding{littleEndian, bigEndian}},
		{taiwan, []encoding.Encoding{traditionalchinese.Big5}},
		{korean1, []encoding.Encoding{littleEndian, bigEndian, korean.EUCKR}},
	} {
		for _, enc := range tt.in {
			data, err := enc.NewEncoder().Bytes([]byte(tt.text))
			if err != nil {
				t.Errorf("%v: %v", enc, err)
				continue
			}
			for _, declared := range []string{"", "utf-8", "iso-8859-1", "windows-1251", "shift_jis", "nonsense"} {
				if got, err := Decode(data, declared); err != nil || got != tt.text {
					t.Errorf("%v declared as %q: %q, %v", enc, declared, got, err)
				}
			}
		}
	}
}

// A few words are enough too, where another encoding would mix scripts. A declaration
// decides where the bytes do not. Bytes that are not text, or are in an unsupported
// encoding, are refused.
func TestDecode(t *testing.T) {
	ebcdic := encoded(t, charmap.CodePage037, strings.Repeat("The ferry leaves at nine in the morning\n", 3))
	type row struct {
		data, declared, want string
		err                  error
	}
	rows := []row{
		{"5 \xa4 f\xfcr B\xfccher", "ISO-8859-15", "5 € für Bücher", nil}, {"caf\xe9", "windows-1250", "café", nil},
		{"\xc4\xe0", "windows-1251", "Да", nil}, {"\xc4\xe0", "\"windows-1251\"", "Да", nil}, {"plain", "utf-16le", "plain", nil},
		{"plain", "x-user-defined", "plain", nil}, {"f\xfcr", "replacement", "für", nil}, {"f\xfcr", "iso-2022-kr", "für", nil},
		{"\x1b$)C\x0e?*;g@{\x0f \x0e?9<v\x0f, abc", "", "", ErrEncoding}, {ebcdic, "", "", ErrEncoding},
		{"\x00\x01\x02\x00", "", "", ErrBinary},
		{strings.Repeat("\x01\x02\x91\x92\x05", 100), "", "", ErrBinary}, {"\x7fELF\x02\x01\x01\x00\x00\x00\x00", "", "", ErrBinary},
	}
	for _, text := range []string{"Café für Señor", "naïve", "Grüße aus Köln", "El Niño", "crème brûlée", "Ångström", "voilà"} {
		rows = append(rows, row{encoded(t, charmap.Windows1252, text), "", text, nil})
	}
	for _, tt := range rows {
		if got, err := Decode([]byte(tt.data), tt.declared); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q declared as %q: %q, %v, want %q, %v", tt.data, tt.declared, got, err, tt.want, tt.err)
		}
	}
}

// Garbled text is recognised, and no language, list of numbers or short text is
// taken for it.
func TestGarbled(t *testing.T) {
	const grammar = `BodyLine := CostLine | PositionSpec | CallSpec | UncondJumpSpec | CondJumpSpec CostLine := SubPositionList Costs`
	const ferry = "The ferry leaves the harbour at nine in the morning, and on Sundays an hour later than on other days. "
	mixed, err := charmap.KOI8R.NewDecoder().String(encoded(t, charmap.Windows1251, "Библиотека Открывается В Девять Часов Утра, "+
		"А По Воскресеньям Она Закрыта. Книги Можно Вернуть Через Окно Во Дворе."))
	must(t, err)
	turned := func(text string, by rune) string { // each letter is replaced by another one
		return strings.Map(func(r rune) rune {
			if i := r | 0x20 - 'a'; i >= 0 && i < 26 && r < 0x80 {
				return r - i + (i+by+26)%26
			}
			return r
		}, text)
	}
	const rope = "Coil the rope with the sun, keep every turn equally long, and finish by wrapping what is left around the middle. " +
		"Wet ropes dry hanging in the shade; those stiff with salt are washed in fresh water before winter comes."
	const bread = " Das Brot wird am Morgen gebacken, und wer später kommt, bekommt manchmal keines mehr; freitags gibt es auch Kuchen."
	japanese, err := charmap.Windows1252.NewDecoder().String(encoded(t, japanese.ShiftJIS, "図書館は九時に開きます。日曜日は休みですが、本は窓口で返すことができます。"))
	must(t, err)
	for text, want := range map[string]bool{
		ferry: false, strings.ToUpper(ferry): false, grammar: false, bread: false,
		rope + bread: false, turned(rope+bread, 13): true, turned(rope+bread, -1): true, turned(rope+bread, 7): true, japanese: true,
		"Keys: abcdefghijklm nopqrstuvwxyz qwertyuiop asdfghjkl zxcvbnm; AX-200, BZX84C, X7-QT: strlen memcpy wchar_t fprintf": false,
		strings.Repeat("CDまたはDVDとNTFSを使います。追加のメディアがない場合は必要ありません。", 10):                                                         false,
		"![A ferry](data:" + strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAEA", 200) + ")":                                          false,
		strings.Repeat("#$%&'( ", 30):       true,
		strings.Repeat("\ue001\ue002 ", 60): true, strings.Repeat("x", 1000): true, "#$%&'": false, mixed: true,
		"Contents\n" + strings.Repeat("Fares .................. 12\n", 20): false, strings.Repeat("Fares . . . . . . . . . 12\n", 20): false,
		strings.Repeat("12.50 | 3 | -7 % | 1,024\n", 20):                                                                      false,
		strings.Repeat("3*(4+5)=27; 7*8=56; 2>1; 100 %\n$12.50 (3) +7% #4 'A1'\n\"12\",\"13\";[14,15]\n", 20):                 false,
		")%2 &0$$+//22 \"+== $22/ 0* )%5#),9. /0 /9=7 9?05/ /%2 %9#?05# 9*, /%2 822) 80# /%2 &0$+*> .29#= $0?0,. 0?12&/2":     true,
		"T,) '311-88)) ;-00 1))8 32 T,967(%= 83 8%0/ %&398 8,) ,%6&396 %2( 8,) *))7 *36 8,) '31-2+ =)%6. N3&3(= 3&.)'8)(":     true,
		"Библиотека открывается в девять часов утра. По воскресеньям она закрыта, а книги можно вернуть через окно во дворе.": false,
		"аХАКХНРЕЙЮ НРЙПШБЮЕРЯЪ Б ДЕБЪРЭ ВЮЯНБ СРПЮ, Ю ОН БНЯЙПЕЯЕМЭЪЛ НМЮ ГЮЙПШРЮ, Ю ЙМХЦХ ЛНФМН БЕПМСРЭ":                    true,
		"Хүн бүр төрж мэндлэхэд эрх чөлөөтэй, адилхан нэр төртэй, ижил эрхтэй байдаг. Номын сан есөн цагт нээгддэг":           false,
		"Kirjasto avataan yhdeksältä. Sunnuntaisin se on kiinni, mutta kirjat voi palauttaa ikkunasta pihan puolella.":        false,
		"Biblioteka jest otwarta od dziewiątej rano. W niedzielę jest zamknięta, książki można zwrócić później przez okno.":   false,
		"圖書館九點開門。星期日不開放。" + strings.Repeat("遲還的書要付費，請到窗口辦理還書手續。", 10):                                                         false,
	} {
		if got := IsGarbled(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// Text in the wrong encoding or from a font with its own order of letters is
// recognised; no language is, not even those with the most accents.
func TestMisread(t *testing.T) {
	languages := []string{
		"Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience.",
		"Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím.",
		"Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. Mọi con người đều được tạo hoá ban cho lý trí.",
		"Hver maður er borinn frjáls og jafn öðrum að virðingu og réttindum. Menn eru gæddir vitsmunum og samvizku.",
		"Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler.",
		"Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem.",
		"Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és lelkiismerettel bírván.",
		"Todos os seres humanos nascem livres e iguais em dignidade e em direitos. São dotados de razão e de consciência.",
		"Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnuft och samvete.",
		"Visi cilvēki piedzimst brīvi un vienlīdzīgi savā pašcieņā un tiesībās. Viņi ir apveltīti ar saprātu un sirdsapziņu.",
		"Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью.",
		"Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική.",
		"人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
		"すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
	}
	for _, text := range languages {
		if text = strings.Repeat(text+"\n", 4); IsGarbled(text) {
			t.Errorf("%q is garbled", text)
		}
		// Its UTF-8 read as another encoding, once or twice, is garbled.
		for _, m := range misreadings[:2] {
			wrong := text
			for range 2 {
				in := wrong
				wrong = ""
				for _, b := range []byte(in) {
					chars := charmap.Windows1252
					if m('Ж') != "" {
						chars = charmap.Windows1251
					}
					if r := chars.DecodeByte(b); r != utf8.RuneError {
						wrong += string(r)
					} else {
						wrong += string(rune(b))
					}
				}
				if !IsGarbled(wrong) {
					t.Errorf("%q is not garbled", wrong[:100])
				}
			}
		}
	}
	latin := func(enc encoding.Encoding, text string) string {
		out, err := charmap.Windows1252.NewDecoder().String(encoded(t, enc, strings.Repeat(text, 3)))
		must(t, err)
		return out
	}
	for _, text := range []string{
		latin(charmap.Windows1251, languages[10]), latin(charmap.KOI8R, languages[10]), latin(charmap.Windows1253, languages[11]),
		latin(simplifiedchinese.GBK, languages[12]), latin(japanese.ShiftJIS, languages[13]),
		strings.Repeat("Ûïì§öííðêì§ðú§ö÷ìõ§íùöô§Ûüìúëè§ûö§Úèûüùëè3§õðõì§ûö§íðýì§Ðõ§Ñüõì3", 3),
		strings.Repeat("鍔炲叕瀹や粠鏄熸湡浜屽埌鏄熸湡鍏寮鏀撅紝涔濈偣鍒颁簲鐐广", 3),
		"Gur svefg sreel jvgu puvyqera bs gur abegurea fpubby jnvgf hagvy gurl unir nyy tbar guebhtu gur juvg" +
			"r tngr, gura gur uryzfzna juvfgyrf guerr gvzrf, guebjf bss gur urnil ebcr naq gur jubyr perj jngpu gur jrngure.",
	} {
		if !IsGarbled(text) {
			t.Errorf("%q is not garbled", text)
		}
	}
	table := "ACDEFGJMNPQUVWYZ ¢£¤¥§©«¬®±¶ ÀÁÂÃÄÅÆÈÉÊËÌ ÍÎÏÑÒÓÔÕÖØÙÚÛÜÝ àáâãäåæçèéêëìíîïñòóôõöøùúûüý"
	if IsGarbled(table) {
		t.Error("a table of letters is garbled")
	}
}

// The table of pairs has a digit for each two letters or ends of a word. Texts with rare
// pairs are read.
func TestPairShares(t *testing.T) {
	if len(pairShares) != 27*27 || strings.Trim(pairShares, "0123456789") != "" || pairShares[0] != '0' {
		t.Errorf("the table has %d digits", len(pairShares))
	}
	for _, text := range []string{
		"Szczepan Brzęczyszczykiewicz\nNguyễn Thị Hằng\nÞorgerður Ölvisdóttir\nXóchitl Quetzalcóatl\nMbongeni Ngxokolo\n" +
			"Llyr Gwrtheyrn\nQiu Xiaolong\nKrzysztof Wójcik\nZsófia Szűcs\nHrvoje Krznarić\nJyrki Väyrynen\nFfion Llwyd",
		"ax200 bzx84c ths7374 lm317t max232cpe qfn48 tqfp sot23 dpak mosfet igbt jfet vdmos lvpecl lvds cmos ttl hstl sstl gtl",
		"ul. Grzybowska 12\nVrchlického 7, Plzeň\nHvězdova 3\nTjörnvägen 4\nSchwyzstrasse 9\nŻwirki i Wigury 1\nSzt. István krt. 5",
		"jan 03 sshd: pam_unix(sshd:session) closed uid kworker systemd kernel: nfsd xhci_hcd usbhid mdadm dmesg dhcpd ntpd mtrr acpi",
		"## Key\n\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx8hq0vUQm2Wk3pTgYb7ZrLdNfCeVoXsKuMwHyPzBtR\nqzxkvjwpfhbm kqwxzjvh tpmwqzrk\n" +
			"Add the key to the server before the first start.",
		"Lautta lähtee kahdeltatoista, jollei jäätä ole liikaa; polkupyörät kuljetetaan ylimääräisestä maksusta keskikannella.",
		"A komp délben indul, ha nincs túl sok jég; a kerékpárokat külön díjért szállítják a középső fedélzeten, gyerekeknek ingyen.",
		"Mae'r fferi yn gadael am hanner dydd oni bai bod gormod o rew; cludir beiciau am dâl ychwanegol ar y dec canol, ac mae cŵn yn rhydd.",
		"Phà rời bến lúc giữa trưa trừ khi có quá nhiều băng; xe đạp được chở với phụ phí trên boong giữa, trẻ em đi miễn phí.",
		"Kivuko huondoka saa sita mchana isipokuwa kuna barafu nyingi; baiskeli husafirishwa kwa malipo ya ziada kwenye sitaha ya kati.",
	} {
		if IsGarbled(text) {
			t.Errorf("%q is garbled", text)
		}
	}
}

// Codes, abbreviations and keys, which are in no language, are read.
func TestCodesAreRead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	from := func(letters string, least, most int) string {
		code := make([]byte, least+random.IntN(most-least+1))
		for i := range code {
			code[i] = letters[random.IntN(len(letters))]
		}
		return string(code)
	}
	const capitals, digits = "BCDFGHJKLMNPQRSTVWXZ", "0123456789"
	for name, line := range map[string]func() string{
		"parts": func() string {
			return from(capitals, 2, 3) + "-" + from(digits, 2, 4) + from(capitals, 1, 1) + " " + from(capitals, 3, 9)
		},
		"described": func() string {
			return from(capitals+digits, 8, 8) + "\tgskt flng " + from(capitals, 4, 4) + "\t" + from(digits, 2, 3) + " pcs"
		},
		"call signs": func() string {
			return "DL" + from(digits, 1, 1) + from(capitals, 3, 3) + " " + from(digits, 4, 4) + " kHz"
		},
		"vehicles":      func() string { return from(capitals+digits, 17, 17) },
		"tickers":       func() string { return from(capitals, 3, 4) + " " + from(digits, 2, 2) + "." + from(digits, 2, 2) },
		"mnemonics":     func() string { return from(capitals, 2, 10) },
		"DNA":           func() string { return from("acgt", 60, 60) },
		"groups of DNA": func() string { return from(digits, 2, 3) + strings.Repeat(" "+from("ccgggat", 10, 10), 6) },
		"proteins":      func() string { return from("ACDEFGHIKLMNPQRSTVWY", 60, 60) },
		"base64":        func() string { return from(capitals+strings.ToLower(capitals)+digits+"AEIOUaeiou+/", 76, 76) },
		"chess": func() string {
			return from(digits, 1, 2) + ". N" + from("abcdefgh", 1, 1) + "3 " + from("abcdefgh", 1, 1) + "xd5"
		},
		"word search":   func() string { return from(capitals, 15, 15) },
		"hashes":        func() string { return from("0123456789abcdef", 40, 40) },
		"abbreviations": func() string { return from(strings.ToLower(capitals), 2, 6) },
	} {
		var text strings.Builder
		for range 200 {
			text.WriteString(line() + "\n")
		}
		if IsGarbled(text.String()) {
			t.Errorf("%s are garbled: %.200q", name, text.String())
		}
	}
}

func encoded(t *testing.T, enc encoding.Encoding, text string) string {
	t.Helper()
	data, err := enc.NewEncoder().String(text)
	must(t, err)
	return data
}

// Any bytes decode to text or an error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00"), "utf-8")
	f.Add([]byte("\x1b$)C\x0e?*"), "")
	f.Add([]byte("\xb7\x61\xac"), "shift_jis")
	f.Fuzz(func(t *testing.T, data []byte, declared string) {
		Decode(data, declared)
	})
}

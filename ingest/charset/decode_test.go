package charset

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	xunicode "golang.org/x/text/encoding/unicode"
)

func TestDecode(t *testing.T) {
	const (
		russian   = "Библиотека открывается в девять часов утра. По воскресеньям она закрыта, и книги можно вернуть через окно. "
		german    = "Die Bücherei öffnet um neun Uhr früh. Für Bücher, die zu spät zurückkommen, fällt eine Gebühr an. "
		japanese1 = "図書館は九時に開きます。日曜日は休館です。本は窓口でお返しください。"
		chinese   = "图书馆九点开门。星期日不开放。迟还的书要付费，请到窗口办理还书手续。"
		taiwan    = "圖書館九點開門。星期日不開放。遲還的書要付費，請到窗口辦理還書手續。"
		korean1   = "도서관은 아홉 시에 엽니다. 일요일에는 쉽니다. 책은 창구에 돌려주세요. "
	)
	tests := []struct {
		name string
		enc  encoding.Encoding
		text string
	}{
		{"utf-16le with mark", xunicode.UTF16(xunicode.LittleEndian, xunicode.UseBOM), german},
		{"utf-16be without mark", xunicode.UTF16(xunicode.BigEndian, xunicode.IgnoreBOM), german},
		{"utf-16le without mark", xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM), german},
		{"utf-8 with mark", xunicode.UTF8BOM, russian},
		{"windows-1251", charmap.Windows1251, russian},
		{"koi8-r", charmap.KOI8R, russian},
		{"latin-1", charmap.ISO8859_1, german},
		{"shift_jis", japanese.ShiftJIS, japanese1},
		{"euc-jp", japanese.EUCJP, japanese1},
		{"iso-2022-jp", japanese.ISO2022JP, japanese1},
		{"gb18030", simplifiedchinese.GB18030, chinese},
		{"big5", traditionalchinese.Big5, taiwan},
		{"euc-kr", korean.EUCKR, korean1},
	}
	for _, tt := range tests {
		text := strings.Repeat(tt.text, 4)
		data, err := tt.enc.NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(data, ""); err != nil || got != text {
			t.Errorf("%s: %q, %v", tt.name, got[:min(len(got), 80)], err)
		}
	}
	// What a page declares counts less than its bytes.
	if got, err := Decode([]byte(german), "windows-1251"); err != nil || got != german {
		t.Errorf("a lying declaration: %q, %v", got, err)
	}
	data, err := charmap.ISO8859_15.NewEncoder().Bytes([]byte("5 € für Bücher"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(data, "ISO-8859-15"); err != nil || got != "5 € für Bücher" {
		t.Errorf("a true declaration: %q, %v", got, err)
	}
}

package pdfium

import (
	"slices"
	"testing"
	"unicode/utf8"
)

func TestLocate(t *testing.T) {
	tests := []struct {
		name, page, quote string
		want              []string
	}{
		{"unchanged", "The ferry leaves at nine.", "leaves at nine", []string{"leaves at nine"}},
		{"over a line", "The ferry\r\nleaves at nine.", "ferry leaves", []string{"ferry\r\nleaves"}},
		{"over a hyphen", "an inter\u0002national fare", "international fare", []string{"inter\u0002national fare"}},
		{"ligatures and case", "The oﬃce is closed", "THE OFFICE", []string{"The oﬃce"}},
		{"cells of a table", "Berth Rate Short £12 Long £20 per night", "Berth: Short | Rate: £12 | Long £20 per night",
			[]string{"12 Long £20 per night"}},
		{"in pieces", "The first column says this. The second column says that.",
			"The second column says that. The first column says this.", []string{"The second column says that",
				"The first column says this"}},
		{"short", "a b c", "b", []string{"b"}},
		{"not there", "The ferry leaves at nine.", "The bus leaves at eight from the station", nil},
		{"no letters", "…", "—", nil},
		{"Chinese", "渡轮九点开船。票价十二元。", "票价十二元", []string{"票价十二元"}},
	}
	for _, tt := range tests {
		chars := []rune(tt.page)
		var got []string
		for _, s := range locate(chars, tt.quote) {
			got = append(got, string(chars[s.from:s.to]))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzLocate(f *testing.F) {
	f.Add("The ferry leaves at nine.", "leaves at nine")
	f.Add("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaab")
	f.Fuzz(func(t *testing.T, page, quote string) {
		chars := []rune(page)
		for _, s := range locate(chars, quote) {
			if s.from < 0 || s.from >= s.to || s.to > len(chars) {
				t.Fatalf("%+v of %d", s, utf8.RuneCountInString(page))
			}
		}
	})
}

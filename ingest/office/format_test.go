package office

import "testing"

func TestFormatNumber(t *testing.T) {
	tests := []struct{ value, format, want string }{
		{"1234.5", "", "1234.5"},
		{"0.30000000000000004", "General", "0.3"},
		{"1E-7", "General", "0.0000001"},
		{"123456789012", "General", "123456789012"},
		{"1e300", "", "1E+300"},
		{"words", "0.00", "words"},
		{"", "0.00", ""},
		{"NaN", "0.00", "NaN"},
		{"1234.567", "0.00", "1234.57"},
		{"1.005", "0.00", "1.01"},
		{"-1234.5", "#,##0.00", "-1,234.50"},
		{"-0.001", "0.00", "0.00"},
		{"1234567", "#,##0", "1,234,567"},
		{"1234567", "#,##0,", "1234567"},
		{"7", "000", "007"},
		{"0.5", "#.##", "0.5"},
		{"2", "0.##", "2"},
		{"0.125", "0%", "13%"},
		{"0.125", "0.0%", "12.5%"},
		{"198345000", "0.00E+00", "198345000"},
		{"2.5", "# ?/?", "2.5"},
		{"0.3333", "# ??/??", "0.3333"},
		{"3", "# ?/?", "3"},
		{"-80", "#,##0.00_);[Red](#,##0.00)", "(80.00)"},
		{"0", `0;-0;"none"`, "none"},
		{"5", "[$€-407]#,##0.00", "€5.00"},
		{"5", `"about "0" boats"`, "about 5 boats"},
		{"5", `0\ \k\g`, "5 kg"},
		{"0.4", "[<1]\"less\";[>=1]0.0", "0.4"},
		{"45382", "m/d/yyyy", "2024-03-31"},
		{"45382", "dd.mm.yy", "2024-03-31"},
		{"45382.25", "m/d/yy h:mm", "2024-03-31 06:00"},
		{"45382.25", "[$-409]d\\-mmm\\-yy;@", "2024-03-31"},
		{"45382", "mmm-yy", "2024-03"},
		{"45382", "yyyy", "2024"},
		{"45382", "d-mmm", "31 March"},
		{"45382", "mmmm", "March"},
		{"45382", "dddd", "Sunday"},
		{"0.75", "h:mm AM/PM", "18:00"},
		{"0.5000115741", "h:mm:ss", "12:00:01"},
		{"1.5", "[h]:mm", "36:00:00"},
		{"0.0416782407", "mm:ss", "01:00:01"},
		{"1", "yyyy-mm-dd", "1900-01-01"},
		{"61", "yyyy-mm-dd", "1900-03-01"},
		{"-5", "yyyy-mm-dd", "-5"},
		{"9999999999", "yyyy-mm-dd", "9999999999"},
		{"44.9999999", "0.0", "45.0"},
		{"12", "@", "12"},
		{"12", ";;;", "12"},
		{"12", `yyyy"年"m"月"d"日"`, "1900-01-12"},
	}
	for _, tt := range tests {
		if got := formatNumber(tt.value, tt.format, false); got != tt.want {
			t.Errorf("%s as %s: %q, want %q", tt.value, tt.format, got, tt.want)
		}
	}
	if got := formatNumber("43920", "yyyy-mm-dd", true); got != "2024-03-31" {
		t.Errorf("since 1904: %s", got)
	}
}

func FuzzFormatNumber(f *testing.F) {
	for _, format := range []string{"#,##0.00_);[Red](#,##0.00)", "# ??/??", "[h]:mm:ss.000", "0.00E+00", "[<1]\"a\";;@", "yyyy\\-mm",
		"%%%", "General\" x\""} {
		f.Add("1234.5", format)
		f.Add("-1e-300", format)
	}
	f.Fuzz(func(t *testing.T, value, format string) {
		// A number stays short whatever the format says.
		if got := formatNumber(value, format, false); len(got) > len(value)+1000+10*len(format) {
			t.Errorf("%q as %q gives %d bytes", value, format, len(got))
		}
	})
}

func TestItemNumber(t *testing.T) {
	for _, tt := range []struct {
		format string
		n      int
		want   string
	}{
		{"decimal", 12, "12"}, {"lowerLetter", 1, "a"}, {"lowerLetter", 27, "aa"}, {"upperLetter", 28, "BB"}, {"lowerLetter", 0, "0"},
		{"upperRoman", 1994, "MCMXCIV"}, {"lowerRoman", 4, "iv"}, {"upperRoman", 5000, "5000"},
		{"unknown", 3, "3"}, {"none", 3, ""},
	} {
		if got := itemNumber(tt.format, tt.n); got != tt.want {
			t.Errorf("%d as %s: %q, want %q", tt.n, tt.format, got, tt.want)
		}
	}
}

func TestHeadingLevel(t *testing.T) {
	for name, want := range map[string]int{"heading 1": 1, "heading9": 9, "heading 10": 0, "heading": 0, "list 1": 0, "": 0, "1": 0} {
		if got := headingLevel(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}

func TestUnescapeCell(t *testing.T) {
	for in, want := range map[string]string{"a_x000A_b": "a\nb", "_x005F_x000D_": "_x000D_", "_x": "_x", "a_xyz": "a_xyz",
		"_x00e9_": "é", "_x0041": "_x0041"} {
		if got := unescapeCell(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

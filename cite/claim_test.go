package cite_test

import (
	"strings"
	"testing"

	"ibid/answer"
	"ibid/cite"
)

// A sentence of three words or fewer makes a claim, too, if it says how much,
// when or what.
func TestUnsupportedShort(t *testing.T) {
	for text, want := range map[string]string{
		"Fees were abolished.":         "uncited",
		"Fees increased.":              "uncited",
		"He died in 1999.":             "uncited",
		"He died.":                     "uncited",
		"In 1999.":                     "uncited",
		"The fee is €12.50.":           "uncited",
		"Entry costs €50.":             "uncited",
		"Entry costs €50":              "uncited",
		"- Entry: 50 euros":            "uncited",
		"€12.50.":                      "uncited",
		"Within 14 days.":              "uncited",
		"About 40%.":                   "uncited",
		"It weighs 50kg.":              "uncited",
		"It is closed.":                "uncited",
		"| Penguins | 50 kg |":         "uncited",
		"Gebühren wurden abgeschafft.": "uncited",
		"**Entry costs €50.**":         "uncited",
		"The fee is €99 [1].":          "weak",
		"The fee is €99[1].":           "weak",
		"Fees were abolished [1].":     "weak",
		"Children pay nothing [1].":    "",

		"Yes.":                      "",
		"No.":                       "",
		"No, not yet.":              "",
		"Yes, it is.":               "",
		"They are.":                 "",
		"That is correct.":          "",
		"You are welcome.":          "",
		"I am sorry.":               "",
		"Hello there!":              "",
		"Is it closed?":             "",
		"See page 5.":               "",
		"Chapter 3":                 "",
		"Step 2":                    "",
		"Step 2:":                   "",
		"Opening hours":             "",
		"Opening hours.":            "",
		"Fees in 2024":              "",
		"Fees in 2024:":             "",
		"Costs are:":                "",
		"# Fees were abolished.":    "",
		"## Entry costs €50":        "",
		"**Entry costs €50**":       "",
		"| Item | Weight (kg) |":    "",
		"| Item | 2024 |":           "",
		"| --- | --- |":             "",
		"- Penguins":                "",
		"1. Penguins":               "",
		"Run `ls 50 kg`.":           "",
		"Yes[1](id=1), no[2](id=1)": "",
	} {
		a, err := cite.Collect(cite.Number(stream(answer.Kept{Passages: evidence[1:2]}, answer.Text{Text: text}), options))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range a.Unsupported {
			got = append(got, u.Reason)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

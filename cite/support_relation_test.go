package cite

import "testing"

// A prefix, an exception or a preposition before a date turns a statement
// round as a negator does.
func TestSupportRelations(t *testing.T) {
	checkVerdicts(t, " A lost card costs five euros.", []verdictCase{
		{"Dogs are unwelcome in the garden.", "Dogs are welcome in the garden.", VerdictWeak},
		{"Dogs are welcome in the garden.", "Dogs are unwelcome in the garden.", VerdictWeak},
		{"Dogs are not welcome in the garden.", "Dogs are unwelcome in the garden.", VerdictSupported},
		{"The ticket is valid on the ferry.", "The ticket is invalid on the ferry.", VerdictWeak},
		{"The work was completed in May.", "The work was incomplete in May.", VerdictWeak},
		{"The door is locked at night.", "The door is unlocked at night.", VerdictWeak},
		{"Members are able to sail.", "Members are unable to sail.", VerdictWeak},
		{"The paint is toxic.", "The paint is non-toxic and dries fast.", VerdictWeak},
		{"The income grew in the spring.", "In the spring the income grew.", VerdictSupported},
		{"Members who are unable to come pay nothing.", "Members pay nothing if they are unable to come.", VerdictSupported},

		{"Dogs are welcome everywhere but in the garden.", "Dogs are welcome in the garden.", VerdictWeak},
		{"Dogs are welcome in the garden.", "Dogs are welcome everywhere but in the garden.", VerdictWeak},
		{"Dogs are welcome in the garden.", "Dogs are welcome everywhere except in the garden.", VerdictWeak},
		{"Dogs are welcome in the garden.", "Dogs are welcome in all rooms other than the garden.", VerdictWeak},
		{"The cellar is not heated.", "All rooms except the cellar are heated.", VerdictSupported},
		{"All rooms other than the cellar are heated.", "Every room but the cellar is heated.", VerdictSupported},
		{"All rooms except the cellar are heated.", "All rooms are heated, but the cellar is not.", VerdictSupported},
		{"Some roads close in the winter.", "The park is always open, but some roads close in the winter season.", VerdictQuoted},
		{"In the winter some roads close.", "The park is always open, but some roads close in the winter season.", VerdictSupported},

		{"The fee is due before 1 April.", "The fee is due on 1 April.", VerdictWeak},
		{"The fee is due on 1 April.", "The fee is due before 1 April.", VerdictWeak},
		{"The fee is due by 1 April.", "The fee is due before 1 April.", VerdictSupported},
		{"The fee is due on the 1st of April.", "On 1 April the fee is due.", VerdictSupported},
		{"The hall is open until 1 April.", "The hall is open from 1 April.", VerdictWeak},
		{"The hall is open from 1 April.", "The hall opens on 1 April.", VerdictSupported},
		{"The hall was built before 1998.", "The hall was built in 1998.", VerdictWeak},
		{"The hall was built after 1998.", "The hall was built in 1998.", VerdictWeak},
		{"The hall has been open since 1998.", "The hall was opened in 1998.", VerdictSupported},
		{"The committee met after the fire in 1998.", "In 1998, after the fire, the committee met.", VerdictSupported},
		{"The rescue took place in 3 hours.", "After 3 hours the rescue took place.", VerdictSupported},
		{"The library is open before Monday.", "The library is open on Monday.", VerdictWeak},
		{"From 9 to 17 the library is open.", "The library is open from 9 until 17.", VerdictSupported},
		{"Before 1 April the fee is 20 euros, from 1 April it is 30 euros.", "The fee is 20 euros before 1 April and 30 euros from 1 April.", VerdictSupported},
	})
}

// A verdictCase is what a text must be found to say of a claim.
type verdictCase struct {
	claim, text string
	verdict     Verdict
}

// checkVerdicts looks for the claims in their texts, each with more behind it.
func checkVerdicts(t *testing.T, more string, cases []verdictCase) {
	t.Helper()
	for _, c := range cases {
		if q := full.Find(c.claim, passage(c.text+more)); q.Verdict != c.verdict {
			t.Errorf("Find(%q) in %q = %s (%.2f), want %s", c.claim, c.text, q.Verdict, q.Support, c.verdict)
		}
	}
}

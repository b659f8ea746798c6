package cite

import "testing"

// A negator turns a sentence round wherever it stands: at its beginning, behind
// an auxiliary, before the only word that says something.
func TestSupportOfPlainNegations(t *testing.T) {
	checkVerdicts(t, " A lost card costs five euros.", []verdictCase{
		{"There is a fee for guests.", "There is no fee for guests.", VerdictWeak},
		{"You can pay the fee by card.", "You cannot pay the fee by card.", VerdictWeak},
		{"It is refundable until Friday.", "It is not refundable until Friday.", VerdictWeak},
		{"They do accept cards at the kiosk.", "They do not accept cards at the kiosk.", VerdictWeak},
		{"It has a lift for wheelchairs.", "It has no lift for wheelchairs.", VerdictWeak},
		{"You must wear a vest on the pier.", "You need not wear a vest on the pier.", VerdictWeak},
		{"Any boat may anchor in the bay.", "No boat may anchor in the bay.", VerdictWeak},
		{"Some members have a key to the shed.", "No members have a key to the shed.", VerdictWeak},
		{"Anyone under sixteen may sail alone after dark.", "Nobody under sixteen may sail alone after dark.", VerdictWeak},
		{"Everybody may use the slipway at night.", "Nobody may use the slipway at night.", VerdictWeak},
		{"Jeder darf ohne Weste segeln.", "Niemand darf ohne Weste segeln.", VerdictWeak},

		{"For guests there is no fee.", "There is no fee for guests.", VerdictSupported},
		{"By card you cannot pay the fee.", "You cannot pay the fee by card.", VerdictSupported},
		{"At the kiosk they accept cards.", "They accept cards at the kiosk, not cheques.", VerdictSupported},
		{"Boats need a licence to leave the bay.", "Boats may not leave the bay without a licence.", VerdictSupported},
		{"At most 8 people fit in the lift.", "No more than 8 people fit in the lift.", VerdictSupported},
		{"On Fridays the hall and the tower are open.", "Not only the hall is open on Fridays but also the tower.", VerdictSupported},
	})
}

// A negator of the claim's own does not hide what else the evidence turns
// round.
func TestSupportOfNegatedClaims(t *testing.T) {
	checkVerdicts(t, " A lost card costs five euros.", []verdictCase{
		{"The engine may run without cooling water for ten minutes.", "The engine must never run without cooling water for ten minutes.", VerdictWeak},
		{"Children may swim in the dock without a lifejacket.", "Children must not swim in the dock without a lifejacket.", VerdictWeak},
		{"The boat may leave without a radio.", "The boat may not leave without a radio.", VerdictWeak},
		{"The boat may not leave without a radio.", "The boat may leave without a radio.", VerdictWeak},
		{"You may enter the harbour without a radio.", "Do not enter the harbour without a radio.", VerdictWeak},
		{"The lift holds at most 8 people and no dogs.", "The lift holds at least 8 people and no dogs.", VerdictWeak},
		{"Sales rose in May and did not recover later.", "Sales fell in May and did not recover later.", VerdictWeak},
		{"The gate is closed at night without exception.", "The gate is open at night without exception.", VerdictWeak},
		{"Refunded after 1 April, not later than noon.", "Refunded before 1 April, not later than noon.", VerdictWeak},

		{"Without a radio the boat may not leave.", "The boat may not leave without a radio.", VerdictSupported},
		{"Without exception the gate is open at night.", "The gate is open at night without exception.", VerdictSupported},
		{"In May sales fell, and later they did not recover.", "Sales fell in May and did not recover later.", VerdictSupported},
		{"On Mondays the library is not closed.", "The library is not closed but open on Mondays.", VerdictSupported},
	})
}

package cite

import "testing"

// The same number of something else is another number.
func TestSupportOfUnits(t *testing.T) {
	checkVerdicts(t, " A lost card costs five euros.", []verdictCase{
		{"The launch has an engine of 40 hp.", "The launch has an engine of 40 kW.", VerdictWeak},
		{"The mast of the dinghy is 6.4 feet high.", "The mast of the dinghy is 6.4 metres high.", VerdictWeak},
		{"Boats may go at most 10 mph in the bay.", "Boats may go at most 10 km/h in the bay.", VerdictWeak},
		{"The oil is changed every 100 days.", "The oil is changed every 100 hours.", VerdictWeak},
		{"The kiosk opens at 7 pm on Fridays.", "The kiosk opens at 7 am on Fridays.", VerdictWeak},
		{"The kiosk opens at 7:30 p.m. on Fridays.", "The kiosk opens at 7:30 a.m. on Fridays.", VerdictWeak},
		{"The deposit is paid back after 14 days.", "The deposit is paid back within 14 days.", VerdictWeak},
		{"She won the first race of the season.", "She won the second race of the season.", VerdictWeak},
		{"Guests pay half the fee of members.", "Guests pay twice the fee of members.", VerdictWeak},
		{"图书馆星期二开放。", "图书馆星期一开放。", VerdictWeak},
		{"每人可以借六本书。", "每人可以借五本书。", VerdictWeak},
		{"図書館は夏は六時に開きます。", "図書館は夏は八時に開きます。", VerdictWeak},
		{"図書館は月曜日に開きます。", "図書館は火曜日に開きます。", VerdictWeak},
		{"Die Bibliothek ist montags offen.", "Die Bibliothek ist montags geschlossen.", VerdictWeak},

		{"On Fridays the kiosk opens at 8.30 a.m.", "The kiosk opens at 8:30 on Fridays.", VerdictSupported},
		{"On Fridays the kiosk opens at 8:00 am.", "The kiosk opens at 8 a.m. on Fridays.", VerdictSupported},
		{"The engine of the launch has 40 kilowatts.", "The launch has an engine of 40 kW.", VerdictSupported},
		{"Every 100 hours the oil is changed.", "The oil is changed every 100 h.", VerdictSupported},
		{"After five days the hall is opened.", "The hall is opened after 5 days.", VerdictSupported},
		{"The season's first race she won.", "She won the first race of the season, and lost the second race.", VerdictSupported},
		{"可以借六本书，每人。", "每人可以借六本书，或五本杂志。", VerdictSupported},
	})
}

package office

import (
	"math"
	"strconv"
	"time"
)

// formatDate shows the number of a day. Numeric dates are written year first,
// whatever order the format has: 03/04/2024 is two days, and which one depends
// on where the reader lives.
func formatDate(n float64, s formatSection, from1904 bool) (string, bool) {
	if n < 0 || n >= 2958466 { // 1 January 10000
		return "", false
	}
	var hasDate, hasTime, hasSeconds, stretch, hasDay, hasYear, hasMonth bool
	for i, t := range s.tokens {
		if t.kind != dateToken {
			continue
		}
		switch t.text[0] {
		case 'y':
			hasDate, hasYear = true, true
		case 'd':
			hasDate, hasDay = true, true
		case 'h':
			hasTime = true
		case 's':
			hasTime, hasSeconds = true, true
		case '[':
			stretch = true
			hasSeconds = hasSeconds || t.text == "[s]"
		case 'm':
			if minutes(s.tokens, i) {
				hasTime = true
			} else {
				hasDate, hasMonth = true, true
			}
		}
	}
	seconds := math.Round(n * 86400)
	if stretch {
		h, m, sec := int64(seconds)/3600, int64(seconds)/60%60, int64(seconds)%60
		out := strconv.FormatInt(h, 10) + ":" + two(m)
		if hasSeconds || sec != 0 {
			out += ":" + two(sec)
		}
		return out, true
	}
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if from1904 {
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	} else if n < 60 { // 1900 is taken for a leap year
		epoch = epoch.AddDate(0, 0, 1)
	}
	day := math.Floor(n)
	rest := math.Round((n - day) * 86400)
	at := epoch.AddDate(0, 0, int(day)).Add(time.Duration(rest) * time.Second)
	layout := ""
	switch {
	case hasDate && hasYear && !hasDay && !hasMonth:
		layout = "2006"
	case hasDate && !hasDay && hasYear:
		layout = "2006-01"
	case hasDate && !hasYear && hasDay && hasMonth:
		layout = "2 January"
	case hasDate && !hasYear && hasMonth:
		layout = "January"
	case hasDate && !hasYear && !hasMonth:
		layout = "Monday"
	case hasDate:
		layout = "2006-01-02"
	}
	if hasTime {
		if layout != "" {
			layout += " "
		}
		layout += "15:04"
		if hasSeconds {
			layout += ":05"
		}
	}
	if layout == "" {
		return "", false
	}
	return at.Format(layout), true
}

func two(n int64) string {
	if n < 10 {
		return "0" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

// minutes tells whether an m stands for minutes: behind hours or in front of
// seconds.
func minutes(tokens []formatToken, i int) bool {
	for j := i - 1; j >= 0; j-- {
		if tokens[j].kind == dateToken {
			if tokens[j].text == "h" || tokens[j].text == "hh" || tokens[j].text == "[h]" {
				return true
			}
			break
		}
	}
	for j := i + 1; j < len(tokens); j++ {
		if tokens[j].kind == dateToken {
			return tokens[j].text[0] == 's'
		}
	}
	return false
}

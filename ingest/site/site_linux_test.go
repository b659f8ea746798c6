package site

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ibid/data/datatest"
	"ibid/ingest/child"
)

func init() {
	ofChildren = func() time.Duration {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
			panic(err)
		}
		return time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
}

// TestHostile checks that a page and a sitemap whose parser needs too much memory fail by
// name. The other pages are read, and so are these once they are repaired.
func TestHostile(t *testing.T) {
	t.Parallel()
	if child.Memory != 512<<20 {
		t.Skip("the race detector has a higher memory limit")
	}
	web := newServer(t)
	web.html("/{$}", `<a href="hostile">h</a> <a href="good">g</a>`)
	web.html("/good", `<a href="next">n</a>`)
	web.html("/next", "next")
	hostile := true
	web.page("/hostile", "text/html", func() string {
		if !hostile {
			return "repaired"
		}
		var page strings.Builder
		page.WriteString("<a ")
		for i := range 3_000_000 { // attributes
			fmt.Fprintf(&page, "%x ", i)
		}
		return page.String() + "href=x>"
	})
	web.page("/sitemap.xml", "application/xml", func() string {
		if !hostile || !datatest.Campaign() { // it is slow
			return "<urlset/>"
		}
		return "<urlset>" + strings.Repeat("<a>", 8_000_000)
	})
	const reason = "reading it needed more than 512 MB of memory"
	s := openSite(t, t.TempDir(), web.URL)
	for range 2 {
		report := crawlOnce(t, s)
		want := map[string]string{"index.html": "/", "good.html": "/good", "next.html": "/next", "hostile.html": "/hostile"}
		notices := "[]"
		if hostile {
			want["hostile.html"] += ": " + reason
			if datatest.Campaign() {
				notices = "[" + web.URL + "/sitemap.xml: " + reason + "]"
			}
		}
		datatest.Same(t, "files", want, files(s))
		if diff := cmp.Diff(notices, fmt.Sprint(report.Limits)); diff != "" {
			t.Errorf("notices (-want +got):\n%s", diff)
		}
		hostile = false
	}
}

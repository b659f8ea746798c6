package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// A person opens the page of the real program over the sample library, asks,
// and follows a citation to the marked words: in the page, and through the
// link in a tab of its own.
func TestAskInABrowser(t *testing.T) {
	t.Parallel()
	chromium := chromiumPath(t)
	url := serve(t, t.TempDir(), filepath.Join(moduleRoot(t), "data", "library"))
	ready(t, url)

	ctx := openBrowser(t, chromium)
	do := func(steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, steps...); err != nil {
			t.Fatal(err)
		}
	}
	js := func(expression string) string {
		t.Helper()
		s, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return s
	}
	waitFor := func(expression string) {
		t.Helper()
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(15*time.Second))); err != nil {
			t.Fatalf("waiting for %s: %v\n%s", expression, err, js(`document.body.innerText`))
		}
	}
	var foreign []string
	if err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*network.EventRequestWillBeSent); ok && !strings.HasPrefix(e.Request.URL, url+"/") {
			foreign = append(foreign, e.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}

	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}, {Name: "prefers-color-scheme", Value: "light"}},
	}); err != nil {
		t.Fatal(err)
	}
	do(chromedp.EmulateViewport(1120, 680), chromedp.Navigate(url+"/"), chromedp.WaitVisible(chromedp.CSS("#question")))
	do(chromedp.SendKeys(chromedp.CSS("#question"), "May a child of seven sail, and in which boat?"))
	js(`document.querySelector("#question").form.requestSubmit(); ""`)
	waitFor(`document.querySelector(".turn")?.getAttribute("aria-busy") === "false"`)
	waitFor(`document.querySelector(".turn .text:not(.draft) .cite") !== null`)
	js(`document.querySelector(".turn .text:not(.draft) .cite").click(); ""`)
	do(chromedp.WaitVisible(chromedp.CSS("#source mark#quote")))
	marked := js(`document.getElementById("quote").innerText`)
	answer := js(`document.querySelector(".turn .text:not(.draft)").innerText`)
	t.Logf("marked: %s", marked)
	if words := strings.Fields(marked); !strings.Contains(strings.Join(strings.Fields(answer), " "),
		strings.Join(words[:min(4, len(words))], " ")) {
		t.Errorf("the marked words %q do not stand in the answer %q", marked, answer)
	}
	for _, theme := range []string{"light", "dark"} {
		shoot(t, ctx, theme)
		js(`document.getElementById("theme").click(); ""`)
	}

	// No number is torn by the end of a line.
	for width := int64(320); width <= 1120; width += 25 {
		do(chromedp.EmulateViewport(width, 680))
		if got := js(`String([...document.querySelectorAll(".cite")].every((c) => c.getClientRects().length === 1))`); got != "true" {
			t.Errorf("at %d pixels a citation stands on two lines", width)
		}
	}

	// The same citation by its address, without the page.
	href := js(`document.querySelector(".turn .text:not(.draft) .cite").href`)
	do(chromedp.Navigate(href), chromedp.WaitVisible(chromedp.CSS("mark#quote")))
	if got := js(`document.querySelector("mark#quote").innerText`); len(got) < 10 {
		t.Errorf("%s marks %q", href, got)
	}
	if len(foreign) > 0 {
		t.Errorf("the page asked elsewhere: %s", foreign)
	}
}

// chromiumPath is the program that IBID_CHROMIUM names, or chromium; the test is
// skipped where there is none.
func chromiumPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("IBID_CHROMIUM"), "chromium"))
	if err != nil {
		t.Skipf("no Chromium on the PATH: install it, or name it in IBID_CHROMIUM (%v)", err)
	}
	return path
}

// openBrowser starts a browser with an empty tab, for two minutes at the most.
func openBrowser(t *testing.T, path string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-component-update", true))...)
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(ctx)
	t.Cleanup(closeBrowser)
	if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void]("0")); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// shoot takes a picture into the folder that IBID_SCREENSHOTS names, if it does.
func shoot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	folder := os.Getenv("IBID_SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "ibid-"+name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

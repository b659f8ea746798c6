package web

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"ibid/ingest"
	"ibid/retrieve"
)

// growing is a library that accepts uploads.
type growing struct {
	mu sync.Mutex
	shelf
	mended bool // the upload that couldn't be read was deleted
}

func (g *growing) get() shelf {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.shelf)
}

func (g *growing) Document(ctx context.Context, id string) (*ingest.Document, error) {
	return g.get().Document(ctx, id)
}

func (g *growing) Documents(ctx context.Context, f retrieve.Filter) ([]retrieve.DocumentInfo, error) {
	return g.get().Documents(ctx, f)
}

func (g *growing) Holds(ctx context.Context, f retrieve.Filter) (bool, error) {
	return g.get().Holds(ctx, f)
}

func (g *growing) Add(_ context.Context, name string, content io.Reader, _ map[string]string) (ingest.Change, error) {
	text, err := io.ReadAll(content)
	if err != nil {
		return ingest.Change{}, err
	}
	if strings.HasSuffix(name, ".exe") {
		return ingest.Change{}, &ingest.SkipError{Reason: ".exe files are not read: Ibid reads " + ingest.Formats()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	id := "uploads/" + name
	g.shelf = slices.DeleteFunc(g.shelf, func(d *ingest.Document) bool { return d.ID == id })
	g.shelf = append(g.shelf, &ingest.Document{ID: id, Root: "uploads", Path: name, Title: name, Format: "text", Text: string(text)})
	slices.SortFunc(g.shelf, func(a, b *ingest.Document) int { return strings.Compare(a.ID, b.ID) })
	return ingest.Change{Document: id, Root: "uploads", Path: name, Action: ingest.Added}, nil
}

func (g *growing) Reread(_ context.Context, name string, _ map[string]string) (ingest.Change, error) {
	return ingest.Change{Document: "uploads/" + name, Action: ingest.Unchanged}, nil
}

// troubles returns a file in its folder, and an upload until it is deleted.
func (g *growing) troubles() []ingest.Change {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := []ingest.Change{{Document: "club/scan.pdf", Root: "club", Path: "scan.pdf", Action: ingest.Failed,
		Reason: "no text in it: a scan?"}}
	if !g.mended {
		list = append(list, ingest.Change{Document: "uploads/torn.pdf", Root: "uploads", Path: "torn.pdf", Action: ingest.Failed,
			Reason: "the file is incomplete"})
	}
	return list
}

func (g *growing) Remove(_ context.Context, name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mended = g.mended || name == "torn.pdf"
	g.shelf = slices.DeleteFunc(g.shelf, func(d *ingest.Document) bool { return d.ID == "uploads/"+name })
	return nil
}

// recordedInto adds to the same uploads for each collection, and sends the names.
type recordedInto struct {
	oneFolder
	names chan string
}

func (r recordedInto) Into(_ context.Context, collection string) (Uploads, error) {
	r.names <- collection
	return r.Uploads, nil
}

// TestBrowserDocuments uploads files, finds one and deletes it.
func TestBrowserDocuments(t *testing.T) {
	t.Parallel()
	library := &growing{shelf: newShelf()}
	library.shelf[1].Meta = map[string]string{"date": "2024-03-01", ingest.ModifiedKey: "2026-01-01T00:00:00Z"}
	library.shelf[0].Meta = map[string]string{ingest.ModifiedKey: "2025-07-09T10:00:00Z",
		ingest.UnreadKey: "page 2 of 2: no readable text, install tesseract to read scans"}
	into := recordedInto{oneFolder: oneFolder{Uploads: library}, names: make(chan string, 9)}
	s := newScene(t, func(o *Options) {
		o.Library, o.UploadFolders = library, into
		o.Troubles = library.troubles
	})
	b := s.newTabAt(t, 1440, "light", "/documents", "#upload")
	b.waitFor(`document.querySelectorAll("#rows .select").length > 0`)
	b.look("6-documents")
	b.is("Partly read Page 2 of 2: no readable text, install tesseract to read scans.|Read", `[...document.querySelectorAll("#rows tr")].slice(0, 2).map((tr) => tr.cells[3].textContent).join("|")`)
	// The day is the document's own, or else that of its file. Those without one come last.
	date := func(direction, want string) {
		t.Helper()
		b.do(chromedp.Click(chromedp.CSS("th[data-sort=date] button")))
		b.is(direction, `document.querySelector("th[data-sort=date]").getAttribute("aria-sort")`)
		b.is(want, `[...document.querySelectorAll("#rows .date")].map((td) => td.innerText.replace("\n", " ")).join("|")`)
	}
	date("ascending", "2024-03-01|2025-07-09 file changed||")
	date("descending", "2025-07-09 file changed|2024-03-01||")
	b.do(chromedp.Click(chromedp.CSS("th[data-sort=bytes] button")))
	b.is("ascending club/odd/empty.txt", `document.querySelector("th[data-sort=bytes]").getAttribute("aria-sort") + " " + document.querySelector("#rows .path").textContent`)
	b.do(chromedp.Click(chromedp.CSS("#rows tr:first-child input")))
	b.is("1 selected", `document.querySelector("#selected span").textContent`)
	const head = `String([document.querySelector("#select-all").checked, document.querySelector("#select-all").indeterminate])`
	b.is("false,true", head)
	b.look("6-selected")
	b.tabTo("select-all")
	b.press(" ", " ", 32)
	b.is("4 selected true,false", `document.querySelector("#selected span").textContent + " " + `+head)
	b.press(" ", " ", 32)
	b.is("true false,false", `document.querySelector("#selected").hidden + " " + `+head)
	b.do(chromedp.Click(chromedp.CSS("#rows tr:first-child input")))
	b.do(chromedp.Click(chromedp.CSS("#ask-selected")))
	b.is("Asking only: empty.txt", `document.getElementById("only-words")?.textContent`)
	b.do(chromedp.Navigate(s.URL + "/documents"))
	b.waitFor(`document.querySelectorAll("#rows .select").length > 0`)

	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#troubles [aria-label^='Delete']").click()`))
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#troubles [aria-label^='Confirm']").click()`))
	b.waitFor(`document.querySelectorAll("#troubles li").length === 1`)
	b.is("· 1 file couldn't be read", `document.getElementById("trouble-count").textContent.trim()`)

	folder := t.TempDir()
	var files []string
	for _, name := range []string{"tides.txt", "tool.exe"} {
		files = append(files, filepath.Join(folder, name))
		must(t, os.WriteFile(files[len(files)-1], []byte("High water at noon."), 0o600))
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#into"), "winter 2026"), chromedp.SetUploadFiles(chromedp.CSS("#upload input"), files))
	b.waitFor(`document.querySelectorAll(".uploads .done").length === 1 && document.querySelectorAll(".uploads .failed").length === 1`)
	b.expectProblem("415")
	for range files {
		if got := <-into.names; got != "winter 2026" {
			t.Errorf("a file was added to the collection %q", got)
		}
	}
	const refused = `document.querySelector(".uploads .failed .facts").innerText`
	b.is(".exe files are not read. Save it as PDF, Word, HTML or text, and add that.\nDetails", refused)
	// Of a folder that is dropped, all files are added except hidden ones.
	must(t, os.MkdirAll(filepath.Join(folder, "pier", "deep"), 0o700))
	for _, name := range []string{"deep/rowing.txt", ".DS_Store"} {
		must(t, os.WriteFile(filepath.Join(folder, "pier", name), []byte("Rowing on Sundays."), 0o600))
	}
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver,
		input.DispatchDragEventTypeDrop} {
		_, err := chromedp.Call(b, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: 300, Y: 300,
			Data: &input.DragData{Items: []*input.DragDataItem{}, Files: []string{filepath.Join(folder, "pier")}, DragOperationsMask: 1}})
		must(t, err)
	}
	b.waitFor(`document.querySelectorAll(".uploads .done").length === 2`)
	b.is("pier/deep/rowing.txt", `document.querySelector(".uploads li:last-child .upload-name").textContent`)
	b.waitFor(`document.getElementById("facts").textContent === "6 documents"`)
	b.look("6-uploaded")
	// What was refused stays until it is dismissed.
	b.do(chromedp.Reload())
	b.waitFor(`document.readyState === "complete" && document.querySelectorAll(".uploads li").length === 1`)
	b.is(".exe files are not read. Save it as PDF, Word, HTML or text, and add that.\nDetails", refused)
	b.do(chromedp.Click(chromedp.CSS(".uploads summary")))
	b.is("true", `String(document.querySelector(".uploads .failed").innerText.includes("Ibid reads Markdown (.md, .mdx)"))`)
	b.do(chromedp.Click(chromedp.CSS(".uploads [aria-label^='Dismiss']")), chromedp.Reload())
	b.waitFor(`document.querySelectorAll("#rows [type=checkbox]").length === 6`)
	b.is("0", `String(document.querySelectorAll(".uploads li").length)`)
	// Several uploads are read again.
	b.do(chromedp.Evaluate[chromedp.Void](`for (const row of document.querySelectorAll("#rows tr")) if (row.textContent.includes("rowing.txt") || row.textContent.includes("tides.txt")) row.querySelector("input").click()`))
	b.do(chromedp.Click(chromedp.CSS("#read-selected")))
	b.waitFor(`document.getElementById("status").textContent === "The documents were read again."`)
	b.do(chromedp.Click(chromedp.CSS("#clear-selected")))

	// The rows are replaced with each letter, so that an element can be gone.
	b.do(chromedp.SendKeys(chromedp.CSS("#words"), "TXT tid"))
	b.waitFor(`document.querySelectorAll("#rows tr").length === 1`)
	b.is("tides.txt", `document.querySelector("#rows a").textContent`)
	b.do(chromedp.Evaluate[chromedp.Void](`window.row = document.querySelector("#rows tr"); document.querySelector("#rows [aria-label^='Read again']").click()`))
	b.waitFor(`!window.row.isConnected`) // the list was replaced
	b.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const carried = new DataTransfer(), input = document.querySelector("#rows [aria-label^='Replace'][type=file]");
		carried.items.add(new File(["Low water."], "other.txt"));
		input.files = carried.files;
		input.dispatchEvent(new Event("change"));
	})()`))
	b.waitFor(`document.querySelector("#rows tr").textContent.includes("10 B")`) // under its own name
	b.is("tides.txt", `document.querySelector("#rows a").textContent`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("[aria-label^='Delete']").click()`))
	b.waitFor(`document.querySelector("#rows [aria-label^=Confirm]") !== null`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("[aria-label^='Confirm']").click()`))
	b.waitFor(`document.querySelectorAll("#rows tr").length === 0`)
	b.is("No matching documents.", `document.getElementById("more").textContent`)
	b.is("5 documents", `document.getElementById("facts").textContent`)
}

// printed draws a page as lines of grey words, those of a quote marked.
type printed struct{}

func (printed) Draws(_ context.Context, format string) bool { return format == "pdf" }

func (printed) DrawPage(_ context.Context, _ *ingest.Document, page int, quote string, width int) ([]byte, error) {
	if page > 9 {
		return nil, fmt.Errorf("page %d: %w", page, ingest.ErrNoDrawing)
	}
	sheet := image.NewRGBA(image.Rect(0, 0, width, width*14/10))
	fill := func(x, y, w, h int, c color.Color) {
		at := image.Rect(x*width/100, y*width/100, (x+w)*width/100, (y+h)*width/100)
		draw.Draw(sheet, at, image.NewUniform(c), image.Point{}, draw.Src)
	}
	fill(0, 0, 100, 140, color.White)
	fill(12, 12, 30, 3, color.Gray{70})
	for line := range 30 {
		if line == 0 || line%8 == 0 {
			continue // between paragraphs
		}
		if quote != "" && (line == 11 || line == 12) {
			fill(11, 18+4*line-1, 78, 4, color.RGBA{255, 231, 154, 255})
		}
		for x := 12; x < 84; x += 3 + (x*line)%7 {
			fill(x, 18+4*line, 2+(x*line)%7, 2, color.Gray{120})
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, sheet)
	return out.Bytes(), err
}

// TestBrowserPages checks the other pages.
func TestBrowserPages(t *testing.T) {
	t.Parallel()
	t.Run("viewer, docs, problem", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, nil)
		start := strings.Index(handbook().Text, "Nobody sails")
		b := s.newTabAt(t, 800, "light", fmt.Sprintf("/documents/club/handbook/members.pdf?start=%d&end=%d#quote", start, start+43),
			"mark#quote")
		b.look("6-viewer")
		// Open WebUI's links name the first word and the last, which may be at an earlier place, or nowhere.
		for _, words := range []string{"Every,after", "none,such"} {
			b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(fmt.Sprintf(
				"%s/documents/club/handbook/members.pdf?start=%d&end=%d#quote#:~:text=%s", s.URL, start, start+43, words)),
				chromedp.WaitVisible(chromedp.CSS("mark#quote")))
			b.waitFor(`document.readyState === "complete" && location.hash === "#quote"`)
			b.js(`(requestAnimationFrame(() => requestAnimationFrame(() => { window.drawn = true })), "")`)
			b.waitFor(`window.drawn`)
			b.is("true", `(() => { const m = document.getElementById("quote").getBoundingClientRect(); return String(m.top >= 0 && m.bottom <= innerHeight) })()`)
		}
		b.do(chromedp.Navigate(s.URL+"/docs"), chromedp.WaitVisible(chromedp.CSS("h1")))
		b.is("false", `String(document.documentElement.scrollWidth > innerWidth)`)
		b.axe("9-docs") // once: the page is long
		b.picture("9-docs")
		b.do(chromedp.Navigate(s.URL+"/nowhere"), chromedp.WaitVisible(chromedp.CSS("h1")))
		b.look("9-problem")
		b.expectProblem("404")

		// An answer without an end is copied as a block of code.
		got, err := chromedp.Run(b, chromedp.Evaluate[string](`import("/static/copy.js").then(({ fenced }) => fenced("a " + String.fromCharCode(96).repeat(4) + " b"))`, chromedp.EvalAwaitPromise))
		if want := "`````\na ```` b\n`````\n"; err != nil || got != want {
			t.Errorf("copied %q (%v), want %q", got, err, want)
		}
	})
	t.Run("drawn", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, func(o *Options) {
			o.Drawer = printed{}
			o.Originals = files{"club/handbook/members.pdf": "%PDF-1.4"}
		})
		b := s.newTab(t, 1440, "light")
		s.open()
		b.ask("May I sail alone?")
		b.waitFor(ended)
		b.do(chromedp.Click(chromedp.CSS(".turn .cite")), chromedp.WaitVisible(chromedp.CSS(".picture")))
		b.waitFor(`document.querySelector(".picture").complete`)
		b.is("PDF, page 9", `document.querySelector(".original").textContent`)
		b.is("true", `String(document.querySelector(".original").href.endsWith("?original=1#page=9"))`)
		b.look("8-drawn")
		// Pages are turned, larger and found, and the quote is a click away. No page after the ninth can be drawn.
		tool := func(name string) { b.do(chromedp.Click(chromedp.CSS("[data-tool=" + name + "]"))) }
		b.do(chromedp.Click(chromedp.CSS(".zoom button:last-of-type")))
		b.waitFor(`document.querySelector(".picture").src.includes("start=") && document.querySelector(".picture").src.endsWith("width=2000")`)
		b.is("150 %", `document.querySelector(".zoom [role=status]").textContent`)
		tool("before")
		b.waitFor(`document.querySelector(".picture").alt.startsWith("Page 8")`)
		b.is("before", `document.activeElement.dataset.tool`)
		b.is("Page 8 of 12", `document.querySelector(".paging [role=status]").textContent`)
		tool("swap")
		b.is("true", `(() => { const p = document.querySelector(".pagebreak[data-page='8']").getBoundingClientRect(); return String(Math.abs(p.top - document.querySelector(".source-body").getBoundingClientRect().top) < 60) })()`)
		tool("swap")
		tool("quote")
		b.waitFor(`document.querySelector(".picture").alt.startsWith("Page 9")`)
		tool("after")
		b.waitFor(`document.querySelector(".paging [role=status]").textContent === "Page 10 of 12" && document.querySelector("#source .pictures, .sheets-shown").hidden`)
		b.expectProblem("404")
		b.do(chromedp.SendKeys(chromedp.CSS("#source input"), "Sails  ALONE\r"))
		b.waitFor(`document.querySelector(".places summary")?.textContent === "1 place with “Sails  ALONE”"`)
		b.look("8-found")
		b.do(chromedp.Click(chromedp.CSS(".places li button")))
		b.waitFor(`document.querySelector(".picture").alt.startsWith("Page 9")`)
		tool("swap")
		b.is("sails alone", `document.getElementById("quote").textContent`)

		// The page of the document does the same without JavaScript, but for the zoom.
		b.do(chromedp.Navigate(s.URL+"/documents/club/handbook/members.pdf?page=8"), chromedp.WaitVisible(chromedp.CSS(".zoom")))
		b.js(`(scrollTo(0, 0), "")`)
		b.look("8-sheets")
		b.do(chromedp.Click(chromedp.CSS("[rel=next]")))
		b.waitFor(`document.querySelector(".paging span")?.textContent === "Page 9 of 12"`)
		b.do(chromedp.SendKeys(chromedp.CSS("#find"), "sails alone\r"), chromedp.WaitVisible(chromedp.CSS(".places a")))
		b.look("8-sheets-found")
		b.do(chromedp.Click(chromedp.CSS(".places a")), chromedp.WaitVisible(chromedp.CSS("mark#quote")))
		b.is("sails alone", `document.getElementById("quote").textContent`)
		b.do(chromedp.Click(chromedp.CSS(".outline summary")), chromedp.Click(chromedp.CSS(".outline li:nth-child(3) a")))
		b.is("#at-", `location.hash.slice(0, 4)`)
		b.look("6-outline")
		b.do(chromedp.Navigate(s.URL + "/documents/club/handbook/members.pdf?page=10"))
		b.waitFor(`document.querySelector(".sheet .note")?.textContent === "Page 10 can't be drawn. Its text is here."`)
	})
}

package ingest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"ibid/ingest/archive"
	"ibid/ingest/charset"
	"ibid/ingest/child"
	"ibid/ingest/format"
)

// A fileFormat is a file format and its reader.
type fileFormat struct {
	name    string   // [Document.Format]
	title   string   // in messages; empty if another row gives it
	endings []string // of file names, in lower case; "" means no ending
	// read fills in text, sections, pages, title and metadata, and must not retain data. It is nil for
	// PDF and pictures, which a [Reader] reads with other programs.
	read func(doc *Document, data []byte) error
	// readText replaces read if files are text, in any encoding.
	readText func(doc *Document, text string) error
	// charset, if set, returns the encoding that a file declares.
	charset func(data []byte) string
	// binary is set if files are not text.
	binary bool
	// isolated formats are read in a child process, since their parsers may hang or exhaust memory.
	isolated bool
	// tree formats need memory of up to a hundred times the file's size, so large files are read in
	// a child process.
	tree bool
	// data formats hold values or code, whose letters need not form words.
	data bool
	// hasFiles is set if documents may have attached or embedded files.
	hasFiles bool
}

// formats lists the supported formats in the order used in messages.
var formats = []fileFormat{
	{name: "markdown", title: "Markdown (.md, .mdx)",
		endings:  []string{".md", ".markdown", ".mdown", ".mkd", ".mdx"},
		readText: format.Markdown, tree: true},
	{name: "rst", title: "reStructuredText (.rst)", endings: []string{".rst", ".rest"}, readText: format.RST},
	{name: "asciidoc", title: "AsciiDoc", endings: []string{".adoc", ".asciidoc", ".asc"}, readText: format.AsciiDoc},
	{name: "latex", title: "LaTeX", endings: []string{".tex", ".ltx", ".latex"}, readText: format.LaTeX},
	{name: "org", title: "Org", endings: []string{".org"}, readText: format.Org},
	{name: "text", title: "text (.txt, .log)", endings: []string{".txt", ".text", ".log", ""}, readText: format.Text},
	{name: "html", title: "HTML",
		endings: []string{".html", ".htm", ".xhtml"}, readText: format.HTML, charset: format.HTMLCharset, tree: true},
	{name: "csv", title: "CSV and TSV", endings: []string{".csv", ".tsv", ".tab"}, data: true, readText: format.Table},
	{name: "json", title: "JSON", endings: []string{".json", ".geojson", ".webmanifest"}, data: true, readText: format.JSON, tree: true},
	{name: "jsonl", title: "JSON Lines (.jsonl, .ndjson)", endings: []string{".jsonl", ".ndjson"}, data: true, readText: format.JSONLines},
	{name: "yaml", title: "YAML", endings: []string{".yaml", ".yml"}, data: true, readText: format.Code},
	{name: "toml", title: "TOML and INI",
		endings: []string{".toml", ".ini", ".cfg", ".conf", ".properties"}, data: true, readText: format.Code},
	{name: "xml", title: "XML",
		endings: []string{".xml", ".rss", ".atom", ".fb2", ".dita", ".docbook", ".dbk", ".tei", ".xliff", ".xlf",
			".opml", ".plist", ".kml", ".gpx"},
		data: true, readText: format.XML, charset: format.XMLCharset, tree: true},
	{name: "subtitles", title: "subtitles (.srt, .vtt)", endings: []string{".srt", ".vtt"}, data: true, readText: format.Subtitles},
	{name: "notebook", title: "Jupyter notebooks", endings: []string{".ipynb"}, data: true, readText: format.Notebook},
	{name: "code", title: "source code", endings: format.CodeEndings(), data: true, readText: format.Code},
	{name: "pdf", title: "PDF", endings: []string{".pdf"}, binary: true, isolated: true, hasFiles: true},
	{name: "image", title: "pictures of text (where tesseract is installed)",
		endings: []string{".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif"},
		binary:  true},
	officeFormat("docx", "Word (.docx)", ".docx", ".docm", ".dotx", ".dotm"),
	officeFormat("pptx", "PowerPoint (.pptx)", ".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"),
	officeFormat("xlsx", "Excel (.xlsx)", ".xlsx", ".xlsm", ".xltx", ".xltm"),
	officeFormat("odt", "OpenDocument (.odt, .ods, .odp)", ".odt", ".ott"),
	officeFormat("ods", "", ".ods", ".ots"),
	officeFormat("odp", "", ".odp", ".otp"),
	{name: "epub", title: "EPUB", endings: []string{".epub"}, read: format.Office, binary: true, isolated: true},
	officeFormat("office", "older office formats (.doc, .xls, .xlsb, .ppt, .rtf)",
		".doc", ".dot", ".xls", ".xlt", ".xlsb", ".ppt", ".pps", ".pot", ".rtf", ".sxw", ".sxc", ".sxi"),
	{name: "mail", title: "mail (.eml, .msg, .mbox, .mhtml)",
		endings: []string{".eml", ".mht", ".mhtml"},
		read:    format.Mail, isolated: true, hasFiles: true},
	{name: "mbox", endings: []string{".mbox", ".mbx"}, read: format.Mailbox, isolated: true, hasFiles: true},
	{name: "outlook", endings: []string{".msg"}, read: format.Outlook, binary: true, isolated: true, hasFiles: true},
	{name: "calendar", title: "calendars and contacts (.ics, .vcf)", endings: []string{".ics", ".vcf"}, readText: format.Calendar},
}

// byEnding maps the endings of file names to formats.
var byEnding = make(map[string]fileFormat)

func init() {
	for _, f := range slices.Backward(formats) { // the first format with an ending wins
		for _, ending := range f.endings {
			byEnding[ending] = f
		}
	}
}

// officeFormat returns a format of office programs.
func officeFormat(name, title string, endings ...string) fileFormat {
	return fileFormat{name: name, title: title, endings: endings, read: format.Office, binary: true, isolated: true, hasFiles: true}
}

// formatOf returns the format of a file name.
func formatOf(name string) (fileFormat, bool) {
	f, ok := byEnding[endingOf(name)]
	return f, ok
}

// endingOf returns the ending of a file name in lower case, with its dot. It is empty if the part
// after the last dot is a number ("syslog.1", "ibid.8") or names a variant of a common text file
// ("README.Debian").
func endingOf(name string) string {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(path.Base(name), ext)
	ending := strings.ToLower(ext)
	if n := len(ext); (n == 2 || n == 3) && strings.Trim(ext[1:], "0123456789") == "" {
		return ""
	}
	switch stem {
	case "README", "LICENSE", "LICENCE", "COPYING", "NOTICE", "NEWS", "CHANGES", "CHANGELOG", "HISTORY", "AUTHORS", "INSTALL", "TODO", "FAQ":
		if _, ok := byEnding[ending]; !ok && !archive.Is(name) {
			return ""
		}
	}
	return ending
}

// formatNamed returns the format with the given name, which must exist.
func formatNamed(name string) fileFormat {
	return formats[slices.IndexFunc(formats, func(f fileFormat) bool { return f.name == name })]
}

// readInto reads the file into the document.
func (f fileFormat) readInto(doc *Document, data []byte) error {
	return callReader(f.name, func() error {
		if f.readText == nil {
			return f.read(doc, data)
		}
		declared := ""
		if f.charset != nil {
			declared = f.charset(data)
		}
		text, err := charset.Decode(data, declared)
		if err != nil {
			return err
		}
		return f.readText(doc, text)
	})
}

// callReader calls a reader and turns a panic into an error.
func callReader(reader string, read func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the %s reader crashed on it: %s", reader, child.FirstLine(fmt.Sprint(p), 200))
		}
	}()
	return read()
}

// Formats returns a list of the supported formats for messages.
func Formats() string {
	var said []string
	for _, f := range formats {
		if f.title != "" {
			said = append(said, f.title)
		}
	}
	said = append(said, "files in archives (.zip, .tar, .gz, .bz2)")
	last := len(said) - 1
	return strings.Join(said[:last], ", ") + ", and " + said[last]
}

// LeftOut describes, for messages, the files for which a [Syncer] yields no [Change].
const LeftOut = "hidden files and folders, and everything that .gitignore or .ibidignore lists"

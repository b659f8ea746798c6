package ingest

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"ibid/ingest/archive"
	"ibid/ingest/child"
	"ibid/ingest/format"
)

// A fileFormat is a kind of file and how it is read.
type fileFormat struct {
	name    string   // [Document.Format]
	said    string   // in messages; empty when another row names it
	endings []string // of file names, in lower case; "" is not an ending
	// read fills in text, sections, pages, title and metadata, and must not retain data.
	read func(doc *Document, data []byte) error
	// binary formats are not text.
	binary bool
	// isolated formats are read in a child process: their parsers may hang or exhaust memory.
	isolated bool
	// tree formats need up to a hundred times the size of the file: large ones are read in a child.
	tree bool
	// data formats hold values or code, whose letters need not be those of a language.
	data bool
	// holds is set for documents that may have files attached or embedded.
	holds bool
	// outside reads with the help of other programs, instead of read.
	outside func(r *Reader, ctx context.Context, doc *Document, data []byte) error
}

// formats lists the formats that are read, in the order of messages.
var formats []fileFormat

// byEnding has them by the endings of names.
var byEnding = make(map[string]fileFormat)

func init() { // a reader may look at the formats
	formats = []fileFormat{
		{name: "markdown", said: "Markdown (.md, .mdx)",
			endings: []string{".md", ".markdown", ".mdown", ".mkd", ".mdx"},
			read:    format.Markdown, tree: true},
		{name: "rst", said: "reStructuredText (.rst)", endings: []string{".rst", ".rest"}, read: format.RST},
		{name: "asciidoc", said: "AsciiDoc", endings: []string{".adoc", ".asciidoc", ".asc"}, read: format.AsciiDoc},
		{name: "latex", said: "LaTeX", endings: []string{".tex", ".ltx", ".latex"}, read: format.LaTeX},
		{name: "org", said: "Org", endings: []string{".org"}, read: format.Org},
		{name: "text", said: "text (.txt, .log)", endings: []string{".txt", ".text", ".log", ""}, read: format.Text},
		{name: "html", said: "HTML", endings: []string{".html", ".htm", ".xhtml"}, read: format.HTML, tree: true},
		{name: "csv", said: "CSV and TSV", endings: []string{".csv", ".tsv", ".tab"}, data: true, read: format.Table},
		{name: "json", said: "JSON", endings: []string{".json", ".geojson", ".webmanifest"}, data: true, read: format.JSON, tree: true},
		{name: "jsonl", said: "JSON Lines (.jsonl, .ndjson)", endings: []string{".jsonl", ".ndjson"}, data: true, read: format.JSONLines},
		{name: "yaml", said: "YAML", endings: []string{".yaml", ".yml"}, data: true, read: format.Code},
		{name: "toml", said: "TOML and INI", endings: []string{".toml", ".ini", ".cfg", ".conf", ".properties"}, data: true, read: format.Code},
		{name: "xml", said: "XML",
			endings: []string{".xml", ".rss", ".atom", ".fb2", ".dita", ".docbook", ".dbk", ".tei", ".xliff", ".xlf",
				".opml", ".plist", ".kml", ".gpx"},
			data: true, read: format.XML, tree: true},
		{name: "subtitles", said: "subtitles (.srt, .vtt)", endings: []string{".srt", ".vtt"}, data: true, read: format.Subtitles},
		{name: "notebook", said: "Jupyter notebooks", endings: []string{".ipynb"}, data: true, read: format.Notebook},
		{name: "code", said: "source code", endings: format.CodeEndings(), data: true, read: format.Code},
		{name: "pdf", said: "PDF", endings: []string{".pdf"}, binary: true, isolated: true, holds: true, outside: (*Reader).readPDFFile},
		{name: "image", said: "pictures of text (where tesseract is installed)",
			endings: []string{".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif"},
			binary:  true, outside: (*Reader).readPicture},
		{name: "docx", said: "Word (.docx)",
			endings: []string{".docx", ".docm", ".dotx", ".dotm"},
			read:    format.Office, binary: true, isolated: true, holds: true},
		{name: "pptx", said: "PowerPoint (.pptx)",
			endings: []string{".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"},
			read:    format.Office, binary: true, isolated: true, holds: true},
		{name: "xlsx", said: "Excel (.xlsx)",
			endings: []string{".xlsx", ".xlsm", ".xltx", ".xltm"},
			read:    format.Office, binary: true, isolated: true, holds: true},
		{name: "odt", said: "OpenDocument (.odt, .ods, .odp)",
			endings: []string{".odt", ".ott"},
			read:    format.Office, binary: true, isolated: true, holds: true},
		{name: "ods", endings: []string{".ods", ".ots"}, read: format.Office, binary: true, isolated: true, holds: true},
		{name: "odp", endings: []string{".odp", ".otp"}, read: format.Office, binary: true, isolated: true, holds: true},
		{name: "epub", said: "EPUB", endings: []string{".epub"}, read: format.Office, binary: true, isolated: true},
		{name: "office", said: "older office formats (.doc, .xls, .xlsb, .ppt, .rtf)",
			endings: []string{".doc", ".dot", ".xls", ".xlt", ".xlsb", ".ppt", ".pps", ".pot", ".rtf", ".sxw", ".sxc", ".sxi"},
			read:    format.Office, binary: true, isolated: true, holds: true},
		{name: "mail", said: "mail (.eml, .msg, .mbox, .mhtml)",
			endings: []string{".eml", ".mht", ".mhtml"},
			read:    format.Mail, isolated: true, holds: true},
		{name: "mbox", endings: []string{".mbox", ".mbx"}, read: format.Mailbox, isolated: true, holds: true},
		{name: "outlook", endings: []string{".msg"}, read: format.Outlook, binary: true, isolated: true, holds: true},
		{name: "calendar", said: "calendars and contacts (.ics, .vcf)", endings: []string{".ics", ".vcf"}, read: format.Calendar},
	}
	for _, f := range slices.Backward(formats) { // the first with an ending counts
		for _, ending := range f.endings {
			byEnding[ending] = f
		}
	}
}

// formatOf returns the format of a file's name.
func formatOf(name string) (fileFormat, bool) {
	f, ok := byEnding[endingOf(name)]
	return f, ok
}

// endingOf returns the ending of a file's name, in lower case and with its dot.
// It is empty if the part after the last dot is none, but a number ("syslog.1",
// "ibid.8") or the variant of a usual text ("README.Debian").
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

// formatNamed returns the format of a name, which must exist.
func formatNamed(name string) fileFormat {
	return formats[slices.IndexFunc(formats, func(f fileFormat) bool { return f.name == name })]
}

// into reads the file into the document.
func (f fileFormat) into(doc *Document, data []byte) error {
	return safely(f.name, func() error { return f.read(doc, data) })
}

// safely calls a reader. A panic is an error of its file.
func safely(reader string, read func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the %s reader crashed on it: %s", reader, child.FirstLine(fmt.Sprint(p), 200))
		}
	}()
	return read()
}

// Formats lists in words which files are read, for messages.
func Formats() string {
	var said []string
	for _, f := range formats {
		if f.said != "" {
			said = append(said, f.said)
		}
	}
	said = append(said, "files in archives (.zip, .tar, .gz, .bz2)")
	last := len(said) - 1
	return strings.Join(said[:last], ", ") + ", and " + said[last]
}

// LeftOut names, for messages, the files for which a [Syncer] yields no
// [Change].
const LeftOut = "hidden files and folders, and what .gitignore or .ibidignore names"

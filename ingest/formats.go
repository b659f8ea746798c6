package ingest

// Formats says in words which files are read, for messages to people.
func Formats() string {
	return "Markdown (.md, .mdx), reStructuredText (.rst), text (.txt, .log), HTML, CSV and TSV, and PDF"
}

// LeftOut says in words what in a folder a [Syncer] passes by without a
// [Change], for messages to people.
const LeftOut = "hidden files and folders, and what .gitignore or .ibidignore names"

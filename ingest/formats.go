package ingest

// Formats says in words which files are read, for messages to people.
func Formats() string {
	return "Markdown (.md, .mdx), reStructuredText (.rst), text (.txt, .log), HTML, CSV and TSV, and PDF"
}

package postgres

import (
	"fmt"
	"slices"
	"strings"

	"ibid/retrieve"
)

// Labels are what filters read in a document's metadata, as it is stored.
type labels struct {
	tags, authors, languages [][]byte
	firstDay, lastDay        []byte // nil without a date
}

func labelsOf(meta map[string]string) labels {
	read := retrieve.LabelsOf(meta)
	l := labels{tags: bytesOf(read.Tags), authors: bytesOf(read.Authors), languages: [][]byte{}}
	for _, tag := range read.Languages {
		for at := range string(tag) + "-" {
			if at == len(tag) || tag[at] == '-' {
				l.languages = append(l.languages, []byte(tag[:at]))
			}
		}
	}
	if read.Date != "" {
		l.firstDay, l.lastDay = []byte(firstDay(read.Date)), []byte(lastDay(read.Date))
	}
	return l
}

// A date that names a month or a year stands for all its days. That two dates
// agree as far as both of them say, or which of them is earlier, is then seen by
// their first and last days; that a month may have fewer than 31 plays no part.
func firstDay(d retrieve.Date) string { return string(d) + "-01-01"[max(0, min(6, len(d)-4)):] }
func lastDay(d retrieve.Date) string  { return string(d) + "-12-31"[max(0, min(6, len(d)-4)):] }

func bytesOf(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, t := range texts {
		out[i] = []byte(t)
	}
	return out
}

// A condition is a part of a statement with its parameters.
type condition struct {
	sql  string
	args []any
}

// indexedPrefix is how many bytes of a path, or of a collection's name, are in
// an index.
const indexedPrefix = 200

// where is what a filter demands of the document d. Its parameters are numbered
// from that behind the ones given.
func where(f retrieve.Filter, args ...any) condition {
	c := condition{args: args}
	var all []string
	put := func(v any) string {
		c.args = append(c.args, v)
		return fmt.Sprintf("$%d", len(c.args))
	}
	and := func(format string, parameters ...any) { all = append(all, fmt.Sprintf(format, parameters...)) }
	collections := func(names []string) {
		short := make([]string, len(names))
		for i, n := range names {
			short[i] = n[:min(len(n), indexedPrefix)]
		}
		and("substring(d.collection FROM 1 FOR %d) = ANY (%s::bytea[])", indexedPrefix, put(bytesOf(short)))
		and("d.collection = ANY (%s::bytea[])", put(bytesOf(names)))
	}
	if f.Collection != "" {
		collections([]string{f.Collection})
	}
	if len(f.Collections) > 0 {
		collections(f.Collections)
	}
	if f.Root != "" {
		and("d.root = %s", put([]byte(f.Root)))
	}
	if f.Document != "" {
		id := put([]byte(f.Document))
		and("sha256(d.id) = sha256(%s) AND d.id = %[1]s", id)
	}
	if f.PathPrefix != "" {
		short := []byte(f.PathPrefix[:min(len(f.PathPrefix), indexedPrefix)])
		and("substring(d.path FROM 1 FOR %d) >= %s", indexedPrefix, put(short))
		if end := successor(short); end != nil {
			and("substring(d.path FROM 1 FOR %d) < %s", indexedPrefix, put(end))
		}
		if len(f.PathPrefix) > indexedPrefix {
			and("substring(d.path FROM 1 FOR %d) = %s", len(f.PathPrefix), put([]byte(f.PathPrefix)))
		}
	}
	if f.Format != "" {
		and("d.format = %s", put([]byte(f.Format)))
	}
	if len(f.Tags) > 0 {
		var tags []string
		for _, tag := range f.Tags {
			// As the document's own are read; one with a comma in it is no tag.
			read := retrieve.LabelsOf(map[string]string{"tags": tag}).Tags
			if len(read) != 1 || strings.ContainsAny(tag, ",;") {
				and("false")
				continue
			}
			tags = append(tags, read[0])
		}
		and("d.tags @> %s::bytea[]", put(bytesOf(tags)))
	}
	if f.Author != "" {
		words := retrieve.LabelsOf(map[string]string{"author": f.Author}).Authors
		if len(words) == 0 {
			and("false")
		}
		slices.Sort(words)
		and("d.authors @> %s::bytea[]", put(bytesOf(slices.Compact(words))))
	}
	if f.Language != "" {
		and("d.languages @> ARRAY[%s::bytea]", put([]byte(f.Language)))
	}
	if f.Since != "" {
		and("d.last_day >= %s", put([]byte(firstDay(f.Since))))
	}
	if f.Until != "" {
		and("d.first_day <= %s", put([]byte(lastDay(f.Until))))
	}
	c.sql = "true"
	if len(all) > 0 {
		c.sql = strings.Join(all, " AND ")
	}
	return c
}

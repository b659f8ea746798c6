package weaviate

import (
	"slices"
	"strings"
	"testing"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"pgregory.net/rapid"

	"ibid/ingest"
	"ibid/retrieve"
)

// passesIn is how Weaviate reads a filter of those that narrow makes.
func passesIn(f *pb.Filters, labels []string, path string, from, to int) bool {
	if f == nil {
		return true
	}
	number := map[string]int{"from": from, "to": to}[f.Target.GetProperty()]
	switch f.Operator {
	case pb.Filters_OPERATOR_AND:
		return !slices.ContainsFunc(f.Filters, func(g *pb.Filters) bool { return !passesIn(g, labels, path, from, to) })
	case pb.Filters_OPERATOR_EQUAL:
		return slices.Contains(labels, f.GetValueText())
	case pb.Filters_OPERATOR_CONTAINS_ANY:
		return slices.ContainsFunc(f.GetValueTextArray().Values, func(l string) bool { return slices.Contains(labels, l) })
	case pb.Filters_OPERATOR_LIKE:
		return strings.HasPrefix(path, strings.TrimSuffix(f.GetValueText(), "*"))
	case pb.Filters_OPERATOR_GREATER_THAN_EQUAL:
		return number >= int(f.GetValueInt())
	case pb.Filters_OPERATOR_GREATER_THAN:
		return number > int(f.GetValueInt())
	case pb.Filters_OPERATOR_LESS_THAN_EQUAL:
		return number <= int(f.GetValueInt())
	}
	return false
}

// What a filter lets through is never left out by what Weaviate is asked for.
func TestNarrow(t *testing.T) {
	dates := []string{"", "2023", "2024", "2024-03", "2024-03-31", "2024-04", "2024-04-01", "2025-12", "1", "once", "0000"}
	oneOf := func(t *rapid.T, what string, values ...string) string { return rapid.SampledFrom(values).Draw(t, what) }
	some := 0
	rapid.Check(t, func(t *rapid.T) {
		d := retrieve.DocumentInfo{
			Document: ingest.Document{
				Root: oneOf(t, "root", "a", "b"), Path: oneOf(t, "path", "x", "x/y", " x", "x\ny", "x*y", "\xffx"), Format: oneOf(t, "format", "text", "markdown"),
				Meta: map[string]string{
					"date": oneOf(t, "date", dates...), "tags": oneOf(t, "tags", "", "sea", "#Sea, harbour", "a b; sea"),
					"author": oneOf(t, "author", "", "Ada Lovelace", "Élodie, Ann"), "language": oneOf(t, "language", "", "de-AT", "zh-Hant-TW, en", "Middle High-German"),
				},
			},
			Collection: oneOf(t, "collection", "default", "work", " work ", strings.Repeat("long", 100)),
		}
		d.ID = d.Root + "/" + d.Path
		f := retrieve.Filter{
			Root: oneOf(t, "of root", "", "a", "b"), Collection: oneOf(t, "of collection", "", "work", " work ", strings.Repeat("long", 100)),
			PathPrefix: oneOf(t, "of path", "", "x", "x/", " ", "x\n", "\xff"), Format: oneOf(t, "of format", "", "text"),
			Author: oneOf(t, "of author", "", "lovelace", "ann elodie", "-"), Language: retrieve.LanguageTag(oneOf(t, "of language", "", "de", "zh-Hant", "en", "middle high")),
			Since: retrieve.Date(oneOf(t, "since", "", "2023", "2024-03", "2024-04-01")), Until: retrieve.Date(oneOf(t, "until", "", "0000", "2023", "2024-03-30", "2024-04")),
		}
		if tag := oneOf(t, "of tag", "", "SEA", "#a b", "sea,harbour"); tag != "" {
			f.Tags = []string{tag}
		}
		if c := oneOf(t, "in", "", "work", "default"); c != "" {
			f.Collections = []string{c, "none"}
		}
		// Of many conditions hardly anything passes: a few at a time.
		few := rapid.IntRange(0, 1<<10-1).Draw(t, "which") & rapid.IntRange(0, 1<<10-1).Draw(t, "of these")
		for i, clear := range []func(){
			func() { f.Root = "" }, func() { f.Collection = "" }, func() { f.PathPrefix = "" }, func() { f.Format = "" }, func() { f.Author = "" },
			func() { f.Language = "" }, func() { f.Since = "" }, func() { f.Until = "" }, func() { f.Tags = nil }, func() { f.Collections = nil },
		} {
			if few>>i&1 == 0 {
				clear()
			}
		}
		l := retrieve.LabelsOf(d.Meta)
		where, none := narrow(f)
		if !f.Matches(&d, l) {
			return
		}
		some++
		if none || !passesIn(where, labelsOf(&d, l), pathKey(d.Path), firstDay(l.Date), lastDay(l.Date)) {
			t.Fatalf("%+v lets %+v through, and %v does not", f, d, where)
		}
	})
	if some == 0 {
		t.Error("nothing was let through")
	}
}

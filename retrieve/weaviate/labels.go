package weaviate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"

	"ibid/retrieve"
)

// What a filter asks for stands with every document and chunk as labels, such as
// "tag=sea", so that Weaviate can leave out the most. A filter that lets more
// through than it should is no matter, since everything found is held against
// [retrieve.Filter.Matches]; it must never let less through.

// labelsOf are the labels of a document.
func labelsOf(d *retrieve.DocumentInfo, l retrieve.Labels) []string {
	labels := []string{"collection=" + d.Collection, "root=" + d.Root, "format=" + d.Format}
	for _, tag := range l.Tags {
		labels = append(labels, "tag="+tag)
	}
	for _, word := range l.Authors {
		labels = append(labels, "author="+word)
	}
	for _, language := range l.Languages {
		// A wider language lets narrower ones through.
		for at, tag := 0, string(language); ; {
			next := strings.IndexByte(tag[at:], '-')
			if next < 0 {
				labels = append(labels, "language="+tag)
				break
			}
			labels = append(labels, "language="+tag[:at+next])
			at += next + 1
		}
	}
	for i, label := range labels {
		labels[i] = indexed(label)
	}
	return labels
}

// maxKey is how long a value of an index may be before a digest stands for it.
const maxKey = 200

// indexed is a text as an index holds it: the same for equal texts.
func indexed(text string) string {
	if len(text) <= maxKey {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256=" + hex.EncodeToString(sum[:])
}

// pathKey is a path as its index holds it. Weaviate would cut white space off
// its ends, and its wildcard does not go over the end of a line.
func pathKey(path string) string {
	path = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(path, "\uFFFD"))
	return "/" + path
}

// day is a date as a number; the parts that it does not say are those given.
func day(d retrieve.Date, rest string) int {
	if d == "" {
		return 0
	}
	digits := strings.ReplaceAll(string(d), "-", "")
	n, err := strconv.Atoi(digits + rest[len(digits):])
	if err != nil {
		return 0
	}
	return n
}

// The first and the last day that a date may mean; 0 where there is none, which
// the year 0000 is not.
func firstDay(d retrieve.Date) int { return max(min(len(d), 1), day(d, "00000000")) }
func lastDay(d retrieve.Date) int  { return day(d, "99999999") }

// narrow makes of a filter one of Weaviate's, nil for one that lets everything
// through. Nothing passes where none is true.
func narrow(f retrieve.Filter) (where *pb.Filters, none bool) {
	var parts []*pb.Filters
	has := func(label string) { parts = append(parts, equal("labels", indexed(label))) }
	if f.Collection != "" {
		has("collection=" + f.Collection)
	}
	if len(f.Collections) > 0 {
		labels := make([]string, len(f.Collections))
		for i, c := range f.Collections {
			labels[i] = indexed("collection=" + c)
		}
		parts = append(parts, anyOf("labels", labels))
	}
	if f.Root != "" {
		has("root=" + f.Root)
	}
	if f.Format != "" {
		has("format=" + f.Format)
	}
	for _, tag := range f.Tags {
		// Read as those of a document are.
		tags := retrieve.LabelsOf(map[string]string{"tags": tag}).Tags
		if len(tags) != 1 {
			return nil, true // one tag of a document has no comma in it
		}
		has("tag=" + tags[0])
	}
	if f.Author != "" {
		words := retrieve.LabelsOf(map[string]string{"author": f.Author}).Authors
		if len(words) == 0 {
			return nil, true
		}
		for _, word := range words {
			has("author=" + word)
		}
	}
	if f.Language != "" {
		has("language=" + string(f.Language))
	}
	if f.Since != "" {
		parts = append(parts, number(pb.Filters_OPERATOR_GREATER_THAN_EQUAL, "to", firstDay(f.Since)))
	}
	if f.Until != "" {
		parts = append(parts, number(pb.Filters_OPERATOR_LESS_THAN_EQUAL, "from", lastDay(f.Until)), number(pb.Filters_OPERATOR_GREATER_THAN, "from", 0))
	}
	if f.PathPrefix != "" {
		parts = append(parts, like("path", pathKey(f.PathPrefix)+"*"))
	}
	return all(parts...), false
}

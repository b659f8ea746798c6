package retrieve

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// compare counts what both states have by root, and compares a sample of the
// documents in full.
func (c *Copy) compare(ctx context.Context) (report CopyReport, err error) {
	report = CopyReport{Space: c.space, Sent: c.sent, Roots: []CopiedRoot{}, Failed: []CopyTrouble{}, Differences: []CopyTrouble{}}
	random := rand.New(rand.NewPCG(c.Seed, 0))
	sample := make([]DocumentInfo, 0, c.Sample)
	seen := 0
	differs := func(id, format string, args ...any) {
		report.Differences = append(report.Differences, CopyTrouble{id, fmt.Sprintf(format, args...)})
	}
	for _, id := range slices.Sorted(maps.Keys(c.failed)) {
		report.Failed = append(report.Failed, CopyTrouble{id, c.failed[id]})
	}
	for _, r := range c.roots {
		source, target, err := c.lists(ctx, r)
		if err != nil {
			return report, err
		}
		root := CopiedRoot{Root: r}
		for _, d := range source {
			has, ok := target[d.ID]
			delete(target, d.ID)
			if _, failed := c.failed[d.ID]; failed {
				continue
			}
			root.Documents, root.Chunks = root.Documents+1, root.Chunks+d.Chunks
			switch {
			case !ok:
				differs(d.ID, "it is not in the target")
				continue
			case has.Chunks != d.Chunks:
				differs(d.ID, "it has %d chunks, and %d in the target", d.Chunks, has.Chunks)
				continue
			case !sameInfo(d, has):
				differs(d.ID, "its title, digest, metadata or size differ in the target")
				continue
			}
			// Reservoir sampling: each document is equally likely in the sample.
			if seen++; len(sample) < c.Sample {
				sample = append(sample, d)
			} else if at := random.IntN(seen); at < c.Sample {
				sample[at] = d
			}
		}
		root.Beside = len(target)
		report.Documents, report.Chunks = report.Documents+root.Documents, report.Chunks+root.Chunks
		report.Roots = append(report.Roots, root)
	}
	for _, p := range sample {
		here, err := readWhole(ctx, c.From, p.ID)
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		if err != nil {
			differs(p.ID, "the source has only parts of it: %v", err)
			continue
		}
		there, err := readWhole(ctx, c.To, p.ID)
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		if err != nil {
			differs(p.ID, "the target has only parts of it: %v", err)
			continue
		}
		report.Compared++
		if what := difference(here, there); what != "" {
			differs(p.ID, "%s", what)
		}
	}
	return report, nil
}

// difference names the first difference of two versions of a document; empty if
// they are equal.
func difference(a, b whole) string {
	switch {
	case a.doc.ID != b.doc.ID || !sameHead(a.doc, b.doc):
		return "its title, digest or metadata differ in the target"
	case a.doc.Text != b.doc.Text:
		return "its text differs in the target"
	case !slices.Equal(a.doc.Sections, b.doc.Sections):
		return "its sections differ in the target"
	case !slices.Equal(a.doc.Pages, b.doc.Pages):
		return "its pages differ in the target"
	case !slices.Equal(a.chunks, b.chunks):
		return "its chunks differ in the target"
	}
	for i := range a.vectors {
		if !slices.Equal(a.vectors[i], b.vectors[i]) {
			return fmt.Sprintf("the vector of its chunk %d differs in the target", i+1)
		}
	}
	return ""
}

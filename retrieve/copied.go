package retrieve

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"ibid/ingest"
)

// compare counts what both states have by root, and compares a sample of the
// documents in full.
func (c *Copy) compare(ctx context.Context) (CopyReport, error) {
	work := &comparison{Copy: c, random: rand.New(rand.NewPCG(c.Seed, 0)), report: CopyReport{
		Space: c.space, Sent: c.sent, Roots: []CopiedRoot{}, Failed: []CopyTrouble{}, Differences: []CopyTrouble{},
	}}
	for _, id := range slices.Sorted(maps.Keys(c.failed)) {
		work.report.Failed = append(work.report.Failed, CopyTrouble{id, c.failed[id]})
	}
	for _, root := range c.roots {
		if err := work.countRoot(ctx, root); err != nil {
			return work.report, err
		}
	}
	for _, d := range work.sample {
		if err := work.compareDocument(ctx, d.ID); err != nil {
			return work.report, err
		}
	}
	return work.report, nil
}

// A comparison is the work of [Copy.compare].
type comparison struct {
	*Copy
	report CopyReport
	random *rand.Rand
	sample []DocumentInfo
	seen   int // documents that the sample was drawn from
}

func (c *comparison) differs(id, format string, args ...any) {
	c.report.Differences = append(c.report.Differences, CopyTrouble{id, fmt.Sprintf(format, args...)})
}

// countRoot adds a root to the report, and its documents to the sample.
func (c *comparison) countRoot(ctx context.Context, r ingest.Root) error {
	source, target, err := c.lists(ctx, r)
	if err != nil {
		return err
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
			c.differs(d.ID, "it is not in the target")
		case has.Chunks != d.Chunks:
			c.differs(d.ID, "it has %d chunks, and %d in the target", d.Chunks, has.Chunks)
		case !sameInfo(d, has):
			c.differs(d.ID, "its title, digest, metadata or size differ in the target")
		default:
			c.draw(d)
		}
	}
	root.OnlyTarget = len(target)
	c.report.Documents, c.report.Chunks = c.report.Documents+root.Documents, c.report.Chunks+root.Chunks
	c.report.Roots = append(c.report.Roots, root)
	return nil
}

// draw adds a document to the sample, or not: each of the documents is equally
// likely in it (reservoir sampling).
func (c *comparison) draw(d DocumentInfo) {
	if c.seen++; len(c.sample) < c.Sample {
		c.sample = append(c.sample, d)
	} else if at := c.random.IntN(c.seen); at < c.Sample {
		c.sample[at] = d
	}
}

// compareDocument compares a document in full. Only the end of ctx is an error.
func (c *comparison) compareDocument(ctx context.Context, id string) error {
	here, err := readWhole(ctx, c.From, id)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.differs(id, "the source has only parts of it: %v", err)
		return nil
	}
	there, err := readWhole(ctx, c.To, id)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.differs(id, "the target has only parts of it: %v", err)
		return nil
	}
	c.report.Compared++
	if what := difference(here, there); what != "" {
		c.differs(id, "%s", what)
	}
	return nil
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

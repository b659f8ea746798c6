package rewrite_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/cite/rewrite"
	"ibid/data/datatest"
	"ibid/ingest"
)

// TestNeutralCost measures how many sentences of real texts change, and why.
func TestNeutralCost(t *testing.T) {
	library := map[string]int{}
	n := 0
	err := fs.WalkDir(os.DirFS("../../data/library"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".md", ".txt", ".csv", ".rst", ".mdx"}, filepath.Ext(path)) {
			return err
		}
		b, err := os.ReadFile(filepath.Join("../../data/library", path))
		n += changes(string(b), library)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	report(t, "the sample library", n, library, 1)

	base := datatest.Sets(t)
	most := datatest.Cases(t, 40000) // sentences
	for _, set := range []struct {
		name string
		most float64 // percent
	}{{"clapnq-a", 1}, {"squad2-a", 1}, {"wice-dev", 2}, {"scifact-train", 1}, {"rgb-zh-fact", 2}, {"rgb-en-fact-a",
		3}, {"anthropic-docs", 10}} {
		f, err := os.Open(filepath.Join(base, set.name, "corpus.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		why, n := map[string]int{}, 0
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() && n < most {
			var d struct{ Text string }
			if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
				t.Fatal(err)
			}
			n += changes(d.Text, why)
		}
		if err := cmp.Or(lines.Err(), f.Close()); err != nil {
			t.Fatal(err)
		}
		report(t, set.name, n, why, set.most)
	}
}

// changes counts the sentences of a text, and in why those that change.
func changes(text string, why map[string]int) (n int) {
	for s := range ingest.Sentences(text) {
		n++
		sentence := text[s.Start:s.End]
		if rewrite.Neutral(sentence) == sentence {
			continue
		}
		why["any"]++
		for name, re := range forbidden {
			if re.MatchString(sentence) {
				why[name]++
			}
		}
	}
	return n
}

func report(t *testing.T, name string, n int, why map[string]int, most float64) {
	t.Helper()
	var reasons strings.Builder
	for _, k := range slices.Sorted(maps.Keys(why)) {
		if k != "any" {
			reasons.WriteString(", " + k + " " + percent(why[k], n))
		}
	}
	t.Logf("figure: %s: %s of %d sentences change when they are made neutral%s", name, percent(why["any"], n), n, reasons.String())
	if n == 0 || 100*float64(why["any"])/float64(n) > most {
		t.Errorf("%s: more than %g %% change", name, most)
	}
}

func percent(k, n int) string {
	b, _ := json.Marshal(float64(int(10000*float64(k)/float64(max(n, 1))+0.5)) / 100)
	return string(b) + " %"
}

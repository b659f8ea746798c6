package rewrite_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
	"ibid/data/datatest"
)

// A vector is one case of citations.json.
type vector struct {
	Name      string             `json:"name"`
	Category  string             `json:"category"`
	Profile   string             `json:"profile"`
	Style     string             `json:"style"`
	Documents []rewrite.Document `json:"documents"`
	Exclude   []int              `json:"exclude"`
	Text      string             `json:"text"`
	Cuts      [][]string         `json:"cuts"`
	WantText  string             `json:"expected_text"`
	WantList  string             `json:"expected_list"`
	Want      []rewrite.Source   `json:"expected_sources"`
	Emitted   []string           `json:"min_emitted"`
}

// readVectors reads citations.json from the folder IBID_VECTORS. A relative path starts at this
// package's folder or at that of go.mod.
func readVectors(t testing.TB) []vector {
	t.Helper()
	folder := cmp.Or(os.Getenv("IBID_VECTORS"), "testdata")
	data, err := os.ReadFile(filepath.Join(folder, "citations.json"))
	if err != nil && !filepath.IsAbs(folder) {
		top, errTop := os.ReadFile(filepath.Join("../..", folder, "citations.json"))
		if errTop != nil {
			t.Fatalf("no vectors in IBID_VECTORS=%s, relative to this package or to go.mod: %v; %v", folder, err, errTop)
		}
		data, err = top, nil
	}
	must(t, err)
	var file struct {
		Vectors []vector `json:"vectors"`
	}
	must(t, json.Unmarshal(data, &file))
	if len(file.Vectors) == 0 {
		t.Fatalf("no vectors in %s", folder)
	}
	return file.Vectors
}

func (v vector) rewriter(t testing.TB) *rewrite.Rewriter {
	t.Helper()
	style, ok := rewrite.StyleByName(v.Style)
	if !ok {
		t.Fatalf("unknown style %q", v.Style)
	}
	profile := marker.Default
	if v.Profile == "strict" {
		profile = marker.Strict
	}
	if len(v.Exclude) > 0 {
		style.Exclude = func(d rewrite.Document) bool { return slices.Contains(v.Exclude, d.ID) }
	}
	return rewrite.New(v.Documents, style, profile)
}

func TestVectorsCitations(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			v.check(t, "whole", []string{v.Text})
			for _, cut := range v.Cuts {
				v.check(t, "listed", cut)
			}
			var cuts []int
			for i := range v.Text {
				cuts = append(cuts, i)
			}
			if len(cuts) > 1000 {
				cuts = datatest.Pick(t, cuts)
			}
			for _, i := range cuts {
				v.check(t, "two pieces", []string{v.Text[:i], v.Text[i:]})
			}
			v.check(t, "characters", strings.Split(v.Text, ""))
			bytes := make([]string, len(v.Text))
			for i := range bytes {
				bytes[i] = v.Text[i : i+1]
			}
			v.check(t, "bytes", bytes)
			if len(v.Emitted) > 0 {
				v.checkEmitted(t)
			}
		})
	}
}

func (v vector) check(t *testing.T, how string, pieces []string) {
	t.Helper()
	r := v.rewriter(t)
	var out []byte
	for i, piece := range pieces {
		out = r.Append(out, []byte(piece))
		if !strings.HasPrefix(v.WantText, string(out)) {
			t.Fatalf("%s: text %q: after piece %d of %q\n got %q\nwant a prefix of %q", how, v.Text, i, pieces, out, v.WantText)
		}
	}
	out = r.Close(out)
	if got := string(out); got != v.WantText {
		t.Fatalf("%s: text %q: pieces %q\n got %q\nwant %q", how, v.Text, pieces, got, v.WantText)
	}
	if got := r.List(); got != v.WantList {
		t.Fatalf("%s: list of %q\n got %q\nwant %q", how, v.Text, got, v.WantList)
	}
	got := r.Sources()
	if len(got) == 0 && len(v.Want) == 0 {
		return
	}
	if !reflect.DeepEqual(got, v.Want) {
		t.Fatalf("%s: sources of %q\n got %+v\nwant %+v", how, v.Text, got, v.Want)
	}
}

func (v vector) checkEmitted(t *testing.T) {
	t.Helper()
	r := v.rewriter(t)
	var out []byte
	fed := 0
	for i, piece := range v.Cuts[0] {
		out = r.Append(out, []byte(piece))
		fed += utf8.RuneCountInString(piece)
		if !strings.HasPrefix(string(out), v.Emitted[i]) {
			t.Errorf("after piece %d: got %q, want at least %q", i, out, v.Emitted[i])
		}
	}
}

package retrieve_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/index"
	"ibid/retrieve/state"
)

// TestLostHistory puts an older copy of the library in its place, and stores fewer,
// as many and more documents than were lost: they get the numbers and revisions of
// the lost ones. The search index of the lost documents is not used for them.
func TestLostHistory(t *testing.T) {
	for _, n := range []int{10, 81, 90} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { loseHistory(t, n) })
	}
}

func loseHistory(t *testing.T, n int) {
	dir, indexDir := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, state.FileName)
	ctx := t.Context()
	with := func(indexDir string, f func(s *state.Store, x *retrieve.Index)) {
		t.Helper()
		s, err := state.Open(ctx, dir, state.Options{})
		must(t, err)
		name, err := s.Library(ctx)
		must(t, err)
		searcher := index.Open(indexDir, index.Options{Library: name, Space: testSpace.Space(), Flush: 4})
		x, err := retrieve.NewIndex(ctx, s, searcher, testSpace, retrieve.Options{})
		must(t, err)
		f(s, x)
		must(t, searcher.Close())
		must(t, s.Close())
	}
	add := func(x *retrieve.Index, word string, n int) {
		t.Helper()
		for i := range n {
			store(t, x, "a", fmt.Sprint(word, i), "Title", fmt.Sprintf("%s number%d", word, i))
		}
	}
	with(indexDir, func(s *state.Store, x *retrieve.Index) {
		_, err := x.AddRoot(ctx, "/srv/a", "")
		must(t, err)
		add(x, "alpha", 30)
		must(t, x.Follow(ctx))
	})
	older, err := os.ReadFile(file)
	must(t, err)
	with(indexDir, func(s *state.Store, x *retrieve.Index) {
		add(x, "beta", 80)
		must(t, s.Delete(ctx, "a/alpha3"))
		must(t, x.Follow(ctx))
	})
	must(t, os.WriteFile(file, older, 0o600))
	with(t.TempDir(), func(_ *state.Store, x *retrieve.Index) { add(x, "gamma", n) })
	with(indexDir, func(_ *state.Store, x *retrieve.Index) {
		for _, want := range []struct {
			word   string
			number int
		}{{"gamma", 7}, {"alpha", 3}, {"gamma", 9}, {"alpha", 29}} {
			got := found(t, x, retrieve.Query{Text: fmt.Sprintf("%s number%d", want.word, want.number), K: 3})
			if id := fmt.Sprintf("a/%s%d#1", want.word, want.number); len(got) == 0 || got[0] != id {
				t.Errorf("found %q, not %s", got, id)
			}
		}
	})
}

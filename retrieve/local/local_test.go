package local

import (
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

var (
	_ retrieve.Engine   = (*Engine)(nil)
	_ retrieve.Respacer = (*Engine)(nil)
)

func openTest(t *testing.T, dir string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func TestEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) retrieve.Engine { return openTest(t, t.TempDir()) })
}

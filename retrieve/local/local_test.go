package local

import (
	"database/sql"
	"testing"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

var (
	_ retrieve.Store = (*Engine)(nil)
)

func openTest(t *testing.T, dir string) *Engine {
	t.Helper()
	return openWith(t, dir, Options{})
}

func openWith(t *testing.T, dir string, opts Options) *Engine {
	t.Helper()
	e, err := Open(t.Context(), dir, opts)
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

func backend() enginetest.Backend {
	return enginetest.Backend{Recall: 1, New: func(t *testing.T) func() retrieve.Store {
		dir := t.TempDir()
		return func() retrieve.Store { return openWith(t, dir, Options{Limits: enginetest.Limits()}) }
	}}
}

func TestEngine(t *testing.T) { enginetest.Run(t, backend()) }

func TestLedger(t *testing.T) { enginetest.Ledger(t, backend()) }

func TestCopy(t *testing.T) { enginetest.Copy(t, backend()) }

func TestKeyring(t *testing.T) { enginetest.Keyring(t, backend()) }

// A start reads only, and so need not wait for another process that writes long.
func TestOpenBesideWriter(t *testing.T) {
	dir := t.TempDir()
	writer := openTest(t, dir)
	begun, done, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- writer.update(t.Context(), func(*sql.Tx) error {
			close(begun)
			<-done
			return nil
		})
	}()
	<-begun
	e, err := Open(t.Context(), dir, Options{Wait: 100 * time.Millisecond})
	close(done)
	if writing := <-ended; err != nil || writing != nil {
		t.Fatal(err, writing)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

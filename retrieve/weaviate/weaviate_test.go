package weaviate

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/weaviate/weaviatetest"
)

// each gives every test classes of its own on one cluster.
func fresh(c *weaviatetest.Cluster, query url.Values) func(t *testing.T) func() retrieve.Store {
	var n atomic.Int64
	return func(t *testing.T) func() retrieve.Store {
		q := url.Values{"prefix": {fmt.Sprintf("Test%dP%d", n.Add(1), os.Getpid())}}
		for k, v := range query {
			q[k] = v
		}
		t.Cleanup(func() { clearAll(t, c.URL(q)) })
		return func() retrieve.Store {
			e, err := Open(t.Context(), c.URL(q), Options{Limits: enginetest.Limits()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			return e
		}
	}
}

func TestStore(t *testing.T) {
	c := weaviatetest.Start(t, 1)
	b := enginetest.Backend{New: fresh(c, nil), Recall: 1}
	t.Run("Engine", func(t *testing.T) { enginetest.Run(t, b) })
	t.Run("Ledger", func(t *testing.T) { enginetest.Ledger(t, b) })
	t.Run("Keyring", func(t *testing.T) { enginetest.Keyring(t, b) })
}

// clearAll removes the classes of a URL.
func clearAll(t *testing.T, url string) {
	t.Helper()
	ctx := context.Background()
	e, err := Open(ctx, url, Options{})
	if err != nil {
		t.Error(err)
		return
	}
	defer e.Close()
	all, err := e.wire.rest[0].Schema().Getter().Do(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	for _, c := range all.Classes {
		if strings.HasPrefix(c.Class, e.wire.at.prefix) {
			if err := e.wire.drop(ctx, c.Class); err != nil {
				t.Error(err)
			}
		}
	}
}

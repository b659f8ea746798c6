package weaviate

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/weaviate/weaviatetest"
)

var (
	_ retrieve.Store     = (*Engine)(nil)
	_ retrieve.Inspector = (*Engine)(nil)
	_ retrieve.Counter   = (*Engine)(nil)
)

func TestCopy(t *testing.T) {
	c := weaviatetest.Start(t, 1)
	enginetest.Copy(t, enginetest.Backend{New: fresh(c, nil), Recall: 1})
}

func TestInspect(t *testing.T) {
	c := weaviatetest.Start(t, 1)
	e := fresh(c, nil)(t)().(retrieve.Inspector)
	traits, err := e.Inspect(t.Context())
	if err != nil || len(traits) != 3 || traits[1].Value != "1 of 1 are well" || traits[1].Next != "" {
		t.Errorf("%+v, %v", traits, err)
	}
}

// TestNotWhole refuses a library of which a class is missing, and makes nothing
// beside a class that is somebody else's.
func TestNotWhole(t *testing.T) {
	c := weaviatetest.Start(t, 1)
	ctx := t.Context()
	library := fresh(c, nil)
	for name, class := range map[string]func(address) string{
		"items": address.items, "parts": address.parts,
		"chunks": func(a address) string { return a.chunks("enginetest/4") },
	} {
		open := library(t)
		e := open().(*Engine)
		if err := e.SetSpace(ctx, "enginetest/4"); err != nil {
			t.Fatal(err)
		}
		// The server would make a class for what is still written.
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		missing := class(e.wire.at)
		if err := e.wire.drop(ctx, missing); err != nil {
			t.Fatal(err)
		}
		url := c.URL(url.Values{"prefix": {e.wire.at.prefix}})
		if _, err := Open(ctx, url, Options{}); !errors.Is(err, errMissing) || !strings.Contains(err.Error(), missing) {
			t.Errorf("opened without its %s: %v", name, err)
		}
		for _, left := range []string{e.wire.at.chunks("enginetest/4"), e.wire.at.documents(), e.wire.at.parts(), e.wire.at.items()} {
			if err := e.wire.drop(ctx, left); err != nil {
				t.Error(err)
			}
		}
	}
	e := library(t)().(*Engine)
	w := e.wire
	prefix := w.at.prefix
	w.at.prefix = "Foreign"
	defer func() { w.at.prefix = prefix }()
	if err := w.ensure(ctx, w.class(w.at.documents(), "somebody else's", nil, 1, false), false); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, c.URL(url.Values{"prefix": {"Foreign"}}), Options{}); err == nil || !strings.Contains(err.Error(), "another prefix") {
		t.Errorf("opened what is somebody else's: %v", err)
	}
	for _, class := range []string{w.at.items(), w.at.parts()} {
		if have, err := w.look(ctx, class); err != nil || have != nil {
			t.Errorf("beside it stands %s: %v", class, err)
		}
	}
}

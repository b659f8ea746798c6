package weaviate

import (
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/weaviate/weaviatetest"
)

var (
	_ retrieve.Store      = (*Engine)(nil)
	_ retrieve.Preparer   = (*Engine)(nil)
	_ retrieve.Respacer   = (*Engine)(nil)
	_ retrieve.RootKeeper = (*Engine)(nil)
	_ retrieve.Inspector  = (*Engine)(nil)
	_ retrieve.Counter    = (*Engine)(nil)
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

package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"ibid/retrieve"
)

// A space is an embedding space with vectors.
type space struct {
	Number     int64  `json:"number"`
	Name       string `json:"name"`
	Dimensions int    `json:"dimensions,omitempty"` // 0 before the first vector
}

// spaces is the setting of that name.
type spaces struct {
	Used int64   `json:"used,omitempty"` // number of the space in use; 0 if none has been set
	Last int64   `json:"last,omitempty"` // number given last: none is given twice
	All  []space `json:"all,omitempty"`
}

// used returns the space in use, or the zero value.
func (s *spaces) used() space { return s.find(func(x space) bool { return x.Number == s.Used }) }

// named returns the space of a name, or the zero value.
func (s *spaces) named(name string) space {
	return s.find(func(x space) bool { return x.Name == name })
}

func (s *spaces) find(is func(space) bool) space {
	if i := slices.IndexFunc(s.All, is); i >= 0 {
		return s.All[i]
	}
	return space{}
}

// add returns the space of a name, which is added if there is none.
func (s *spaces) add(name string) *space {
	i := slices.IndexFunc(s.All, func(x space) bool { return x.Name == name })
	if i < 0 {
		s.Last++
		i = len(s.All)
		s.All = append(s.All, space{Number: s.Last, Name: name})
	}
	return &s.All[i]
}

// use makes a space the only one.
func (s *spaces) use(only space) { s.Used, s.All = only.Number, []space{only} }

func (t *tx) spaces() (all spaces) {
	if text := t.setting(settingSpaces); text != "" {
		check(json.Unmarshal([]byte(text), &all))
	}
	return all
}

func (t *tx) setSpaces(all spaces) {
	text, err := json.Marshal(all)
	check(err)
	t.set(settingSpaces, string(text))
}

// spaceFor returns the space of a name, which is added if there is none. Its
// vectors have these dimensions, or get them.
func (t *tx) spaceFor(name string, dimensions int) space {
	all := t.spaces()
	if known := all.named(name); known.Dimensions == dimensions {
		return known
	}
	t.lock("spaces")
	all = t.spaces() // another process may have been first
	of := all.add(name)
	if of.Dimensions == 0 {
		of.Dimensions = dimensions
		t.setSpaces(all)
	}
	if of.Dimensions != dimensions {
		check(fmt.Errorf("its vectors have %d dimensions, and those stored for %s have %d", dimensions, name, of.Dimensions))
	}
	return *of
}

// Space is the embedding space in use; empty while no document is stored.
func (s *Store) Space(ctx context.Context) (name string, err error) {
	err = s.view(ctx, func(t *tx) { name = t.spaceOfDocuments() })
	return name, err
}

func (t *tx) spaceOfDocuments() string {
	if !t.any("documents") {
		return ""
	}
	all := t.spaces()
	return all.used().Name
}

// useSpace makes the space of a name the one in use. If documents are stored in
// another one, the error is a [*retrieve.SpaceError].
func (t *tx) useSpace(name string) {
	if name == "" {
		check(errors.New("its embedding space has no name"))
	}
	if all := t.spaces(); all.used().Name == name {
		return
	}
	t.lock("library") // no document is added meanwhile
	if stored := t.spaceOfDocuments(); stored != "" && stored != name {
		check(&retrieve.SpaceError{Stored: stored, Wanted: name})
	}
	all := t.spaces()
	all.use(*all.add(name))
	t.setSpaces(all)
}

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

func (t *tx) spaces() (all spaces, err error) {
	text, err := t.setting(settingSpaces)
	if err != nil || text == "" {
		return all, err
	}
	err = json.Unmarshal([]byte(text), &all)
	return all, err
}

func (t *tx) setSpaces(all spaces) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return t.set(settingSpaces, string(text))
}

// spaceFor returns the space of a name, which is added if there is none. Its
// vectors have these dimensions, or get them.
func (t *tx) spaceFor(name string, dimensions int) (space, error) {
	all, err := t.spaces()
	if known := all.named(name); err != nil || known.Dimensions == dimensions {
		return known, err
	}
	if err := t.lock("spaces"); err != nil {
		return space{}, err
	}
	if all, err = t.spaces(); err != nil { // another process may have been first
		return space{}, err
	}
	of := all.add(name)
	if of.Dimensions == 0 {
		of.Dimensions = dimensions
		return *of, t.setSpaces(all)
	}
	if of.Dimensions != dimensions {
		err = fmt.Errorf("its vectors have %d dimensions, and those stored for %s have %d", dimensions, name, of.Dimensions)
	}
	return *of, err
}

// Space is the embedding space in use; empty while no document is stored.
func (s *Store) Space(ctx context.Context) (name string, err error) {
	err = s.view(ctx, func(t *tx) error {
		name, err = t.spaceOfDocuments()
		return err
	})
	return name, err
}

func (t *tx) spaceOfDocuments() (string, error) {
	var any bool
	if err := t.row(`SELECT EXISTS (SELECT 1 FROM ibid.documents)`).Scan(&any); err != nil || !any {
		return "", err
	}
	all, err := t.spaces()
	return all.used().Name, err
}

// useSpace makes the space of a name the one in use, unless documents are stored
// in another one: then it returns a [*retrieve.SpaceError].
func (t *tx) useSpace(name string) error {
	if name == "" {
		return errors.New("its embedding space has no name")
	}
	all, err := t.spaces()
	if err != nil || all.used().Name == name {
		return err
	}
	if err := t.lock("library"); err != nil { // no document is added meanwhile
		return err
	}
	stored, err := t.spaceOfDocuments()
	if err != nil {
		return err
	}
	if stored != "" && stored != name {
		return &retrieve.SpaceError{Stored: stored, Wanted: name}
	}
	if all, err = t.spaces(); err != nil {
		return err
	}
	all.use(*all.add(name))
	return t.setSpaces(all)
}

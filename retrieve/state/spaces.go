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
func (s *spaces) add(name string) space {
	if known := s.named(name); known.Number != 0 {
		return known
	}
	s.Last++
	s.All = append(s.All, space{Number: s.Last, Name: name})
	return s.All[len(s.All)-1]
}

// use makes a space the only one.
func (s *spaces) use(only space) { s.Used, s.All = only.Number, []space{only} }

func (t *tx) spaces() (all spaces, err error) {
	text, err := t.setting(settingSpaces)
	if err != nil || text == "" {
		return all, err
	}
	return all, json.Unmarshal([]byte(text), &all)
}

func (t *tx) setSpaces(all spaces) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return t.set(settingSpaces, string(text))
}

// hasDimensions checks the dimensions of new vectors of a space, and notes those
// of the first.
func (t *tx) hasDimensions(s space, dimensions int) error {
	if s.Dimensions == 0 {
		if err := t.lock("spaces"); err != nil {
			return err
		}
		all, err := t.spaces() // another process may have been first
		if err != nil {
			return err
		}
		for i := range all.All {
			if all.All[i].Number != s.Number {
				continue
			}
			if s = all.All[i]; s.Dimensions == 0 {
				all.All[i].Dimensions = dimensions
				return t.setSpaces(all)
			}
		}
	}
	if s.Dimensions != dimensions {
		return fmt.Errorf("its vectors have %d dimensions, and those stored for %s have %d", dimensions, s.Name, s.Dimensions)
	}
	return nil
}

// Space is the embedding space in use; empty while no document is stored.
func (s *Store) Space(ctx context.Context) (name string, err error) {
	err = s.view(ctx, func(t *tx) error {
		name, err = t.spaceOfDocuments()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the embedding space: %w", err)
	}
	return name, nil
}

func (t *tx) spaceOfDocuments() (string, error) {
	var any bool
	if err := t.row(`SELECT EXISTS (SELECT 1 FROM ibid.documents)`).Scan(&any); err != nil || !any {
		return "", err
	}
	all, err := t.spaces()
	return all.used().Name, err
}

// errNoSpace reports that no document is stored and another space, or none, is set.
var errNoSpace = errors.New("the embedding space has not been set")

// SetSpace chooses the space of a library without documents. If documents are
// stored in another one, it returns a [*retrieve.SpaceError].
func (s *Store) SetSpace(ctx context.Context, name string) error {
	if name == "" {
		return errors.New("setting the embedding space: its name is empty")
	}
	err := s.update(ctx, func(t *tx) error {
		if err := errors.Join(t.lock("library"), t.lock("spaces")); err != nil {
			return err
		}
		all, err := t.spaces()
		if err != nil || all.used().Name == name {
			return err
		}
		if stored, err := t.spaceOfDocuments(); err != nil {
			return err
		} else if stored != "" {
			return &retrieve.SpaceError{Stored: stored, Wanted: name}
		}
		all.use(all.add(name))
		return t.setSpaces(all)
	})
	if err != nil {
		return fmt.Errorf("setting the embedding space: %w", err)
	}
	return nil
}

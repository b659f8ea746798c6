package state

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"errors"
	"fmt"
)

// Names of settings.
const (
	settingLibrary = "library" // the random name of the library
	settingSpaces  = "spaces"  // see space
)

// fillLayout initialises an empty layout.
func (t *tx) fillLayout() { t.set(settingLibrary, crand.Text()) }

// set stores a setting and its copy.
func (t *tx) set(name, value string) {
	for _, table := range []string{"settings", "settings_copy"} {
		t.insert(table, "name, value", "ON CONFLICT (name) DO UPDATE SET value = excluded.value, sum = excluded.sum", []any{name, value})
	}
}

// setting returns a setting, from the copy if the original is damaged, or "" if it is not set.
func (t *tx) setting(name string) string { return t.readSetting("settings", "?", name) }

func (t *tx) readSetting(table, parameter, name string) (value string) {
	var damage error
	for _, table := range []string{table, table + "_copy"} {
		err := catch(func() {
			check(scanChecked(t.row(`SELECT name, value, sum FROM ibid.`+table+` WHERE name = `+parameter, name), &name, &value))
		})
		if err == nil {
			return value
		}
		if isDamage(err) {
			damage = fmt.Errorf("%w: the setting %q of %s: %w", ErrDamaged, name, t.s.place, err)
		} else if !errors.Is(err, sql.ErrNoRows) {
			check(err)
		}
	}
	check(damage)
	return ""
}

// Library returns the random name that the library got when it was created. A search index stores
// it, so that it does not follow another library.
func (s *Store) Library(ctx context.Context) (name string, err error) {
	err = s.view(ctx, func(t *tx) { name = t.setting(settingLibrary) })
	return name, err
}

// Note returns the note that [Store.SetNote] stored under a name, or "".
func (s *Store) Note(ctx context.Context, name string) (note string, err error) {
	err = s.view(ctx, func(t *tx) { note = t.setting("note " + name) })
	return note, err
}

// SetNote stores a note under a name.
func (s *Store) SetNote(ctx context.Context, name, note string) error {
	return s.update(ctx, func(t *tx) { t.set("note "+name, note) })
}

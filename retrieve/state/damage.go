package state

import (
	"cmp"
	"context"
	"slices"

	"ibid/retrieve"
)

// A Damage is stored data that is lost or has changed.
type Damage struct {
	// Document is the id of the damaged document, which is hidden until it is ingested again; empty
	// if the damage concerns no single document or the id cannot be read.
	Document string `json:"document,omitempty"`
	Reason   string `json:"reason"`
}

// A damagedError reports that a document is damaged.
type damagedError struct {
	number int64
	id     string // empty if it is unknown
	reason string
}

func (d *damagedError) Error() string { return d.reason + ": ingest it again" }
func (d *damagedError) Unwrap() error { return errRow }

// addLost records damage that is in no table, for as long as the store is open.
func (s *Store) addLost(found ...Damage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range found {
		known := func(x Damage) bool { return x == d || d.Document != "" && d.Document == x.Document }
		if !slices.ContainsFunc(s.lost, known) {
			s.lost = append(s.lost, d)
		}
	}
}

// SetAside hides the documents that [Verify] found damaged, so that the next sync stores them
// again. Their rows remain until then. It does nothing to a library that is open for reading.
func (s *Store) SetAside(ctx context.Context, all []Damage) error {
	if s.readOnly {
		return nil
	}
	return inTransaction(ctx, s.update, func(t *tx) {
		var changes []change
		for _, d := range all {
			if d.Document == "" {
				continue
			}
			for _, number := range column[int64](t, `SELECT number FROM ibid.documents WHERE key = ?
				UNION SELECT document FROM ibid.changes WHERE id = ? AND deleted = 0`, retrieve.DigestOf(d.Document), d.Document) {
				changes = append(changes, t.setAside(&damagedError{number, d.Document, d.Reason})...)
			}
		}
		t.recordChanges(changes...)
	}, "setting damaged documents aside")
}

// setAside hides damaged documents, so that the next sync stores them again. Their rows remain
// until then.
func (s *Store) setAside(ctx context.Context, found ...*damagedError) error {
	if s.readOnly {
		for _, d := range found {
			s.addLost(Damage{Document: d.id, Reason: d.reason})
		}
		return nil
	}
	return inTransaction(ctx, s.update, func(t *tx) {
		var changes []change
		for _, d := range found {
			changes = append(changes, t.setAside(d)...)
		}
		t.recordChanges(changes...)
	}, "setting a damaged document aside")
}

// setAside adds a row for a damaged document to the table of damage and returns the change, or nil
// if the document is already set aside.
func (t *tx) setAside(d *damagedError) []change {
	if value[bool](t, `SELECT EXISTS (SELECT 1 FROM ibid.damage WHERE document = ?)`, d.number) {
		return nil
	}
	id := cmp.Or(d.id, t.nameOf(d.number))
	if id == "" && !value[bool](t, `SELECT EXISTS (SELECT 1 FROM ibid.documents WHERE number = ?)
		OR EXISTS (SELECT 1 FROM ibid.texts WHERE number = ?)`, d.number, d.number) {
		return []change{{document: d.number, deleted: d.number != 0}} // no document has the number
	}
	t.insert("damage", "document, id, reason", "ON CONFLICT (document) DO NOTHING", []any{d.number, id, d.reason})
	return []change{{document: d.number, id: id}}
}

// nameOf returns the id of a document from the first of its rows that is undamaged, or "".
func (t *tx) nameOf(number int64) string {
	if d, err := scanDocument(t.row(`SELECT `+documentColumns+` FROM ibid.documents WHERE number = ?`, number)); err == nil {
		return d.ID
	}
	c, err := scanChange(t.row(`SELECT `+changeColumns+`, sum FROM ibid.changes WHERE document = ?`, number))
	if err != nil {
		return ""
	}
	return c.id
}

// ListDamage lists the known damage of documents that have not been stored again, by document.
// [Verify] finds unknown damage.
func (s *Store) ListDamage(ctx context.Context) (all []Damage, err error) {
	s.mu.Lock()
	all = slices.Clone(s.lost)
	s.mu.Unlock()
	err = s.view(ctx, func(t *tx) {
		whole, damaged := rowsOf(t, func(r scanner) (d Damage, err error) {
			var document int64
			err = scanChecked(r, &document, &d.Document, &d.Reason)
			return d, err
		}, `SELECT document, id, reason, sum FROM ibid.damage`)
		all = append(append(all, whole...), damaged...)
	})
	slices.SortFunc(all, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Document, b.Document), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(all), err
}

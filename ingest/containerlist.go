package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ibid/ingest/archive"
	"ibid/ingest/office"
)

// A containerList is the content of a container, and why the rest is missing.
type containerList struct {
	Entries []archive.Entry
	Failed  string
}

// listContainer writes a [containerList] to the document's text.
func listContainer(doc *Document, data []byte) error {
	var q containerRequest
	if err := json.Unmarshal([]byte(doc.Path), &q); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	readable := func(name string) bool { _, ok := formatOf(name); return ok }
	var list containerList
	var err error
	if list.Entries, err = archive.List(q.Name, data, q.limits(), holders(), readable); err != nil {
		list.Failed = err.Error()
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return err
	}
	doc.Text = string(encoded)
	return nil
}

// listed is the listing of a container as it was then.
type listed struct {
	size     int64
	modified time.Time
	digest   string // of its bytes
	containerList
}

// list lists a container, unless it is unchanged since the last time. The digest
// is that of the listed bytes.
func (s *folderSync) list(ctx context.Context, f file) (list containerList, digest string, err error) {
	m, key, begun := &s.remembered, [2]string{s.root.Name, f.path}, time.Now()
	m.mu.Lock()
	l, ok := m.lists[key]
	m.mu.Unlock()
	if ok && l.size == f.size && l.modified.Equal(f.modified) && !s.Force {
		return l.containerList, l.digest, nil
	}
	data, err := s.bytes(ctx, f)
	if err != nil {
		return list, "", err
	}
	if archive.Is(f.path) || mayHold(f.path, data) {
		sum := sha256.Sum256(data)
		digest = hex.EncodeToString(sum[:])
		doc, err := s.reader.ask(ctx, "archive", containerRequest{Name: f.path}, data)
		if err != nil {
			return list, "", err
		}
		if err := json.Unmarshal([]byte(doc.Text), &list); err != nil {
			return list, "", fmt.Errorf("its reader gave no valid reply: %w", err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lists, key)
	// A new one may change and keep its time.
	if list.Failed == "" && !f.modified.IsZero() && begun.Sub(f.modified) >= settled {
		if m.lists == nil {
			m.lists = make(map[[2]string]listed)
		}
		m.lists[key] = listed{f.size, f.modified, digest, list}
	}
	return list, digest, nil
}

// mayHold reports whether a document may have files in it. It is quick, and errs
// towards true.
func mayHold(name string, data []byte) bool {
	switch f, _ := formatOf(name); f.name {
	case "outlook":
		return true
	case "pdf": // the entry of an attached file, or a stream of objects that may have one
		return bytes.Contains(data, []byte("/EF")) || bytes.Contains(data, []byte("/ObjStm"))
	case "mail", "mbox": // attachments have names, or are mails themselves
		lower := bytes.ToLower(data)
		return slices.ContainsFunc([]string{"name=", "name*", "attachment", "message/"}, func(sign string) bool {
			return bytes.Contains(lower, []byte(sign))
		})
	}
	return office.HoldsFiles(data)
}

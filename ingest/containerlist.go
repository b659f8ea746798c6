package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ibid/ingest/archive"
	"ibid/ingest/compound"
)

// A containerList is the content of a container, and why the rest is missing.
type containerList struct {
	Entries []archive.Entry
	Failed  string
}

// A keptList is the listing that a [Lister] keeps, as JSON.
type keptList struct {
	Digest string // of the container's bytes
	Look   string // see [Reader.listVersion]
	List   containerList
}

// wayOfLooking is increased when listings change.
const wayOfLooking = 1

// listVersion identifies everything except the bytes that a listing depends on.
func (r *Reader) listVersion() string {
	sum := sha256.New()
	fmt.Fprintln(sum, wayOfLooking, r.maxBytes(), archive.DefaultLimits())
	for _, f := range formats() {
		fmt.Fprintln(sum, f.name, f.endings)
	}
	return hex.EncodeToString(sum.Sum(nil))
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
	if list.Entries, err = archive.List(q.Name, data, q.limits(), mails(), readable); err != nil {
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
	keptList
}

// list lists a container, unless it is unchanged since the last time. The digest
// is that of the listed bytes.
func (s *folderSync) list(ctx context.Context, f file) (list containerList, digest string, err error) {
	m, key, begun := &s.remembered, [2]string{s.root.Name, f.path}, time.Now()
	m.mu.Lock()
	l, ok := m.lists[key]
	m.mu.Unlock()
	if ok && l.size == f.size && l.modified.Equal(f.modified) && !s.Force {
		return l.List, l.Digest, nil
	}
	data, err := s.bytes(ctx, f)
	if err != nil {
		return list, "", err
	}
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:])
	if !isMail(f.path) || mayHold(data) {
		if list, err = s.kept(ctx, f, digest, data); err != nil {
			return list, "", err
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
		m.lists[key] = listed{f.size, f.modified, keptList{Digest: digest, List: list}}
	}
	return list, digest, nil
}

// kept returns the listing of a container with this digest from the sink, or
// lists it and has the sink keep the listing.
func (s *folderSync) kept(ctx context.Context, f file, digest string, data []byte) (list containerList, err error) {
	id, look := s.root.Name+"/"+f.path, s.reader.listVersion()
	lister, keeps := s.Sink.(Lister)
	if keeps && !s.Force {
		encoded, err := lister.Listing(ctx, id)
		if err != nil {
			return list, err
		}
		var l keptList
		if json.Unmarshal(encoded, &l) == nil && l.Digest == digest && l.Look == look {
			return l.List, nil
		}
	}
	doc, err := s.reader.ask(ctx, "archive", containerRequest{Name: f.path}, data)
	if err != nil {
		return list, err
	}
	if err := json.Unmarshal([]byte(doc.Text), &list); err != nil {
		return list, fmt.Errorf("its reader gave no valid reply: %w", err)
	}
	if !keeps || list.Failed != "" {
		return list, nil
	}
	encoded, err := json.Marshal(keptList{digest, look, list})
	if err != nil {
		return list, err
	}
	return list, lister.KeepListing(ctx, s.root, id, encoded)
}

// forgetListings removes the listings of containers that are gone from the sink.
func (s *folderSync) forgetListings(ctx context.Context, gone func(path string) bool) error {
	lister, keeps := s.Sink.(Lister)
	if !keeps {
		return nil
	}
	ids, err := lister.Listings(ctx, s.root)
	if err != nil {
		return err
	}
	for _, id := range ids {
		p := strings.TrimPrefix(id, s.root.Name+"/")
		if _, stored := s.known[p]; gone(p) && !stored && !s.belowBroken(p) {
			if err := s.Sink.Delete(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetLists drops the listings of containers that are no longer in a folder.
func (m *stamps) forgetLists(root string, gone func(path string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.lists {
		if key[0] == root && gone(key[1]) {
			delete(m.lists, key)
		}
	}
}

// mayHold reports whether a mail may have attachments: these have names, or are
// mails themselves.
func mayHold(data []byte) bool {
	lower := bytes.ToLower(data)
	if bytes.HasPrefix(data, []byte(compound.Magic)) {
		return true
	}
	for _, sign := range []string{"name=", "name*", "attachment", "message/"} {
		if bytes.Contains(lower, []byte(sign)) {
			return true
		}
	}
	return false
}

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
)

// containerList is what is in a container, and what is wrong with the rest.
type containerList struct {
	Entries []archive.Entry
	Failed  string
}

// A keptList is what a [Lister] keeps of a container, as JSON.
type keptList struct {
	Digest string // of the container's bytes
	Look   string // see [Reader.way]
	List   containerList
}

// wayOfLooking is counted up when something else is found in a container than
// before, or is said of it in other words.
const wayOfLooking = 1

// way names all that a list depends on beside the bytes: how is looked for what.
func (r *Reader) way() string {
	sum := sha256.New()
	fmt.Fprintln(sum, wayOfLooking, r.maxBytes(), archive.DefaultLimits())
	for _, f := range formats() {
		fmt.Fprintln(sum, f.name, f.endings)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// listContainer puts a [containerList] into the document's text.
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

// listed is what was found in a container when it was looked into.
type listed struct {
	size     int64
	modified time.Time
	keptList
}

// list looks into a container, unless it has not been touched since that was
// done before. The digest is that of the bytes that were looked into.
func (run *syncRun) list(ctx context.Context, f file) (list containerList, digest string, err error) {
	m, key, begun := &run.remembered, [2]string{run.root.Name, f.path}, time.Now()
	m.mu.Lock()
	l, ok := m.lists[key]
	m.mu.Unlock()
	if ok && l.size == f.size && l.modified.Equal(f.modified) && !run.Force {
		return l.List, l.Digest, nil
	}
	data, err := run.bytes(ctx, f)
	if err != nil {
		return list, "", err
	}
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:])
	if !isMail(f.path) || mayHold(data) {
		if list, err = run.kept(ctx, f, digest, data); err != nil {
			return list, "", err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lists, key)
	// One that is fresh can change without a sign.
	if list.Failed == "" && !f.modified.IsZero() && begun.Sub(f.modified) >= settled {
		if m.lists == nil {
			m.lists = make(map[[2]string]listed)
		}
		m.lists[key] = listed{f.size, f.modified, keptList{Digest: digest, List: list}}
	}
	return list, digest, nil
}

// kept gives what is in a container of a digest: what the sink has of it, or
// what a look into it finds, which the sink then keeps.
func (run *syncRun) kept(ctx context.Context, f file, digest string, data []byte) (list containerList, err error) {
	id, look := run.root.Name+"/"+f.path, run.reader.way()
	lister, keeps := run.Sink.(Lister)
	if keeps && !run.Force {
		encoded, err := lister.Listing(ctx, id)
		if err != nil {
			return list, err
		}
		var l keptList
		// What cannot be understood is made anew.
		if json.Unmarshal(encoded, &l) == nil && l.Digest == digest && l.Look == look {
			return l.List, nil
		}
	}
	doc, err := run.reader.ask(ctx, "archive", containerRequest{Name: f.path}, data)
	if err != nil {
		return list, err
	}
	if err := json.Unmarshal([]byte(doc.Text), &list); err != nil {
		return list, fmt.Errorf("its reader gave no proper reply: %w", err)
	}
	if !keeps || list.Failed != "" {
		return list, nil
	}
	encoded, err := json.Marshal(keptList{digest, look, list})
	if err != nil {
		return list, err
	}
	return list, lister.KeepListing(ctx, run.root, id, encoded)
}

// forgetListings has the sink forget what was in containers that are gone.
func (run *syncRun) forgetListings(ctx context.Context, gone func(path string) bool) error {
	lister, keeps := run.Sink.(Lister)
	if !keeps {
		return nil
	}
	ids, err := lister.Listings(ctx, run.root)
	if err != nil {
		return err
	}
	for _, id := range ids {
		p := strings.TrimPrefix(id, run.root.Name+"/")
		if _, stored := run.known[p]; gone(p) && !stored && !run.belowBroken(p) {
			if err := run.Sink.Delete(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetLists drops what is known of containers that are no longer in a folder.
func (m *stamps) forgetLists(root string, gone func(path string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.lists {
		if key[0] == root && gone(key[1]) {
			delete(m.lists, key)
		}
	}
}

// mayHold reports whether there may be files in a mail: they have names, or are
// mails themselves.
func mayHold(data []byte) bool {
	lower := bytes.ToLower(data)
	for _, sign := range []string{"name=", "name*", "attachment", "message/"} {
		if bytes.Contains(lower, []byte(sign)) {
			return true
		}
	}
	return false
}

package weaviate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"

	"ibid/retrieve"
)

// What is done to records is done by one process at a time, and to feedback.
const (
	recordsTask  = "records"
	feedbackTask = "feedback"
)

const (
	recordKind    = "record"
	eventsKind    = "events"
	sumsKind      = "sums"
	feedbackKind  = "feedback"
	recordsName   = "records"
	feedbackGroup = "feedback"
)

// A record is what is kept of one beside its events.
type record struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	By        string   `json:"by"`
	Shared    bool     `json:"shared"`
	State     string   `json:"state"`
	Started   int64    `json:"started"` // this and the others in microseconds
	Ended     int64    `json:"ended"`
	Expires   int64    `json:"expires"`
	Spec      []byte   `json:"spec"`
	Documents []string `json:"documents"`
	Size      int64    `json:"size"` // of the spec and the events
}

// A events is what happened, as it is stored.
type events struct {
	Events []byte `json:"events"`
}

// A sums is how much there is of records: so that not all of them are looked at
// whenever one is kept. It is a hint: what it says too much is put right when
// room is made.
type sums struct {
	Count   int   `json:"count"`
	Size    int64 `json:"size"`
	Expires int64 `json:"expires"` // the first of all
}

func recordsBy(caller string) string { return "records by " + caller }

func (r record) item() item {
	of := make([]string, 0, 2*len(r.Documents))
	roots := make(map[string]bool)
	for _, d := range r.Documents {
		of = append(of, documentID(d))
		if root, _, ok := strings.Cut(d, "/"); ok && !roots[root] {
			roots[root] = true
			of = append(of, rootLabel(root))
		}
	}
	return item{kind: recordKind, name: r.ID, group: recordsBy(r.By), at: r.Started, of: of, data: r}
}

func rootLabel(root string) string { return idOf("documents of root", root) }

func (r record) record() retrieve.Record {
	return retrieve.Record{
		ID: r.ID, Kind: r.Kind, By: r.By, Shared: r.Shared, State: r.State, Spec: r.Spec, Documents: r.Documents,
		Started: time.UnixMicro(r.Started), Ended: time.UnixMicro(r.Ended), Expires: time.UnixMicro(r.Expires),
	}
}

// single does something under a name while no other process does.
func (l ledger) single(ctx context.Context, name string, do func(context.Context) error) error {
	return l.exclusive(ctx, task{Name: name}, func(ctx context.Context, _ *hold) (bool, error) { return false, do(ctx) })
}

func (l ledger) KeepRecord(ctx context.Context, r retrieve.Record) error {
	err := l.single(ctx, recordsTask, func(ctx context.Context) error { return l.keepRecord(ctx, r) })
	if err != nil {
		return fmt.Errorf("keep the record of the run %s: %w", r.ID, err)
	}
	return nil
}

func (l ledger) keepRecord(ctx context.Context, r retrieve.Record) error {
	own := record{
		ID: r.ID, Kind: r.Kind, By: r.By, Shared: r.Shared, State: r.State, Spec: r.Spec,
		Started: r.Started.UnixMicro(), Ended: r.Ended.UnixMicro(), Expires: r.Expires.UnixMicro(),
		Documents: slices.Compact(slices.Sorted(slices.Values(r.Documents))), Size: int64(len(r.Spec) + len(r.Events)),
	}
	if err := l.haveDocuments(ctx, own.Documents); err != nil {
		return err
	}
	var s sums
	if _, err := l.wire.item(ctx, sumsKind, recordsName, &s); err != nil {
		return err
	}
	var old record
	if there, err := l.wire.item(ctx, recordKind, r.ID, &old); err != nil {
		return err
	} else if there {
		s.Count, s.Size = s.Count-1, s.Size-old.Size
	}
	if s.Count >= l.limits.Records || s.Size+own.Size > l.limits.RecordBytes || s.Expires > 0 && s.Expires <= own.Ended {
		var err error
		if s, err = l.makeRecordRoom(ctx, own); err != nil {
			return err
		}
	}
	s.Count, s.Size = s.Count+1, s.Size+own.Size
	if s.Expires == 0 || own.Expires < s.Expires {
		s.Expires = own.Expires
	}
	err := l.wire.putItem(ctx, item{kind: eventsKind, name: r.ID, data: events{r.Events}}, own.item(), item{kind: sumsKind, name: recordsName, data: s})
	if err != nil {
		return err
	}
	// One that was deleted meanwhile looked for its records before this one was
	// there, or is seen not to be there now.
	if err := l.haveDocuments(ctx, own.Documents); err != nil {
		return errors.Join(err, l.forgetRecords(ctx, r.ID))
	}
	return nil
}

// haveDocuments is [retrieve.ErrNotFound] where one of them is not there.
func (l ledger) haveDocuments(ctx context.Context, documents []string) error {
	ids := make([]string, len(documents))
	for i, d := range documents {
		ids[i] = documentID(d)
	}
	if len(ids) == 0 {
		return nil
	}
	there, err := l.documents(ctx, ids)
	if err == nil && len(there) < len(ids) {
		err = retrieve.ErrNotFound
	}
	return err
}

// makeRecordRoom forgets the records that have expired and the oldest that are
// too many beside a new one, and says what there is then.
func (l ledger) makeRecordRoom(ctx context.Context, beside record) (s sums, err error) {
	rows, err := l.wire.search(ctx, query(l.wire.at.items(), equal("kind", recordKind), maxResults, "data"))
	if err != nil {
		return s, err
	}
	all, err := readItems[record](rows, recordsName)
	if err != nil {
		return s, err
	}
	all = slices.DeleteFunc(all, func(r record) bool { return r.ID == beside.ID })
	slices.SortFunc(all, func(a, b record) int { return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID)) })
	var gone []string
	all = slices.DeleteFunc(all, func(r record) bool {
		if r.Expires <= beside.Ended {
			gone = append(gone, r.ID)
			return true
		}
		s.Count, s.Size = s.Count+1, s.Size+r.Size
		return false
	})
	for len(all) > 0 && (s.Count >= l.limits.Records || s.Size+beside.Size > l.limits.RecordBytes) {
		gone = append(gone, all[0].ID)
		s.Count, s.Size = s.Count-1, s.Size-all[0].Size
		all = all[1:]
	}
	for _, r := range all {
		if s.Expires == 0 || r.Expires < s.Expires {
			s.Expires = r.Expires
		}
	}
	return s, l.forgetRecords(ctx, gone...)
}

// forgetRecords removes records; they are gone with the first item of each.
func (l ledger) forgetRecords(ctx context.Context, ids ...string) error {
	if err := l.wire.removeItems(ctx, recordKind, ids...); err != nil {
		return err
	}
	return l.wire.removeItems(ctx, eventsKind, ids...)
}

// forgetRecordsOf removes the records that have one of the labels: those of
// documents, in which their words stand, and of roots.
func (e *Engine) forgetRecordsOf(ctx context.Context, labels ...string) error {
	const some = 500
	for len(labels) > 0 {
		n := min(some, len(labels))
		rows, err := e.wire.search(ctx, query(e.wire.at.items(), anyOf("of", labels[:n]), maxResults, "data"))
		if err != nil {
			return err
		}
		all, err := readItems[record](rows, recordsName)
		if err != nil {
			return err
		}
		ids := make([]string, len(all))
		for i, r := range all {
			ids[i] = r.ID
		}
		if err := (ledger{e}).forgetRecords(ctx, ids...); err != nil {
			return err
		}
		labels = labels[n:]
	}
	return nil
}

// renameInRecords has the records of a document go with it under its new id.
func (e *Engine) renameInRecords(ctx context.Context, from, to string) error {
	rows, err := e.wire.search(ctx, query(e.wire.at.items(), equal("of", documentID(from)), maxResults, "data"))
	if err != nil || len(rows) == 0 {
		return err
	}
	all, err := readItems[record](rows, recordsName)
	if err != nil {
		return err
	}
	items := make([]item, len(all))
	for i, r := range all {
		r.Documents = append(slices.DeleteFunc(slices.Clone(r.Documents), func(d string) bool { return d == from }), to)
		slices.Sort(r.Documents)
		r.Documents = slices.Compact(r.Documents)
		items[i] = r.item()
	}
	return e.wire.putItem(ctx, items...)
}

func (l ledger) Record(ctx context.Context, id string) (retrieve.Record, error) {
	out, err := l.readRecord(ctx, id)
	if err != nil {
		return retrieve.Record{}, fmt.Errorf("look for the record of the run %q: %w", id, err)
	}
	return out, nil
}

func (l ledger) readRecord(ctx context.Context, id string) (out retrieve.Record, err error) {
	var r record
	var e events
	there, err := l.wire.item(ctx, recordKind, id, &r)
	if err == nil && there && time.UnixMicro(r.Expires).After(time.Now()) {
		if there, err = l.wire.item(ctx, eventsKind, id, &e); err == nil && there {
			out = r.record()
			out.Events = e.Events
			return out, nil
		}
	}
	if err == nil {
		err = retrieve.ErrNotFound
	}
	return out, err
}

func (l ledger) Records(ctx context.Context, by string, after retrieve.Record, n int) (list []retrieve.Record, err error) {
	most := int64(1 << 52)
	if after.ID != "" {
		most = after.Started.UnixMicro()
	}
	now := time.Now()
	for look := n + 16; ; look *= 4 {
		found, err := newest[record](ctx, l.wire, recordsBy(by), most, look)
		if err != nil {
			return nil, fmt.Errorf("list the records: %w", err)
		}
		list = nil
		for _, r := range found {
			before := after.ID == "" || r.Started < after.Started.UnixMicro() || r.Started == after.Started.UnixMicro() && r.ID < after.ID
			if before && time.UnixMicro(r.Expires).After(now) {
				out := r.record()
				out.Documents = nil
				list = append(list, out)
			}
		}
		// Of those that began at once some may be missing at the end.
		if full := len(found) == min(look, maxResults); full && look < maxResults && (len(list) <= n || list[n-1].Started.Equal(list[len(list)-1].Started)) {
			continue
		}
		slices.SortFunc(list, func(a, b retrieve.Record) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID, a.ID)) })
		return list[:min(n, len(list))], nil
	}
}

func (l ledger) ForgetRecord(ctx context.Context, id string) error {
	err := l.single(ctx, recordsTask, func(ctx context.Context) error { return l.forgetRecords(ctx, id) })
	if err != nil {
		return fmt.Errorf("forget the record of the run %s: %w", id, err)
	}
	return nil
}

// An opinion is feedback as it is stored.
type opinion struct {
	Key      int64  `json:"key"`
	Run      string `json:"run"`
	By       string `json:"by"`
	Citation int    `json:"citation"`
	Rating   int    `json:"rating"`
	Comment  string `json:"comment"`
	At       int64  `json:"at"`
}

func (o opinion) name() string { return fmt.Sprintf("%s\x00%s\x00%d", o.Run, o.By, o.Citation) }

// A tally counts opinions: the keys that were given, and how many there are.
type tally struct {
	Last  int64 `json:"last"`
	Count int   `json:"count"`
}

func (l ledger) KeepFeedback(ctx context.Context, f retrieve.Feedback) error {
	err := l.single(ctx, feedbackTask, func(ctx context.Context) error {
		var t tally
		if _, err := l.wire.item(ctx, sumsKind, feedbackGroup, &t); err != nil {
			return err
		}
		t.Last++
		own := opinion{Key: t.Last, Run: f.Run, By: f.By, Citation: f.Citation, Rating: f.Rating, Comment: f.Comment, At: f.At.UnixMicro()}
		var old opinion
		there, err := l.wire.item(ctx, feedbackKind, own.name(), &old)
		if err != nil {
			return err
		}
		if !there {
			t.Count++
		}
		if t.Count > l.limits.Feedback {
			gone, err := l.oldestFeedback(ctx, t.Count-l.limits.Feedback, own.name())
			if err != nil {
				return err
			}
			if err := l.wire.removeItems(ctx, feedbackKind, gone...); err != nil {
				return err
			}
			t.Count = l.limits.Feedback
		}
		return l.wire.putItem(ctx, item{kind: feedbackKind, name: own.name(), group: feedbackGroup, at: own.Key, data: own}, item{kind: sumsKind, name: feedbackGroup, data: t})
	})
	if err != nil {
		return fmt.Errorf("keep what is thought of the run %s: %w", f.Run, err)
	}
	return nil
}

// oldestFeedback names the oldest opinions, so many of them, but not one that is
// about to be new.
func (l ledger) oldestFeedback(ctx context.Context, n int, but string) (names []string, err error) {
	q := query(l.wire.at.items(), equal("group", feedbackGroup), min(n+1, maxResults), "data")
	q.SortBy = []*pb.SortBy{{Path: []string{"at"}, Ascending: true}}
	rows, err := l.wire.search(ctx, q)
	if err != nil {
		return nil, err
	}
	all, err := readItems[opinion](rows, feedbackGroup)
	for _, o := range all {
		if name := o.name(); name != but && len(names) < n {
			names = append(names, name)
		}
	}
	return names, err
}

func (l ledger) Feedback(ctx context.Context, after int64, n int) (list []retrieve.Feedback, err error) {
	most := int64(1 << 52)
	if after > 0 {
		most = after - 1
	}
	found, err := newest[opinion](ctx, l.wire, feedbackGroup, most, n)
	if err != nil {
		return nil, fmt.Errorf("list what is thought of runs: %w", err)
	}
	for _, o := range found {
		list = append(list, retrieve.Feedback{Key: o.Key, Run: o.Run, By: o.By, Citation: o.Citation, Rating: o.Rating, Comment: o.Comment, At: time.UnixMicro(o.At)})
	}
	return list, nil
}

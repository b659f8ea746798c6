package weaviate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Weaviate has no transactions, so what has to hold over several objects is kept
// by a journal: one object for each process that writes, which only that process
// changes. It says how many changes the process has made durable, so that the
// revision is the sum over all, and what the process is at work on. From that
// follow three things: one document is changed by one process at a time, what a
// crash left is known by name, and its chunks can be left out of counts.

// What times there are. Clocks of servers may differ by less than sweepAge.
const (
	// beatEvery is how often a process at work says that it is alive.
	beatEvery = 3 * time.Second
	// sayTime is how long storing the journal may take.
	sayTime = 10 * time.Second
	// beatLost is after how long without being able to say so it changes nothing
	// any more.
	beatLost = 15 * time.Second
	// beatDead is for how long another one's journal stays as it is before it is
	// waited for no longer.
	beatDead = 25 * time.Second
	// sweepAge is how old a journal's last word is before what its process left
	// is swept up; and how often a process that writes looks for that.
	sweepAge = 10 * time.Minute
)

// A task is something that a process is at work on, under a name that one
// process has at a time.
type task struct {
	ID string `json:"id"`
	// Name is the document's id, or another name between brackets.
	Name string `json:"name"`
	// Generation is the one being written; From and FromGeneration are the
	// document that takes a new name with it.
	Generation     string `json:"generation,omitempty"`
	From           string `json:"from,omitempty"`
	FromGeneration string `json:"from_generation,omitempty"`
	// Ticket is the place in the queue of those that want the name at once, after
	// Lamport's bakery; 0 while none has been drawn.
	Ticket int `json:"ticket,omitempty"`
	// Doubt says that the process gave up, at the time Since by its clock, without
	// knowing what it left.
	Doubt bool      `json:"doubt,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Freeze says that nobody is to change documents meanwhile; Waiting, that the
	// task has changed nothing yet and goes on when that is over.
	Freeze  bool `json:"freeze,omitempty"`
	Waiting bool `json:"waiting,omitempty"`
	// within says that the task is part of another one, which is waited for.
	within bool
}

// frozen says whether the task changes documents.
func (t task) frozen() bool { return isDocument(t) || t.Name == rootsTask }

// A page is a journal as it is stored.
type page struct {
	ID      string    `json:"id"`
	Changes int64     `json:"changes"`
	Beat    time.Time `json:"beat"`
	Beats   int64     `json:"beats"`
	// Closed says that the process ended well: another one goes on with the page.
	Closed bool   `json:"closed,omitempty"`
	Tasks  []task `json:"tasks,omitempty"`
	// Absorbed are journals whose changes are counted in this one, and which count
	// no longer.
	Absorbed []string `json:"absorbed,omitempty"`
}

// A journal is the page of this process, made at its first change.
type journal struct {
	wire *wire

	mu      sync.Mutex // held while the page is stored
	page    page
	open    bool
	said    time.Time // when the page was stored last
	beating int
	stop    context.CancelFunc
	beats   sync.WaitGroup
}

const pageKind = "journal"

// pages gives the journals of all processes.
func (w *wire) pages(ctx context.Context) ([]page, error) {
	rows, err := w.search(ctx, query(w.at.items(), equal("kind", pageKind), maxResults, "data"))
	if err != nil {
		return nil, err
	}
	pages, err := readItems[page](rows, "journal")
	if err != nil {
		return nil, err
	}
	absorbed := make(map[string]bool)
	for _, p := range pages {
		for _, id := range p.Absorbed {
			absorbed[id] = true
		}
	}
	return slices.DeleteFunc(pages, func(p page) bool { return absorbed[p.ID] }), nil
}

// A state is what the journals say at a moment.
type state struct {
	revision int64
	tasks    []task
	last     time.Time // when something was said in any of them last
}

func stateOf(pages []page) (s state) {
	for _, p := range pages {
		s.revision += p.Changes
		if p.Beat.After(s.last) {
			s.last = p.Beat
		}
		s.tasks = append(s.tasks, p.Tasks...)
	}
	return s
}

// state reads the journals.
func (w *wire) state(ctx context.Context) (state, error) {
	pages, err := w.pages(ctx)
	return stateOf(pages), err
}

func (w *wire) putPage(ctx context.Context, p page) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return w.put(ctx, object(w.at.items(), idOf(pageKind, p.ID), map[string]any{"kind": pageKind, "data": string(data)}))
}

// say stores the page as change leaves it. Where that fails the page stays what
// it was, though what is stored may be either.
func (j *journal) say(ctx context.Context, change func(*page)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sayLocked(ctx, change)
}

func (j *journal) sayLocked(ctx context.Context, change func(*page)) error {
	next := j.page
	next.Tasks = slices.Clone(next.Tasks)
	change(&next)
	next.Beat, next.Beats = time.Now().UTC(), next.Beats+1
	start := time.Now()
	// What was cancelled on its way could arrive behind what follows it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTime)
	defer cancel()
	if err := j.wire.putPage(ctx, next); err != nil {
		if ctx.Err() != nil {
			err = j.wire.away(context.WithoutCancel(ctx), err)
		}
		return fmt.Errorf("write the journal: %w", err)
	}
	j.page, j.said = next, start
	return nil
}

func (j *journal) id() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.page.ID
}

func (j *journal) tasks() []task {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.page.Tasks)
}

// A hold is a task that this process may now do.
type hold struct {
	j    *journal
	task task
	// alone says that nobody else wanted the name meanwhile.
	alone bool
	// others are the tasks of all processes when the name was had.
	others []task
}

// begin waits until the name is this process's alone, and says so in the
// journal. The caller ends the hold.
func (j *journal) begin(ctx context.Context, t task) (*hold, error) {
	if err := j.start(ctx); err != nil {
		return nil, err
	}
	t.ID = uuid.NewString()
	if err := j.say(ctx, func(p *page) { p.Tasks = append(p.Tasks, t) }); err != nil {
		return nil, err // the page's next word takes back what this one may have said
	}
	j.beat()
	h := &hold{j: j, task: t, alone: true}
	if err := h.wait(ctx); err != nil {
		h.leave(ctx, false)
		return nil, err
	}
	return h, nil
}

// wait is Lamport's bakery over the journals. One that sees nobody else at the
// name has it. Those that see each other draw tickets, and the lowest comes
// first. (L. Lamport, "A New Solution of Dijkstra's Concurrent Programming
// Problem", 1974.)
func (h *hold) wait(ctx context.Context) error {
	return h.watch(ctx, func(all, live []task) (bool, error) {
		h.others = all
		for _, o := range all {
			h.alone = h.alone && o.Name != h.task.Name
		}
		// Either who freezes sees that this is at work, or this sees the other.
		if h.task.frozen() && !h.task.within {
			freeze := slices.ContainsFunc(live, func(o task) bool { return o.Freeze })
			if freeze != h.task.Waiting {
				h.task.Waiting = freeze
				return false, h.note(ctx)
			}
			if freeze {
				return false, nil
			}
		}
		highest, free := 0, true
		for _, o := range live {
			if o.Name != h.task.Name {
				continue
			}
			highest = max(highest, o.Ticket)
			// One without a ticket saw nobody, or is about to draw one.
			if o.Ticket == 0 || h.task.Ticket == 0 || cmp.Or(cmp.Compare(o.Ticket, h.task.Ticket), cmp.Compare(o.ID, h.task.ID)) < 0 {
				free = false
			}
		}
		if !free && h.task.Ticket == 0 {
			h.task.Ticket = highest + 1
			return false, h.note(ctx)
		}
		return free, nil
	})
}

// quiet waits until nobody else is at work on what matches.
func (h *hold) quiet(ctx context.Context, matches func(task) bool) error {
	return h.watch(ctx, func(_, live []task) (bool, error) {
		return !slices.ContainsFunc(live, func(o task) bool { return !o.Waiting && matches(o) }), nil
	})
}

// watch reads the journals until done says so. All are the tasks of everyone
// else, live those of whom something was heard lately and who have not given up.
func (h *hold) watch(ctx context.Context, done func(all, live []task) (bool, error)) error {
	type word struct {
		beats int64
		since time.Time
	}
	last := make(map[string]word)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		pages, err := h.j.wire.pages(ctx)
		if err != nil {
			return err
		}
		var all, live []task
		for _, p := range pages {
			// By this process's own clock: that of the other one may be wrong.
			w, known := last[p.ID]
			if !known || w.beats != p.Beats {
				w = word{p.Beats, time.Now()}
				last[p.ID] = w
			}
			dead := time.Since(w.since) > beatDead
			if p.ID == h.j.id() {
				// One that could not be taken back yet may still be stored.
				p.Tasks = h.j.tasks()
			}
			for _, o := range p.Tasks {
				if o.ID == h.task.ID {
					continue
				}
				if all = append(all, o); !dead && !o.Doubt {
					live = append(live, o)
				}
			}
		}
		if ok, err := done(all, live); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// note writes the task as it is now.
func (h *hold) note(ctx context.Context) error {
	return h.j.say(ctx, func(p *page) {
		for i, o := range p.Tasks {
			if o.ID == h.task.ID {
				p.Tasks[i] = h.task
			}
		}
	})
}

// sure gives a context for the step that changes what counts, and no longer than
// nobody takes the process for dead: one that could not say lately that it is
// alive must change nothing any more.
func (h *hold) sure(ctx context.Context) (context.Context, context.CancelFunc, error) {
	h.j.mu.Lock()
	defer h.j.mu.Unlock()
	silent := time.Since(h.j.said)
	if silent > beatLost {
		return nil, nil, fmt.Errorf("%w: for %s nothing could be written to the journal: do this again", ErrAway, silent.Round(time.Second))
	}
	// Not cancelled on its way either, to arrive behind what follows.
	limit, cancel := context.WithDeadline(context.WithoutCancel(ctx), h.j.said.Add(beatDead-beatEvery))
	return limit, cancel, nil
}

// end says that the task is done, and whether anything changed.
func (h *hold) end(ctx context.Context, changed bool) error {
	err := h.j.say(ctx, func(p *page) {
		p.Tasks = slices.DeleteFunc(p.Tasks, func(o task) bool { return o.ID == h.task.ID })
		if changed {
			p.Changes++
		}
	})
	h.j.rest()
	return err
}

// leave ends a task that failed. Where something may be left of it, it stays in
// the journal as a doubt, to be swept up; a change is counted since there may be
// one.
func (h *hold) leave(ctx context.Context, doubt bool) {
	h.j.mu.Lock()
	for i, o := range h.j.page.Tasks {
		if o.ID == h.task.ID {
			h.j.page.Tasks = slices.Delete(slices.Clone(h.j.page.Tasks), i, i+1)
			if o.Doubt, o.Since = doubt, time.Now().UTC(); doubt {
				h.j.page.Tasks = append(h.j.page.Tasks, o)
			}
			break
		}
	}
	if doubt {
		h.j.page.Changes++
	}
	// The next word tells it, if this one does not come through.
	_ = h.j.sayLocked(ctx, func(*page) {})
	h.j.mu.Unlock()
	h.j.rest()
}

// beat keeps saying that the process is alive while it is at work.
func (j *journal) beat() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.beating++; j.beating > 1 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	j.stop = stop
	j.beats.Go(func() {
		tick := time.NewTicker(beatEvery / 2)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			j.mu.Lock()
			if time.Since(j.said) > beatEvery && ctx.Err() == nil {
				_ = j.sayLocked(ctx, func(*page) {}) // hold.sure tells when it did not
			}
			j.mu.Unlock()
		}
	})
}

func (j *journal) rest() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.beating--; j.beating == 0 {
		j.stop()
	}
}

// start finds a page for this process before its first change, and again when
// it was silent for so long that another one may have taken its own.
func (j *journal) start(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open && (j.beating > 0 || time.Since(j.said) < sweepAge/2) {
		return nil
	}
	j.page, j.open = page{ID: uuid.NewString()}, false
	if err := j.sayLocked(ctx, func(*page) {}); err != nil {
		return err
	}
	j.open = true
	return nil
}

// close leaves the page to whoever comes next.
func (j *journal) close(ctx context.Context) error {
	err := j.say1(ctx)
	j.mu.Lock()
	if j.stop != nil {
		j.stop()
	}
	j.mu.Unlock()
	j.beats.Wait()
	return err
}

func (j *journal) say1(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return nil
	}
	return j.sayLocked(ctx, func(p *page) { p.Closed = len(p.Tasks) == 0 })
}

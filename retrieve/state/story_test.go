package state

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/state/statetest"
)

// TestStories runs the stories in testdata/stories over both dialects, each with two
// handles on an empty library, a and b, as two processes have them. A command is the name
// of a handle, one of [commands], and words and options; see [datatest.Stories]. A new
// case is a new command or file.
func TestStories(t *testing.T) {
	for dialect, address := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return filepath.Join(t.TempDir(), "data") },
		"PostgreSQL": func(t *testing.T) string { return statetest.Schema(t) },
	} {
		t.Run(dialect, func(t *testing.T) {
			datatest.Stories(t, func(t *testing.T) func([]string) string {
				at := address(t)
				s := &story{T: t, start: now(), handles: map[string]*Store{"a": openTest(t, at), "b": openTest(t, at)},
					records: make(map[string]retrieve.Record), documents: make(map[string]*ingest.Document), tokens: make(map[[32]byte]string)}
				return s.run
			})
		})
	}
}

// A story is the state that its commands share. Its times are durations since its start.
type story struct {
	*testing.T
	start     time.Time
	handles   map[string]*Store
	records   map[string]retrieve.Record // documents as last stored
	tokens    map[[32]byte]string        // of sessions, by digest
	ring      int64                      // the last revision of the keyring
	revision  int64                      // and of the library
	era       int64
	asked     int                         // the last requested number
	documents map[string]*ingest.Document // records as last stored
	follower  follower
}

// A call is a command.
type call struct {
	*story
	db      *Store
	ctx     context.Context
	words   []string
	options map[string]string
}

var isOption = regexp.MustCompile(`^[a-z]+=`)

func (s *story) run(args []string) string {
	c := call{s, s.handles[args[0]], s.Context(), nil, make(map[string]string)}
	for _, arg := range args[2:] {
		if isOption.MatchString(arg) {
			key, value, _ := strings.Cut(arg, "=")
			c.options[key] = value
		} else {
			c.words = append(c.words, arg)
		}
	}
	command := commands[args[1]]
	if command == nil || c.db == nil {
		s.Fatalf("unknown command %q", args)
	}
	out, err := command(c)
	if err != nil {
		out = "error: " + reason(err)
	}
	if out == "" {
		return ""
	}
	return out + "\n"
}

// reason names an error, with the same words for both dialects.
func reason(err error) string {
	if held := (*retrieve.HeldError)(nil); errors.As(err, &held) {
		return fmt.Sprintf("held by %q%s", held.Worker, describeClaim(held.Left))
	}
	if space := (*retrieve.SpaceError)(nil); errors.As(err, &space) {
		return "the space is " + space.Stored
	}
	for _, known := range []error{retrieve.ErrNotFound, retrieve.ErrKeyName, retrieve.ErrTaken, errRow} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}

// describeClaim describes how much of the longest claim is left.
func describeClaim(left time.Duration) string {
	switch {
	case left < 0 || left > retrieve.MaxClaim:
		return " for " + left.String()
	case left == 0:
		return ""
	case left > retrieve.MaxClaim*3/4:
		return " for long"
	}
	return " for a while"
}

// word returns a word, or a text with the number of bytes in the option size.
func (c call) word(i int) string {
	if size := c.number(c.options["size"]); i == len(c.words) && size > 0 {
		return strings.Repeat("long", size/4+1)[:size]
	}
	return c.words[i]
}

// number parses a number, or returns 0 for a missing one.
func (c call) number(text string) int {
	n, err := strconv.Atoi(cmp.Or(text, "0"))
	must(c, err)
	return n
}

func (c call) duration(text string) time.Duration {
	d, err := time.ParseDuration(cmp.Or(text, "0s"))
	must(c, err)
	return d
}

// at returns the time that an option sets, relative to the last time or to another
// option's.
func (c call) at(since time.Time, option string, otherwise time.Time) time.Time {
	if text := c.options[option]; text != "" {
		return since.Add(c.duration(text))
	}
	return otherwise
}

// list returns the parts of an option.
func (c call) list(option string) []string {
	if c.options[option] == "" {
		return nil
	}
	return strings.Split(c.options[option], ",")
}

// shown returns a short text unchanged, and the length and checksum of a long one.
func shown(text []byte) string {
	if len(text) > 60 {
		return fmt.Sprintf("%d bytes, %08x", len(text), crc32.ChecksumIEEE(text))
	}
	return strconv.Quote(string(text))
}

func (c call) record() retrieve.Record {
	r := record(c.words[0], c.at(c.start, "at", c.start), 0)
	r.Ended, r.Expires = c.at(c.start, "ended", r.Ended), c.at(c.start, "expires", r.Expires)
	if size := c.number(c.options["size"]); size > 0 {
		r.Events = []byte(strings.Repeat("\x00\xff", size/2))
	}
	r.Kind, r.State = cmp.Or(c.options["kind"], r.Kind), cmp.Or(c.options["state"], r.State)
	r.By, r.Documents, r.Shared = c.options["by"], c.list("documents"), c.options["shared"] != ""
	return r
}

func (c call) ringOf() (string, error) {
	ring := ringOf(c.T, c.handles["a"], c.handles["b"])
	lines := []string{map[bool]string{true: "changed", false: "the same"}[ring.Revision > c.ring]}
	if c.ring = ring.Revision; ring.Damaged > 0 {
		lines = append(lines, fmt.Sprint(ring.Damaged, " damaged"))
	}
	for _, k := range ring.Keys {
		line := fmt.Sprintf("key %s %q %x %q", k.ID, k.Name, k.Digest[:4], k.Collections)
		for what, is := range map[string]bool{"write": k.Write, "relay": k.Relay, "settings": k.Settings, "public": k.Public} {
			if is {
				line += " " + what
			}
		}
		for i, t := range []time.Time{k.Created, k.Expires, k.Used} {
			if !t.IsZero() {
				line += []string{" created ", " expires ", " used "}[i] + t.Sub(keyTime(0)).String()
			}
		}
		lines = append(lines, line)
	}
	var sessions []string
	for _, x := range ring.Sessions {
		sessions = append(sessions, fmt.Sprintf("session %s of %s, %s", c.tokens[x.Digest], x.Key, x.Started.Sub(keyTime(0))))
	}
	return strings.Join(append(lines, slices.Sorted(slices.Values(sessions))...), "\n"), nil
}

// document returns a document of the words after its id, with the options as metadata.
func (c call) document() (*ingest.Document, []ingest.Chunk) {
	root, path, _ := strings.Cut(c.words[0], "/")
	doc, chunks := newDocument(root, path, c.words[1:]...)
	for key, value := range c.options {
		if doc.Meta[key] = value; key == "title" {
			doc.Title = value
			delete(doc.Meta, key)
		}
	}
	c.documents[doc.ID] = doc
	return doc, chunks
}

func (c call) filter() (f retrieve.Filter) {
	for key, field := range map[string]*string{"collection": &f.Collection, "root": &f.Root, "document": &f.Document,
		"path": &f.PathPrefix, "format": &f.Format, "author": &f.Author, "language": (*string)(&f.Language), "since": (*string)(&f.Since),
		"until": (*string)(&f.Until)} {
		*field = c.options[key]
	}
	f.Tags, f.Collections = c.list("tags"), c.list("collections")
	return f
}

var commands = map[string]func(c call) (string, error){
	// Jobs: begin ID [kind=] [at=] [spec=] [size=] [worker=] [left=], jobs ID …, job ID,
	// keep ID WORKER KEY TEXT, reply ID KEY, claim ID WORKER TIME, release ID WORKER, end ID.
	"begin": func(c call) (string, error) {
		spec := c.options["spec"]
		if c.options["size"] != "" {
			spec = c.word(1)
		}
		return "", c.db.Ledger().Begin(c.ctx, retrieve.Job{ID: c.words[0], Kind: c.options["kind"], Started: c.at(c.start, "at", c.start),
			Spec: []byte(spec), Worker: c.options["worker"], Left: c.duration(c.options["left"])})
	},
	"jobs": func(c call) (string, error) { return strings.Join(jobs(c.T, c.db, c.words...), " "), nil },
	"job": func(c call) (string, error) {
		j, err := c.db.Ledger().Job(c.ctx, c.words[0])
		return fmt.Sprintf("%s %q %s, held by %q%s", j.ID, j.Kind, shown(j.Spec), j.Worker, describeClaim(j.Left)), err
	},
	"keep": func(c call) (string, error) {
		return "", c.db.Ledger().KeepReply(c.ctx, c.words[0], c.words[1], c.words[2], []byte(c.word(3)))
	},
	"reply": func(c call) (string, error) {
		reply, ok, err := c.db.Ledger().Reply(c.ctx, c.words[0], c.words[1])
		if !ok && len(reply) == 0 {
			return "none", err
		}
		return shown(reply), err
	},
	"claim": func(c call) (string, error) {
		return "", c.db.Ledger().Claim(c.ctx, c.words[0], c.words[1], c.duration(c.words[2]))
	},
	"release": func(c call) (string, error) { return "", c.db.Ledger().Release(c.ctx, c.words[0], c.words[1]) },
	"end":     func(c call) (string, error) { return "", c.db.Ledger().End(c.ctx, c.words[0]) },
	"sql": func(c call) (string, error) { // QUERY [ARGUMENT] …, without output
		var args []any
		for _, arg := range c.words[1:] {
			args = append(args, arg)
		}
		execute(c, c.db, strings.ReplaceAll(c.words[0], "BYTES", c.db.dialect.types.Replace("BYTES")), args...)
		return "", nil
	},
	"count":   func(c call) (string, error) { return fmt.Sprint(count(c, c.db, c.words[0])), nil },
	"mend":    func(c call) (string, error) { return "", c.db.update(c.ctx, (*tx).mendLedger) },
	"old":     func(c call) (string, error) { return "", c.db.update(c.ctx, (*tx).forgetOld) },
	"replies": func(c call) (string, error) { return "", c.db.update(c.ctx, (*tx).deleteReplies) },

	// Records: record ID [at=] [ended=] [expires=] [by=] [documents=] [shared=] [size=], show ID,
	// records N [by=], forget ID, quoting DOCUMENT …, finish JOB,… RECORD ….
	"record": func(c call) (string, error) {
		r := c.record()
		err := c.db.Ledger().KeepRecord(c.ctx, r)
		if err == nil {
			c.records[r.ID] = r
		}
		return "", err
	},
	"show": func(c call) (string, error) {
		r, err := c.db.Ledger().Record(c.ctx, c.words[0])
		if diff := gocmp.Diff(c.records[r.ID], r); err == nil && diff != "" {
			c.Errorf("record %s (-want +got):\n%s", r.ID, diff)
		}
		return "as it was stored", err
	},
	"records": func(c call) (string, error) {
		return strings.Join(recordIDs(c.T, c.db, c.options["by"], c.number(c.words[0])), " "), nil
	},
	"forget":  func(c call) (string, error) { return "", c.db.Ledger().ForgetRecord(c.ctx, c.words[0]) },
	"quoting": func(c call) (string, error) { return "", c.db.Ledger().ForgetQuoting(c.ctx, c.words[0]) },
	"quoted": func(c call) (string, error) {
		r, err := c.db.Ledger().Record(c.ctx, c.words[0])
		return strings.Join(r.Documents, " "), err
	},
	"finish": func(c call) (string, error) {
		var all []retrieve.Record
		for _, id := range c.words {
			id, documents, _ := strings.Cut(id, ":")
			r := record(id, c.start, len(all))
			r.Documents = strings.Fields(documents)
			all = append(all, r)
		}
		stored, err := c.db.Ledger().Finish(c.ctx, all, c.list("jobs"))
		return fmt.Sprint(stored), err
	},

	// Keys: key ID NAME [secret=] [collections=] [write=] [created=] [expires=] [used=], revoke ID,
	// used ID TIME, signin KEY TOKEN TIME, signout TOKEN, ring.
	"key": func(c call) (string, error) {
		first := keyTime(0)
		return "", c.db.Keyring().Add(c.ctx, retrieve.Key{ID: c.words[0], Name: c.words[1], Digest: sha256.Sum256([]byte(c.options["secret"])),
			Collections: c.list("collections"), Write: c.options["write"] != "", Created: c.at(first, "created", first),
			Expires: c.at(first, "expires", time.Time{}), Used: c.at(first, "used", time.Time{})})
	},
	"revoke": func(c call) (string, error) { return "", c.db.Keyring().Revoke(c.ctx, c.words[0]) },
	"used": func(c call) (string, error) {
		return "", c.db.Keyring().RecordUse(c.ctx, c.words[0], keyTime(c.duration(c.words[1])))
	},
	"signin": func(c call) (string, error) {
		x := session(c.words[0], c.words[1], keyTime(c.duration(c.words[2])))
		c.tokens[x.Digest] = c.words[1]
		return "", c.db.Keyring().BeginSession(c.ctx, x)
	},
	"signout": func(c call) (string, error) {
		return "", c.db.Keyring().EndSession(c.ctx, sha256.Sum256([]byte(c.words[0])))
	},
	"ring": func(c call) (string, error) { return c.ringOf() },

	// Documents: root PATH [COLLECTION], roots, put ID TEXT … [title=] [KEY=VALUE], rename FROM ID TEXT …,
	// delete ID, drop ROOT, collection FROM TO, list [FILTER], same.
	"root": func(c call) (string, error) {
		root, err := c.db.AddRoot(c.ctx, c.words[0], strings.Join(c.words[1:], ""))
		return fmt.Sprintf("%s %q in %s", root.Name, root.Path, root.Collection), err
	},
	"roots": func(c call) (string, error) {
		roots, err := c.db.Roots(c.ctx)
		var all []string
		for _, r := range roots {
			all = append(all, r.Name+" in "+r.Collection)
		}
		return strings.Join(all, ", "), err
	},
	"put": func(c call) (string, error) {
		doc, chunks := c.document()
		return "", c.db.Replace(c.ctx, testSpace, doc, chunks, vectorsFor(doc, chunks))
	},
	"rename": func(c call) (string, error) {
		from := c.words[0]
		c.words = c.words[1:]
		stored := c.documents[from]
		doc, _ := c.document()
		err := c.db.Rename(c.ctx, from, doc)
		if stored != nil { // it keeps its text and sections
			doc.Text, doc.Sections = stored.Text, stored.Sections
		}
		return "", err
	},
	"delete": func(c call) (string, error) { return "", c.db.Delete(c.ctx, c.words[0]) },
	"drop": func(c call) (string, error) {
		n, err := c.db.DeleteRoot(c.ctx, c.words[0], false)
		return fmt.Sprint(n, " documents"), err
	},
	"collection": func(c call) (string, error) { return "", c.db.RenameCollection(c.ctx, c.words[0], c.words[1]) },
	"list": func(c call) (string, error) {
		list, err := c.db.Documents(c.ctx, c.filter())
		must(c, err)
		chunks := 0
		var ids []string
		for _, d := range list {
			ids, chunks = append(ids, d.ID), chunks+d.Chunks
		}
		if holds, err := c.db.Holds(c.ctx, c.filter()); holds != (len(ids) > 0) || err != nil {
			c.Errorf("Holds(%+v) = %v, %v", c.filter(), holds, err)
		}
		if d, n, err := c.db.Count(c.ctx, c.filter()); d != len(ids) || n != chunks || err != nil {
			c.Errorf("Count(%+v) = %d, %d, %v", c.filter(), d, n, err)
		}
		return strings.Join(ids, " "), nil
	},
	"space": func(c call) (string, error) {
		space, err := c.db.Space(c.ctx)
		return strconv.Quote(space), err
	},
	"document": func(c call) (string, error) {
		doc, err := c.db.Document(c.ctx, c.words[0])
		if err != nil {
			return "", err
		}
		datatest.Same(c, doc.ID, c.documents[doc.ID], doc)
		return "as it was stored", nil
	},
	// number reports whether the number equals, exceeds or is less than the last requested
	// one.
	"number": func(c call) (string, error) {
		n, before := count(c, c.db, `SELECT number FROM ibid.documents WHERE id = ?`, c.words[0]), c.asked
		c.asked = n
		return []string{"lower", "the same", "higher"}[1+cmp.Compare(n, before)], nil
	},
	"chunks": func(c call) (string, error) {
		chunks, _, err := c.db.DocumentChunks(c.ctx, c.words[0])
		return fmt.Sprint(len(chunks)), err
	},
	"hits": func(c call) (string, error) { // by the last requested number and revision
		hits := []retrieve.Hit{{Document: int64(c.asked), Generation: c.revision, Ordinal: 1}, {}}
		found, err := c.db.Chunks(c.ctx, hits)
		out := fmt.Sprint(len(found), " found")
		for _, x := range found {
			out += ": " + x.Text
		}
		return out, err
	},
	// revision describes the distance from the last revision, and whether the era is the same.
	"revision": func(c call) (string, error) {
		revision, era, err := c.db.Revision(c.ctx)
		out := fmt.Sprintf("%+d, another era: %t", revision-c.revision, era != c.era)
		c.revision, c.era = revision, era
		return out, err
	},
	"lose": func(c call) (string, error) { // the last N changes
		left := c.revision - int64(c.number(c.words[0]))
		execute(c, c.db, `DELETE FROM ibid.changes WHERE revision > ?`, left)
		if c.db.dialect.name == "postgres" {
			execute(c, c.db, `UPDATE ibid.clock SET revision = ?`, left)
		}
		return "", nil
	},

	// Spaces: fill SPACE DIMENSIONS N, embedded SPACE, switch SPACE, space, vector SPACE TEXT DIMENSIONS,
	// covered SPACE [since], which lists documents, with chunks and dimensions, since the last revision.
	"fill": func(c call) (string, error) {
		return fmt.Sprint(fillSpace(c, c.db, c.words[0], c.number(c.words[1]), c.number(c.words[2])), " texts"), nil
	},
	"embedded": func(c call) (string, error) {
		done, total, err := c.db.CountEmbedded(c.ctx, c.words[0])
		return fmt.Sprintf("%d of %d", done, total), err
	},
	"switch": func(c call) (string, error) {
		ok, err := c.db.SwitchSpace(c.ctx, c.words[0])
		return fmt.Sprint(ok), err
	},
	"vector": func(c call) (string, error) {
		digest, vector := retrieve.Digest{1}, make([]float32, c.number(c.words[2])) // of no chunk
		vector[0] = 1
		for list, err := range c.db.Unembedded(c.ctx, "none", 100) {
			must(c, err)
			for _, l := range list {
				if c.words[1] != "" && strings.Contains(l.Text, c.words[1]) {
					digest = l.Digest
				}
			}
		}
		return "", c.db.AddVectors(c.ctx, c.words[0], []retrieve.Digest{digest}, [][]float32{vector})
	},
	"covered": func(c call) (string, error) {
		var since int64
		if len(c.words) > 1 {
			since = c.revision
		}
		var all []string
		for change, err := range c.db.Changes(c.ctx, c.words[0], since) {
			if err != nil {
				return "", err
			}
			if !change.Deleted && change.Document != 0 {
				all = append(all, fmt.Sprintf("%s %dx%d", change.Info.ID, len(change.Chunks), len(change.Chunks[0].Vector)))
			}
		}
		return strings.Join(slices.Sorted(slices.Values(all)), ", "), nil
	},
	"same": func(c call) (string, error) { c.follower.same(c, c.db); return "", nil },
}

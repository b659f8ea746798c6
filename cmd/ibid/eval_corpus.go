package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"ibid/cmd/ibid/eval"
	"ibid/ingest"
	"ibid/retrieve"
)

// corpusConfig selects the documents to ask a set's questions about. The store has no
// environment variables, so that a store set for serving is not used for measuring.
type corpusConfig struct {
	Data  string   `help:"Data directory kept for the next run; unset: a temporary one." placeholder:"DIR" noenv:"" group:"Store"`
	Store storeURL `help:"Database to use instead of a data directory: ${stores}." placeholder:"URL" noenv:"" group:"Store"`

	StorePasswordFile string `help:"File with the password of --store; else $IBID_STORE_PASSWORD." placeholder:"FILE" noenv:"" group:"Store"`
	embedConfig
}

// AfterApply moves a data directory given as --store to Data.
func (c *corpusConfig) AfterApply() error { return c.Store.replaceDir(&c.Data) }

type corpus struct {
	*openedLibrary
	stored    map[string]string // document ids in the store, by name in the set
	filter    retrieve.Filter
	temporary string // folder to remove at the end, if any
}

func (c *corpus) close() (err error) {
	if c.openedLibrary != nil {
		err = c.openedLibrary.close()
	}
	if c.temporary != "" {
		err = errors.Join(err, os.RemoveAll(c.temporary))
	}
	return err
}

// open opens and fills the data directory, or a temporary one. On failure, it closes the directory.
func (c corpusConfig) open(ctx context.Context, s surroundings, o retrieve.Options, fill func(*corpus) error) (_ *corpus, err error) {
	out := &corpus{stored: make(map[string]string)}
	store := storeConfig{embedConfig: c.embedConfig,
		placeConfig: placeConfig{Data: c.Data, Store: c.Store, StorePasswordFile: c.StorePasswordFile}}
	if c.Data == "" && !store.remote() {
		out.temporary, err = os.MkdirTemp("", "ibid-eval-")
		store.Data = out.temporary
	}
	if err == nil {
		out.openedLibrary, err = openLibrary(ctx, store, o, s)
	}
	if err == nil {
		err = fill(out)
	}
	if err != nil {
		return nil, errors.Join(err, out.close())
	}
	return out, nil
}

// readFolder reads a folder and restricts the searches to it. unread lists the files that could
// not be read, with the reason.
func (c *corpus) readFolder(ctx context.Context, folder string, sync syncConfig, read readConfig) (unread []string, err error) {
	paths, err := crawlConfig{}.checkFolders([]string{folder}, "")
	if err != nil {
		return nil, err
	}
	c.reader = read.reader(c.openedLibrary.place.Data)
	err = sync.folder(c.openedLibrary, paths[0], crawlConfig{}).sync(ctx, func(ch ingest.Change, _ bool) error {
		c.filter.Root = ch.Root
		if ch.Action == ingest.Failed || ch.Action == ingest.Skipped {
			unread = append(unread, fmt.Sprintf("%s: %s", ch.Document, ch.Reason))
			fmt.Fprintf(c.stderr, "ibid: %s", changeLine(ch))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if any, err := c.Holds(ctx, c.filter); err != nil || any && c.filter.Root != "" {
		return unread, err
	}
	return nil, fmt.Errorf("%s has no document that can be read", folder)
}

// fill makes a root of the store contain exactly the entries, each as a document whose path is
// its id, with the usual chunks.
func (c *corpus) fill(ctx context.Context, folder string, entries []eval.Entry) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return fmt.Errorf("finding the folder %s: %w", folder, err)
	}
	root, err := c.AddRoot(ctx, path, "")
	if err != nil {
		return fmt.Errorf("adding the corpus of %s: %w", folder, err)
	}
	known, err := c.StoredDocuments(ctx, root)
	if err != nil {
		return err
	}
	c.filter.Root = root.Name
	var reader ingest.Reader
	defer reader.Close()
	var mu sync.Mutex // guards c.stored
	store := func(ctx context.Context, e eval.Entry) error {
		doc := entryDocument(ctx, &reader, root, e)
		if doc == nil {
			return nil
		}
		mu.Lock()
		c.stored[e.ID] = doc.ID
		mu.Unlock()
		if known[e.ID].Digest == doc.Digest {
			return nil
		}
		if err := c.Replace(ctx, doc, ingest.Split(doc)); err != nil {
			return fmt.Errorf("storing the document %s: %w", e.ID, err)
		}
		return nil
	}
	rest := entries
	for len(rest) > 0 && len(c.stored) == 0 { // the first document alone decides the embedding space
		if err := store(ctx, rest[0]); err != nil {
			return err
		}
		rest = rest[1:]
	}
	err = askAll(ctx, c.surroundings, "documents", len(rest), runtime.GOMAXPROCS(0),
		func(ctx context.Context, i int) error { return store(ctx, rest[i]) })
	if err != nil {
		return err
	}
	for p := range known {
		if _, in := c.stored[p]; in {
			continue
		}
		if err := c.Delete(ctx, root.Name+"/"+p); err != nil {
			return fmt.Errorf("removing the document %s: %w", p, err)
		}
	}
	if empty := len(entries) - len(c.stored); empty > 0 {
		c.printMessage("%d documents of the corpus have no text, so no search can find them", empty)
	}
	return nil
}

// entryDocument returns the document for a text file with this entry, or nil if the entry has
// no text.
func entryDocument(ctx context.Context, r *ingest.Reader, root ingest.Root, e eval.Entry) *ingest.Document {
	text := e.Text
	if strings.TrimSpace(text) == "" {
		text = e.Title
	}
	// The line feed prevents the first word from being read as the magic bytes of another
	// format.
	doc, err := r.Read(ctx, "entry.txt", []byte("\n"+text))
	if err != nil {
		return nil
	}
	sum := sha256.Sum256([]byte(e.Title + "\n" + text))
	doc.ID, doc.Root, doc.Path, doc.Digest = root.Name+"/"+e.ID, root.Name, e.ID, hex.EncodeToString(sum[:])
	doc.Title = strings.Join(strings.Fields(e.Title), " ")
	return doc
}

// match sets c.stored for the documents of questions: by id, by path in their root, or by that
// path without extension. Unknown names in the file are counted on standard error; ambiguous
// ones are an error.
func (c *corpus) match(ctx context.Context, questions []eval.Question, file string) error {
	docs, err := c.Documents(ctx, c.filter)
	if err != nil {
		return err
	}
	var named, missing []string
	for _, q := range questions {
		named = append(named, q.Documents...)
	}
	slices.Sort(named)
	for _, name := range slices.Compact(named) {
		var found []string
		for _, d := range docs {
			if d.ID == name || d.Path == name || strings.TrimSuffix(d.Path, path.Ext(d.Path)) == name {
				found = append(found, d.ID)
			}
		}
		switch len(found) {
		case 0:
			missing = append(missing, name)
		case 1:
			c.stored[name] = found[0]
		default:
			return fmt.Errorf("%s names %q, which matches several documents (%s): use a document id", file, name, strings.Join(found, ", "))
		}
	}
	if len(missing) > 0 {
		c.printMessage("%s names %s not in the store, such as %s; they count as missed", file, countOf(len(missing), "document"), missing[0])
	}
	return nil
}

// grades returns the judgements by ids of the store. Documents not in the store keep their id
// after a NUL, which no search returns.
func (c *corpus) grades(judged eval.Grades) eval.Grades {
	out := make(eval.Grades, len(judged))
	for id, grade := range judged {
		out[cmp.Or(c.stored[id], "\x00"+id)] = grade
	}
	return out
}

// deepest is the largest number of chunks for a ranking.
const deepest = 1600

// rank returns the first documents of a search, each at the rank of its best chunk, including
// duplicates. It searches as users do, with [retrieve.DefaultCandidates] chunks. If these give
// fewer than deepestRank documents and miss a relevant one, it appends the results of deeper
// searches.
func (c *corpus) rank(ctx context.Context, x *retrieve.Index, question string, grades eval.Grades) ([]string, error) {
	var ranking []string
	missing := grades.Relevant()
	var warning error
	seen := make(map[string]bool)
	for k := retrieve.DefaultCandidates; ; k *= 2 {
		passages, err := x.Search(ctx, retrieve.Query{
			Text: question, K: k, Apart: true, Filter: c.filter, Warn: func(err error) {
				if other := (*retrieve.LanguageError)(nil); !errors.As(err, &other) {
					warning = err
				}
			},
		})
		if err := cmp.Or(err, warning); err != nil {
			return nil, err
		}
		for _, p := range passages {
			if !seen[p.Document] {
				seen[p.Document] = true
				ranking = append(ranking, p.Document)
				if grades[p.Document] > 0 {
					missing--
				}
			}
		}
		if missing == 0 || len(ranking) >= deepestRank || len(passages) < k || k >= deepest {
			return ranking, nil
		}
	}
}

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

// corpusConfig says which documents a set's questions are asked about. The store
// has no environment variables: one that is set for serving is not for measuring.
type corpusConfig struct {
	Data  string   `help:"Data directory kept for the next run; unset: a temporary one." placeholder:"DIR" noenv:"" group:"Store"`
	Store storeURL `help:"Database to use instead of a data directory: ${stores}." placeholder:"URL" noenv:"" group:"Store"`

	StorePasswordFile string `help:"File with the password of --store; else $IBID_STORE_PASSWORD." placeholder:"FILE" noenv:"" group:"Store"`
	embedConfig
	rerankConfig
}

// AfterApply has a data directory named by --store.
func (c *corpusConfig) AfterApply() error { return c.Store.replaceDir(&c.Data) }

func (c corpusConfig) place() placeConfig {
	return placeConfig{Data: c.Data, Store: c.Store, StorePasswordFile: c.StorePasswordFile}
}

type corpus struct {
	*openedLibrary
	documents int
	stored    map[string]string // document id in the store, by the name in the set
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

// open stores the documents of the set in a folder, and restricts the searches to it.
func (c corpusConfig) open(ctx context.Context, dir string, set *eval.Set, s surroundings) (*corpus, error) {
	return c.openStore(ctx, s, func(out *corpus) error { return out.fill(ctx, dir, set.Documents, s) })
}

// openStore opens the data directory, or a temporary one, and prepares it. If
// that fails, it is closed.
func (c corpusConfig) openStore(ctx context.Context, s surroundings, prepare func(*corpus) error) (*corpus, error) {
	out := &corpus{stored: make(map[string]string)}
	store := storeConfig{placeConfig: c.place(), embedConfig: c.embedConfig}
	options, err := c.index(c.endpointConfig, s.getenv)
	if err == nil && c.Data == "" && !store.remote() {
		out.temporary, err = os.MkdirTemp("", "ibid-eval-")
		store.Data = out.temporary
	}
	if err == nil {
		out.openedLibrary, err = openLibrary(ctx, store, options, s)
	}
	if err == nil {
		err = prepare(out)
	}
	if err != nil {
		return nil, errors.Join(err, out.close())
	}
	return out, nil
}

// openFolder reads a folder into the data directory, or a temporary one, and
// restricts the searches to it. Unread are the files that could not be read, with
// the reason.
func (c corpusConfig) openFolder(
	ctx context.Context, folder string, sync syncConfig, read readConfig, s surroundings,
) (_ *corpus, unread []string, err error) {
	paths, err := crawlConfig{}.checkFolders([]string{folder}, c.Data)
	if err != nil {
		return nil, nil, err
	}
	out, err := c.openStore(ctx, s, func(out *corpus) (err error) {
		out.openedLibrary.reader = read.reader(cmp.Or(out.temporary, c.Data))
		err = sync.folder(out.openedLibrary, paths[0], crawlConfig{}).sync(ctx, func(ch ingest.Change, _ bool) error {
			if ch.Action == ingest.Failed || ch.Action == ingest.Skipped {
				unread = append(unread, fmt.Sprintf("%s: %s", ch.Document, ch.Reason))
				fmt.Fprintf(s.stderr, "ibid: %s", changeLine(ch))
			}
			return nil
		})
		if err != nil {
			return err
		}
		roots, err := out.Roots(ctx)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Path == paths[0] }); i >= 0 {
			out.filter.Root = roots[i].Name
		}
		if any, err := out.Holds(ctx, out.filter); err != nil || any {
			return err
		}
		return fmt.Errorf("%s has no document that can be read", folder)
	})
	return out, unread, err
}

// fill makes a root of the store hold exactly the entries, each as a document whose path is
// its id, chunked like any other.
func (c *corpus) fill(ctx context.Context, folder string, entries []eval.Entry, s surroundings) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return fmt.Errorf("finding the folder %s: %w", folder, err)
	}
	root, err := c.AddRoot(ctx, path, "")
	if err != nil {
		return fmt.Errorf("adding the corpus of %s: %w", folder, err)
	}
	known, err := c.Known(ctx, root)
	if err != nil {
		return err
	}
	c.documents, c.filter.Root = len(entries), root.Name
	var reader ingest.Reader
	defer reader.Close()
	var mu sync.Mutex // guards known, c.stored and empty
	empty := 0
	err = askAll(ctx, s, "documents", len(entries), runtime.GOMAXPROCS(0), func(ctx context.Context, i int) error {
		e := entries[i]
		doc := entryDocument(ctx, &reader, root, e)
		mu.Lock()
		if doc == nil {
			empty++
			mu.Unlock()
			return nil
		}
		same, first := known[e.ID].Digest == doc.Digest, len(c.stored) == 0
		delete(known, e.ID)
		c.stored[e.ID] = doc.ID
		if first { // it decides the embedding space
			defer mu.Unlock()
		} else {
			mu.Unlock()
		}
		if same {
			return nil
		}
		if err := c.Replace(ctx, doc, ingest.Split(doc)); err != nil {
			return fmt.Errorf("storing the document %s: %w", e.ID, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for p := range known { // no longer in the corpus
		if err := c.Delete(ctx, root.Name+"/"+p); err != nil {
			return fmt.Errorf("removing the document %s: %w", p, err)
		}
	}
	if empty > 0 {
		s.say("%d documents of the corpus have no text, so no search can find them", empty)
	}
	return nil
}

// entryDocument returns the document that ingesting a text file with this entry
// would give, or nil if the entry has no text.
func entryDocument(ctx context.Context, r *ingest.Reader, root ingest.Root, e eval.Entry) *ingest.Document {
	text := e.Text
	if strings.TrimSpace(text) == "" {
		text = e.Title
	}
	// The line feed keeps the first word from being read as the magic bytes of
	// another format.
	doc, err := r.Read(ctx, "entry.txt", []byte("\n"+text))
	if err != nil {
		return nil
	}
	sum := sha256.Sum256([]byte(e.Title + "\n" + text))
	doc.ID, doc.Root, doc.Path, doc.Digest = root.Name+"/"+e.ID, root.Name, e.ID, hex.EncodeToString(sum[:])
	doc.Title = strings.Join(strings.Fields(e.Title), " ")
	return doc
}

// match sets c.stored for the documents of questions: by id, by path in their root,
// or by that path without extension. Because a moved folder has another root, a
// name with an unknown root is matched by the path after it. Names in the file
// without a document are counted on standard error; one of several is an error.
func (c *corpus) match(ctx context.Context, questions []eval.Question, file string, s surroundings) error {
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
		root, inRoot, _ := strings.Cut(name, "/")
		var found []string
		for names := 0; names < 3 && len(found) == 0; names++ { // the surest first
			for _, d := range docs {
				if [...]bool{
					d.ID == name,
					d.Path == name || strings.TrimSuffix(d.Path, path.Ext(d.Path)) == name,
					d.Path == inRoot && root != c.filter.Root,
				}[names] {
					found = append(found, d.ID)
				}
			}
		}
		switch len(found) {
		case 0:
			missing = append(missing, name)
		case 1:
			c.stored[name] = found[0]
		default:
			return fmt.Errorf("%s names %q, which may be any of %s: use a document id", file, name, strings.Join(found, ", "))
		}
	}
	if len(missing) > 0 {
		s.say("%s names %s not in the store, such as %s; they count as missed", file, counted(len(missing), "document"), missing[0])
	}
	return nil
}

// grades returns judgements by the store's ids. Documents that are not in the
// store keep their id after a NUL, which no search finds.
func (c *corpus) grades(judged eval.Grades) eval.Grades {
	out := make(eval.Grades, len(judged))
	for id, grade := range judged {
		document := cmp.Or(c.stored[id], "\x00"+id)
		if before, twice := out[document]; !twice || grade > before {
			out[document] = grade
		}
	}
	return out
}

// deepest is the largest number of chunks that a ranking is made from.
const deepest = 1600

// rank returns the first depth documents of a search, each at the rank of its
// best chunk, including duplicates. The search is as users run it, with
// [retrieve.DefaultCandidates] chunks. While there are too few documents and a
// relevant one is missing, deeper searches for more, which are appended.
func (c *corpus) rank(ctx context.Context, x, deeper *retrieve.Index, question string, grades eval.Grades, depth int) ([]string, error) {
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
		if missing == 0 || len(ranking) >= depth || len(passages) < k || k >= deepest {
			return ranking[:min(depth, len(ranking))], nil
		}
		x = deeper
	}
}

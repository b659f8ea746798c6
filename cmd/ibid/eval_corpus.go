package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ibid/cmd/ibid/eval"
	"ibid/ingest"
	"ibid/retrieve"
)

// corpusConfig says what a set's questions are asked of.
type corpusConfig struct {
	Data string `help:"Data directory whose documents are asked, by document id, path, or path without its ending. One that is empty, or holds this set's corpus alone, gets the corpus and keeps it. Unset: the corpus in a temporary one." placeholder:"DIR" noenv:"" group:"Store"`
	// Of the store nothing is said by the environment: its documents are not for measuring.
	Store             storeURL `help:"Database to use in place of the data directory, in the same way: ${stores}." placeholder:"URL" noenv:"" group:"Store"`
	StorePasswordFile string   `help:"File that holds the password of --store, or the key of its API; unset: the variable IBID_STORE_PASSWORD, which may be empty." placeholder:"FILE" noenv:"" group:"Store"`
	Split             string   `help:"Judgements to use: those of qrels/NAME.tsv, or of a file NAME.tsv of the folder; unset: qrels.tsv, else the first of test, dev and train." placeholder:"NAME"`
	embedConfig
	rerankConfig
}

// place is where the corpus is, if it is not to be in a temporary folder.
func (c corpusConfig) place() placeConfig {
	return placeConfig{Data: c.Data, Store: c.Store, StorePasswordFile: c.StorePasswordFile}
}

// A corpus is what the questions of a set are asked of.
type corpus struct {
	*library
	documents int
	stored    map[string]string // the id of a document in the store, by that in the set
	filter    retrieve.Filter
	place     string // kind of store, or the address of one on a server
	temporary string // folder to remove; empty when it is kept
}

func (c *corpus) close() error {
	err := c.library.close()
	if c.temporary != "" {
		err = errors.Join(err, os.RemoveAll(c.temporary))
	}
	return err
}

// open makes the corpus of a set searchable.
func (c corpusConfig) open(ctx context.Context, dir string, set *eval.Set, s surroundings) (_ *corpus, err error) {
	out, err := c.openStore(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.close())
		}
	}()
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder %s: %w", dir, err)
	}
	own, err := holdsOnly(ctx, out.library, abs)
	if err != nil {
		return nil, err
	}
	if own {
		if err := set.Need(true); err != nil {
			return nil, fmt.Errorf("the set %s: %w", dir, err)
		}
		return out, out.fill(ctx, abs, set.Documents, s)
	}
	if err := set.Need(false); err != nil {
		return nil, fmt.Errorf("the set %s: %w", dir, err)
	}
	return out, out.match(ctx, set, s)
}

// openStore opens the data directory, or a temporary one.
func (c corpusConfig) openStore(ctx context.Context, s surroundings) (*corpus, error) {
	out := &corpus{stored: make(map[string]string), place: "data directory"}
	store := storeConfig{placeConfig: c.place(), embedConfig: c.embedConfig}
	if store.remote() {
		out.place = store.placeConfig.String()
	}
	if c.Data == "" && !store.remote() {
		dir, err := os.MkdirTemp("", "ibid-eval-")
		if err != nil {
			return nil, fmt.Errorf("making a temporary data directory: %w", err)
		}
		out.temporary, store.Data = dir, dir
	}
	options, err := c.index(c.endpointConfig, s.getenv)
	var lib *library
	if err == nil {
		lib, err = openLibrary(ctx, store, options, s)
	}
	if err != nil {
		if out.temporary != "" {
			err = errors.Join(err, os.RemoveAll(out.temporary))
		}
		return nil, err
	}
	out.library = lib
	return out, nil
}

// openFolder reads a folder into the data directory, or a temporary one, and
// asks nothing else. Unread are the files that could not be read, with the reason.
func (c corpusConfig) openFolder(ctx context.Context, folder string, sync syncConfig, read readConfig, s surroundings) (_ *corpus, unread []string, err error) {
	paths, err := checkFolders([]string{folder})
	if err != nil {
		return nil, nil, err
	}
	out, err := c.openStore(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.close())
		}
	}()
	if out.library.reader, err = read.reader(cmp.Or(out.temporary, c.Data)); err != nil {
		return nil, nil, err
	}
	err = sync.folders(out.library, paths, false)[0].sync(ctx, func(ch ingest.Change, _ bool) error {
		switch ch.Action {
		case ingest.Failed, ingest.Skipped:
			unread = append(unread, fmt.Sprintf("%s: %s", ch.Document, ch.Reason))
			fmt.Fprintf(s.stderr, "ibid: %s", changeLine(ch))
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	roots, err := out.Roots(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range roots {
		if r.Path == paths[0] {
			out.filter.Root = r.Name
		}
	}
	if any, err := out.Holds(ctx, out.filter); err != nil {
		return nil, nil, err
	} else if !any {
		return nil, nil, fmt.Errorf("there is no document in %s that can be read", folder)
	}
	return out, unread, nil
}

// holdsOnly says whether a library holds nothing but what came from one folder.
func holdsOnly(ctx context.Context, lib *library, folder string) (bool, error) {
	roots, err := lib.Roots(ctx)
	if err != nil {
		return false, err
	}
	for _, r := range roots {
		if r.Path == folder {
			continue
		}
		docs, err := lib.Documents(ctx, retrieve.Filter{Root: r.Name})
		if err != nil || len(docs) > 0 {
			return false, err
		}
	}
	return true, nil
}

// fill brings the store in step with the entries: each is a document of its
// own, cut into chunks as any other is. Its path is its id.
func (c *corpus) fill(ctx context.Context, folder string, entries []eval.Entry, s surroundings) error {
	root, err := c.AddRoot(ctx, folder, "")
	if err != nil {
		return fmt.Errorf("adding the corpus of %s: %w", folder, err)
	}
	known, err := c.Known(ctx, root)
	if err != nil {
		return err
	}
	c.documents, c.filter.Root = len(entries), root.Name
	empty, err := c.storeEntries(ctx, root, entries, known, s)
	if err != nil {
		return err
	}
	for p := range known { // they are no longer in the corpus
		if err := c.Delete(ctx, root.Name+"/"+p); err != nil {
			return fmt.Errorf("removing the document %s: %w", p, err)
		}
	}
	if empty > 0 {
		fmt.Fprintf(s.stderr, "ibid: %d documents of the corpus have no text: no search can find them\n", empty)
	}
	return nil
}

// storeEntries stores the entries that are not stored as they are, and says how
// many have no text. It takes what is stored rightly out of known.
func (c *corpus) storeEntries(ctx context.Context, root ingest.Root, entries []eval.Entry, known map[string]ingest.Stored, s surroundings) (empty int, err error) {
	bar := newMeter(s.stderr, "documents", len(entries))
	defer bar.end()
	var reader ingest.Reader
	defer reader.Close()
	group, storing := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, e := range entries {
		if storing.Err() != nil {
			break
		}
		doc := entryDocument(ctx, &reader, root, e)
		if doc == nil {
			empty++
			bar.add()
			continue
		}
		stored := known[e.ID].Digest
		delete(known, e.ID)
		c.stored[e.ID] = doc.ID
		if stored == doc.Digest {
			bar.add()
			continue
		}
		store := func() error {
			defer bar.add()
			if err := c.Replace(storing, doc, ingest.Split(doc, ingest.SplitOptions{})); err != nil {
				return fmt.Errorf("storing the document %s: %w", e.ID, err)
			}
			return nil
		}
		if len(c.stored) > 1 {
			group.Go(store)
		} else if err := store(); err != nil { // the first settles the embedding space, alone
			return empty, err
		}
	}
	return empty, cmp.Or(group.Wait(), ctx.Err())
}

// entryDocument makes the document that ingest would have made of a file with
// this text; nil when there is no text in it.
func entryDocument(ctx context.Context, r *ingest.Reader, root ingest.Root, e eval.Entry) *ingest.Document {
	text := e.Text
	if strings.TrimSpace(text) == "" {
		text = e.Title
	}
	// A leading line feed keeps the first word of a text from being taken for
	// the mark of another format.
	doc, err := r.Read(ctx, "entry.txt", []byte("\n"+text))
	if err != nil {
		return nil
	}
	sum := sha256.Sum256([]byte(e.Title + "\n" + text))
	doc.ID, doc.Root, doc.Path, doc.Digest = root.Name+"/"+e.ID, root.Name, e.ID, hex.EncodeToString(sum[:])
	doc.Title = strings.Join(strings.Fields(e.Title), " ")
	return doc
}

// match finds the judged documents among those of the store.
func (c *corpus) match(ctx context.Context, set *eval.Set, s surroundings) error {
	var named []string
	for _, grades := range set.Grades {
		named = append(named, slices.Collect(maps.Keys(grades))...)
	}
	missing, err := c.find(ctx, named, set.Judgements)
	if err != nil {
		return err
	}
	if len(c.stored) == 0 {
		return fmt.Errorf("none of the %d documents of the store is judged in %s: its corpus-ids must be document ids (ROOT/PATH) or paths; 'ibid search --json' shows them", c.documents, set.Judgements)
	}
	if len(missing) > 0 {
		fmt.Fprintf(s.stderr, "ibid: %s judges %s not in the store: what is not there counts as missed\n", set.Judgements, counted(len(missing), "document"))
	}
	return nil
}

// find settles which documents of the store are meant: by id, by path in their
// root, or by that path without its ending. A folder that was moved has another
// root: where the root of a name is not in the store, the path behind it decides.
// It gives the names of no document, sorted; one of several is an error that
// names the file they stand in.
func (c *corpus) find(ctx context.Context, named []string, file string) (missing []string, err error) {
	docs, err := c.Documents(ctx, c.filter)
	if err != nil {
		return nil, err
	}
	c.documents = len(docs)
	byName, byPath, roots := make(map[string][]string), make(map[string][]string), make(map[string]bool)
	for _, d := range docs {
		names := map[string]bool{d.ID: true, d.Path: true, strings.TrimSuffix(d.Path, path.Ext(d.Path)): true}
		for name := range names {
			byName[name] = append(byName[name], d.ID)
		}
		byPath[d.Path] = append(byPath[d.Path], d.ID)
		roots[d.Root] = true
	}
	slices.Sort(named)
	for _, name := range slices.Compact(named) {
		found := byName[name]
		if i := slices.Index(found, name); i >= 0 {
			found = found[i : i+1] // an id is no guess
		}
		if root, path, ok := strings.Cut(name, "/"); ok && len(found) == 0 && !roots[root] {
			found = byPath[path]
		}
		switch len(found) {
		case 0:
			missing = append(missing, name)
		case 1:
			c.stored[name] = found[0]
		default:
			return nil, fmt.Errorf("%s names %q, which may be any of %s: name documents by their id there", file, name, strings.Join(found, ", "))
		}
	}
	return missing, nil
}

// deepest is how many chunks are asked for, at most, to find so many documents.
const deepest = 1600

// grades gives judgements by the store's ids. A document that is not in the
// store keeps its id with a NUL before it, which no search finds.
func (c *corpus) grades(judged eval.Grades) eval.Grades {
	out := make(eval.Grades, len(judged))
	for id, grade := range judged {
		document, ok := c.stored[id]
		if !ok {
			document = "\x00" + id
		}
		if before, twice := out[document]; !twice || grade > before {
			out[document] = grade
		}
	}
	return out
}

// rank gives the documents of the depth best ranks, each at the rank of its
// best chunk, copies of others included. The first are those of the search as it
// is used, which looks at as many chunks as [retrieve.DefaultCandidates]. While
// they are too few and a relevant one is missing, deeper looks at more; those it
// finds stand behind the others, so that without a relevant one they make no
// difference.
func (c *corpus) rank(ctx context.Context, x, deeper *retrieve.Index, question string, grades eval.Grades, depth int) ([]string, error) {
	var ranking []string
	missing := grades.Relevant()
	var trouble error
	seen := make(map[string]bool)
	for k := retrieve.DefaultCandidates; ; k *= 2 {
		passages, err := x.Search(ctx, retrieve.Query{
			Text: question, K: k, Apart: true, Filter: c.filter, Warn: func(err error) { trouble = err },
		})
		if err := cmp.Or(err, trouble); err != nil {
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

package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/ingest"
	"ibid/retrieve"
)

// An access is the set of callers that may use a route where keys guard the server.
type access int

const (
	// public routes show nothing of the library and need no key.
	public access = iota + 1
	// visitors have any key that may read, including a public one.
	visitors
	// readers have a key that may read, or one that may write.
	readers
	// writers have a key that may write.
	writers
	// administrators have a key for the settings, which apply to all collections.
	administrators
)

// An accessTable maps a route, by method and pattern, to the callers that may use it.
type accessTable map[string]access

// routeOf returns the key of a request's route in an accessTable.
func routeOf(c echo.Context) string { return c.Request().Method + " " + c.Path() }

// A keyGuard identifies callers by their keys.
type keyGuard struct {
	address address
	access  accessTable
	keys    *keyring  // nil: no key is needed
	people  *people   // nil: no proxy identifies people
	failed  rateLimit // wrong keys

	origins origins // sites whose pages may use the routes for visitors
}

// admit admits only callers that may use the route. It checks them before the body is read.
// An admitted request is canceled when its key is revoked or expires.
func (g *keyGuard) admit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		a, listed := g.access[routeOf(c)]
		if !listed && c.Get(echo.ContextKeyHeaderAllow) == nil { // the header is set if only the method is wrong
			return echo.ErrNotFound
		}
		if g.keys == nil {
			withAddress(c)
		}
		if g.keys == nil || !listed || a == public {
			return next(c)
		}
		caller, err := g.identify(c)
		if err != nil {
			return refuse(c, err)
		}
		r := c.Request()
		held := context.WithValue(r.Context(), holderKey{}, caller)
		if err := caller.mayUse(a, g.origins.contains(c)); err != nil {
			c.SetRequest(r.WithContext(held)) // the log names the refused caller
			return refuse(c, err)
		}
		g.keys.recordUse(r.Context(), caller.key)
		ctx, release := g.keys.withRevocation(held)
		defer release()
		c.SetRequest(r.WithContext(ctx))
		return next(c)
	}
}

// mayUse returns an error unless the caller's key has the scope of the route. A public key
// can be read by every visitor of a page, so it is valid only for pages of listed origins.
func (h *holder) mayUse(a access, fromListed bool) error {
	switch {
	case h.key.Public && (a != visitors || !fromListed):
		return problem(http.StatusForbidden, "scope_missing",
			"this key is public: it may only ask and search, from pages of the origins in 'ibid serve --cors-origin'")
	case a == writers && !h.key.Write:
		return problem(http.StatusForbidden, "key_only_reads",
			"this key may only read: use one made with 'ibid keys make NAME --scope write'")
	case a == administrators && !h.maySet():
		return problem(http.StatusForbidden, "scope_missing",
			"this key may not see or change the settings: use one made with 'ibid keys make NAME --scope settings'")
	}
	return nil
}

// mayWrite reports whether the caller may change the documents of a collection.
func (h *holder) mayWrite(collection string) bool {
	return h.key.Write && (len(h.writableCollections()) == 0 || slices.Contains(h.writableCollections(), collection))
}

// writableCollections returns the collections that a caller with write access may change; nil
// means all.
func (h *holder) writableCollections() []string {
	if h.person {
		return h.writes
	}
	return h.key.Collections
}

// maySet reports whether the caller may see and change the settings.
func (h *holder) maySet() bool { return h.key.Settings && len(h.key.Collections) == 0 }

// refuse stops the server from reading the remaining body of a refused request to reuse the
// connection.
func refuse(c echo.Context, err error) error {
	if c.Request().ContentLength == 0 {
		return err
	}
	ended := http.NewResponseController(c.Response()).SetReadDeadline(time.Now())
	if ended != nil && !errors.Is(ended, http.ErrNotSupported) {
		return errors.Join(err, ended)
	}
	// Exceeding a MaxBytesReader makes the server close the connection slowly enough for the
	// client to read the reply.
	w := c.Response().Writer
	for u, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok; u, ok = w.(interface{ Unwrap() http.ResponseWriter }) {
		w = u.Unwrap()
	}
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("-")), 0).Read(make([]byte, 1))
	return err
}

// identify returns the caller. A key in the Authorization header comes first, then the name
// that a trusted proxy sends, then the session's cookie.
func (g *keyGuard) identify(c echo.Context) (*holder, error) {
	secret, cookie := g.secretOf(c.Request())
	name, groups, err := g.people.proxyIdentity(c)
	if cookie || !strings.HasPrefix(secret, keyPrefix) { // a proxy may send its own passwords
		if err != nil {
			return nil, err
		}
		if name != "" {
			return g.people.identify(name, groups)
		}
	}
	if secret == "" {
		return nil, unauthorized("no_key", "this server requires a key: send it as 'Authorization: Bearer KEY', "+
			"or enter it on the page; 'ibid keys make' makes one")
	}
	h, err := g.verify(c, secret, cookie)
	if err == nil {
		h.user = name
	}
	return h, err
}

// secretOf returns the key in a request's header or the token in its cookie, or "".
func (g *keyGuard) secretOf(r *http.Request) (secret string, cookie bool) {
	if sent, ok := r.Header[echo.HeaderAuthorization]; ok {
		scheme, key, _ := strings.Cut(sent[0], " ")
		key = strings.TrimLeft(key, " ")
		if len(sent) > 1 || !strings.EqualFold(scheme, "Bearer") || key == "" {
			return notAKey, false
		}
		return key, false
	}
	if c, err := r.Cookie(g.cookieName()); err == nil && c.Value != "" {
		return c.Value, true
	}
	return "", false
}

// notAKey replaces a malformed key, so that verify counts it as a wrong one.
const notAKey = "-"

// verify returns the holder of a key or of a session's token. Wrong keys are counted by
// address. They never lock out valid keys: many people may share an address, and a key of 256
// bits cannot be guessed.
func (g *keyGuard) verify(c echo.Context, secret string, cookie bool) (*holder, error) {
	ctx, from, now := c.Request().Context(), networkOf(c.RealIP()), time.Now()
	if err := g.keys.refresh(ctx, freshFor); err != nil {
		return nil, err
	}
	digest := sha256.Sum256([]byte(secret))
	found, err := g.keys.find(digest, cookie)
	if found == nil {
		if wait := g.failed.take(from, MaxTries, now); wait > 0 {
			return nil, tooMany("too_many_tries", wait, "%d wrong keys came from this address: wait for the time in Retry-After", MaxTries)
		}
		// The key may have been made since the keyring was read.
		if err := g.keys.refresh(ctx, 0); err != nil {
			return nil, err
		}
		if found, err = g.keys.find(digest, cookie); found != nil {
			g.failed.giveBack(from, MaxTries, now)
		}
	}
	if wrong := checkKey(secret); found == nil && cookie {
		err = unauthorized("session_ended", "this session has ended: enter the key again")
	} else if found == nil && wrong != nil {
		err = unauthorized("bad_key", "this is not a key: %v", wrong)
	} else if found == nil {
		err = unauthorized("bad_key", "this key is unknown: it was revoked, or made for another server")
	}
	if err != nil && cookie {
		g.setCookie(c, "", 0)
	}
	return found, err
}

// Handlers get wrappers that show only what the key in their context may see, so that a new
// route cannot forget to check. If keys guard the server, a context without a key sees
// nothing.

var errNoHolder = errors.New("there is no key in the context: a public route, or work that lost its request's context, may not read " +
	"the library")

// visibleCollections returns the collections that a context may see; nil means all.
func visibleCollections(ctx context.Context) ([]string, error) {
	caller := holderFrom(ctx)
	if caller == nil {
		return nil, errNoHolder
	}
	return caller.key.Collections, nil
}

// restrictFilter restricts a filter to what its context's key may see.
func restrictFilter(ctx context.Context, f retrieve.Filter) (retrieve.Filter, error) {
	var err error
	f.Collections, err = visibleCollections(ctx)
	return f, err
}

// restrictToKeys wraps everything that reads documents. The drawer and the originals need no
// wrapper, since they receive documents that the library has returned.
func (o *Options) restrictToKeys() {
	n := keyScoped{*o}
	o.Asker, o.Searcher, o.Library, o.Summarizer = n, n, n, n
	if o.UploadFolders != nil {
		o.UploadFolders, o.Sites = n, n
	}
}

// keyScoped wraps the parts of a server and applies the key in the context of each call.
type keyScoped struct{ options Options }

func (n keyScoped) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	var err error
	if q.Filter, err = restrictFilter(ctx, q.Filter); err != nil {
		return func(yield func(answer.Event, error) bool) { yield(nil, err) }
	}
	return stopWhenRevoked(ctx, n.options.Asker.Ask(ctx, q))
}

func (n keyScoped) Summarize(ctx context.Context, s answer.Summary) iter.Seq2[answer.Event, error] {
	return stopWhenRevoked(ctx, n.options.Summarizer.Summarize(ctx, s))
}

// aboutServer matches the address of a model's server in a message, and the purpose of the
// call.
var aboutServer = regexp.MustCompile(` at https?://\S*[^\s:;,.]|asking the model \(\w+\): `)

// redactServer removes from an event or an error the address of the model's server and the
// server's message, which follows the first colon. An error keeps its advice to the reader.
func redactServer(e answer.Event, err error) (answer.Event, error) {
	plain := func(message string) string {
		message, _, _ = strings.Cut(aboutServer.ReplaceAllString(message, ""), ": ")
		return message
	}
	switch of := e.(type) {
	case answer.Warning:
		e = answer.Warning{Message: plain(of.Message)}
	case answer.Incomplete:
		e = answer.Incomplete{Reason: plain(of.Reason)}
	case answer.Judged:
		if of.Decision == answer.Errored {
			of.Reason = plain(of.Reason)
			e = of
		}
	}
	if model := (*openai.Error)(nil); errors.As(err, &model) {
		p := modelProblem(model)
		p.Detail = plain(p.Detail)
		if remedy := model.Remedy(); remedy != "" {
			p.Detail += ": " + remedy
		}
		err = p.withCause(err)
	}
	return e, err
}

// stopWhenRevoked passes events on until the key in their context is revoked, and then hides
// how the answer ended. Only callers that may see the settings get the address and the
// messages of the model's server.
func stopWhenRevoked(ctx context.Context, events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			if cause := (*Problem)(nil); errors.As(context.Cause(ctx), &cause) {
				yield(nil, cause)
				return
			}
			if h := holderFrom(ctx); h == nil || !h.maySet() {
				e, err = redactServer(e, err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (n keyScoped) Search(ctx context.Context, q retrieve.Query) (found []retrieve.Passage, err error) {
	if q.Filter, err = restrictFilter(ctx, q.Filter); err == nil {
		found, err = n.options.Searcher.Search(ctx, q)
	}
	return found, err
}

func (n keyScoped) Documents(ctx context.Context, f retrieve.Filter) (found []retrieve.DocumentInfo, err error) {
	if f, err = restrictFilter(ctx, f); err == nil {
		found, err = n.options.Library.Documents(ctx, f)
	}
	return found, err
}

func (n keyScoped) Holds(ctx context.Context, f retrieve.Filter) (found bool, err error) {
	if f, err = restrictFilter(ctx, f); err == nil {
		found, err = n.options.Library.Holds(ctx, f)
	}
	return found, err
}

// Document fails unless the caller may see the document. It checks by listing, since Holds
// would evict the filters of searches from the engine's cache.
func (n keyScoped) Document(ctx context.Context, id string) (*ingest.Document, error) {
	collections, err := visibleCollections(ctx)
	if err != nil {
		return nil, err
	}
	if len(collections) > 0 {
		found, err := n.options.Library.Documents(ctx, retrieve.Filter{Document: id, Collections: collections})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("document %q: %w", id, retrieve.ErrNotFound)
		}
	}
	return n.options.Library.Document(ctx, id)
}

func mayWriteTo(ctx context.Context, collection string) error {
	_, err := visibleCollections(ctx)
	if err == nil && !holderFrom(ctx).mayWrite(collection) {
		err = problem(http.StatusForbidden, "outside_key",
			"this key may not change the collection of the upload: name another one with ?collection=, or use a key for it")
	}
	return err
}

func (n keyScoped) SiteStates() []SiteState { return n.options.Sites.SiteStates() }

// AddSite adds sites to the collection of uploads. Only callers that may change all collections
// may name another one: an error can reveal that a hidden collection has the address.
func (n keyScoped) AddSite(ctx context.Context, address, collection string) (root ingest.Root, err error) {
	if collection == "" || collection == n.options.UploadCollection {
		err = mayWriteTo(ctx, n.options.UploadCollection)
	} else {
		err = requireAll(ctx)
	}
	if err == nil {
		root, err = n.options.Sites.AddSite(ctx, address, collection)
	}
	return root, err
}

// CollectionUploads returns uploads that need no further check, since they are in one
// collection.
func (n keyScoped) CollectionUploads(ctx context.Context, collection string) (Uploads, error) {
	if err := mayWriteTo(ctx, collection); err != nil {
		return nil, err
	}
	return n.options.UploadFolders.CollectionUploads(ctx, collection)
}

// requireAll fails unless the caller may change all collections.
func requireAll(ctx context.Context) error {
	_, err := visibleCollections(ctx)
	if err == nil && len(holderFrom(ctx).writableCollections()) > 0 {
		err = problem(http.StatusForbidden, "outside_key",
			"this key is for some collections only: use a key for all collections to rename or delete a collection, or to add a site to it")
	}
	return err
}

func (n keyScoped) Rename(ctx context.Context, from, to string) error {
	if err := requireAll(ctx); err != nil {
		return err
	}
	return n.options.UploadFolders.Rename(ctx, from, to)
}

func (n keyScoped) Delete(ctx context.Context, collection string, keepAnswers bool) error {
	if err := requireAll(ctx); err != nil {
		return err
	}
	return n.options.UploadFolders.Delete(ctx, collection, keepAnswers)
}

func (n keyScoped) Roots(ctx context.Context) ([]ingest.Root, error) {
	mine, err := visibleCollections(ctx)
	if err != nil {
		return nil, err
	}
	all, err := n.options.UploadFolders.Roots(ctx)
	return slices.DeleteFunc(all, func(r ingest.Root) bool { return len(mine) > 0 && !slices.Contains(mine, r.Collection) }), err
}

// RootUploads returns the same error for a folder that the caller may not change as for a
// missing one.
func (n keyScoped) RootUploads(ctx context.Context, root string) (Uploads, string, error) {
	if _, err := visibleCollections(ctx); err != nil {
		return nil, "", err
	}
	u, collection, err := n.options.UploadFolders.RootUploads(ctx, root)
	if err == nil && !holderFrom(ctx).mayWrite(collection) {
		return nil, "", fs.ErrNotExist
	}
	return u, collection, err
}

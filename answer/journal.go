package answer

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A Journal keeps the replies of the calls of a run.
type Journal interface {
	// Reply gives what was kept under the key; ok is false when nothing was.
	Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error)
	// Keep keeps a reply. It is durable when Keep returns nil.
	Keep(ctx context.Context, run, key string, reply []byte) error
}

// A keptReply is a finished call's outcome as a journal keeps it.
type keptReply struct {
	Text   []byte `json:"text"`   // bytes: no encoding may change a prompt made of it
	Finish string `json:"finish"` // empty where the call was cut because enough had come
	Usage  Tokens `json:"usage"`
	Failed string `json:"failed,omitempty"` // the error of a call that was done without
}

// A keptVerdict is one that its calls do not tell again, because they failed or
// were never made: all that comes after rests on it.
type keptVerdict struct {
	Decision Decision    `json:"decision"`
	Reason   string      `json:"reason"`
	Late     bool        `json:"late,omitempty"`
	Calls    []keptReply `json:"calls"`
}

// known gives the reply that the run's journal has for the call.
func (c *call) known(ctx context.Context) (k keptReply, ok bool) {
	ok = c.read(ctx, c.key(), &k)
	return k, ok
}

// keep keeps the reply in the run's journal.
func (c *call) keep(ctx context.Context) { c.store(ctx, c.key(), c.reply()) }

// keepFailed keeps that the call failed, where what follows goes on without it
// and would come out otherwise if it succeeded the next time.
func (c *call) keepFailed(ctx context.Context, err error) {
	k := c.reply()
	k.Failed = err.Error()
	c.store(ctx, c.key(), k)
}

func (c *call) reply() keptReply { return keptReply{Text: c.text, Finish: c.finish, Usage: c.tokens} }

// knownVerdict gives the verdict that the run's journal has for the first call
// of a judge.
func (c *call) knownVerdict(ctx context.Context) (v verdict, ok bool) {
	var k keptVerdict
	if !c.read(ctx, c.key()+" verdict", &k) {
		return v, false
	}
	v = verdict{decision: k.Decision, reason: k.Reason, late: k.Late}
	for _, reply := range k.Calls {
		v.calls = append(v.calls, &call{prompt: c.prompt, made: true, text: reply.Text, finish: reply.Finish, tokens: reply.Usage})
	}
	return v, true
}

func (c *call) keepVerdict(ctx context.Context, v verdict) {
	k := keptVerdict{Decision: v.decision, Reason: v.reason, Late: v.late}
	for _, made := range v.calls {
		k.Calls = append(k.Calls, made.reply())
	}
	c.store(ctx, c.key()+" verdict", k)
}

func (c *call) read(ctx context.Context, key string, into any) (ok bool) {
	if c.run == nil || c.run.fresh {
		return false
	}
	b, ok, err := c.run.Journal.Reply(ctx, c.run.ID, key)
	if err == nil && ok {
		err = json.Unmarshal(b, into)
	}
	if err != nil && ctx.Err() == nil {
		c.unkept = fmt.Errorf("reading the journal of the run %s: %w", c.run.ID, err)
	}
	return ok && err == nil
}

// store keeps what came of the call. Who left it no longer waits, but what it
// gave has been paid for.
func (c *call) store(ctx context.Context, key string, v any) {
	if c.run == nil {
		return
	}
	b, err := json.Marshal(v)
	if err == nil {
		err = c.run.Journal.Keep(context.WithoutCancel(ctx), c.run.ID, key, b)
	}
	if err != nil {
		c.unkept = fmt.Errorf("writing the journal of the run %s: %w", c.run.ID, err)
	}
}

// key names a call by all that decides on its reply.
func (c *call) key() string {
	h := sha256.New()
	p := c.prompt
	for _, part := range []string{string(p.Role), p.System, p.User, strconv.Itoa(p.MaxTokens), strconv.Itoa(c.again)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// nonce gives the mark of a request's fences. In a run that can be resumed it
// is made of the run's secret and the request, so that the same request is
// written with the same mark again; nobody else can foresee it.
func (r *run) nonce(role Role, s Slots) (string, error) {
	if r.kept == nil {
		return newNonce(), nil
	}
	s.Nonce = sampleNonce
	p, err := r.prompts().fill(r.template(role), role, s)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, r.kept.Secret)
	for _, part := range []string{string(role), p.System, p.User} {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil))[:12]), nil
}

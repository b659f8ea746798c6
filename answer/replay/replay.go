// Package replay resumes a question or a summary that broke off, without repeating
// the calls that it made.
//
// A [Recorder] saves the replies of the calls in a [Journal], under keys made from
// the prompts. After a crash, the same work with the same recorder finds them
// and makes only the missing calls. If documents have changed, the calls that show
// them have different prompts and are made again.
//
// A recorder from [Begin] or [Resume] is a job in a ledger. One worker at a time holds
// it, from [Begin] or [Recorder.HoldJob] until its claim ends.
package replay

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// A Journal stores the replies of calls, with the methods of a [retrieve.Ledger].
type Journal interface {
	Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error)
	KeepReply(ctx context.Context, run, worker, key string, reply []byte) error
}

// Key returns the key of a call, made from everything that determines its reply.
func Key(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Nonce makes an unpredictable mark from the recorder's secret and the parts. The same
// parts always give the same mark.
func (r *Recorder) Nonce(parts ...string) string {
	mac := hmac.New(sha256.New, r.Secret)
	for _, part := range parts {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil))[:8])
}

// Load decodes the value saved under a key into the value that v points to, and
// reports whether one was saved.
func (r *Recorder) Load(ctx context.Context, key string, v any) (bool, error) {
	if r == nil || r.fresh {
		return false, nil
	}
	b, ok, err := r.Journal.Reply(ctx, r.ID, key)
	if err == nil && ok {
		err = json.Unmarshal(b, v)
	}
	if err != nil && ctx.Err() == nil {
		return false, fmt.Errorf("reading the journal of the run %s: %w", r.ID, err)
	}
	return ok && err == nil, nil
}

// Save stores v under a key. It ignores the cancellation of ctx, since the reply has
// been paid for. It notices when another worker has taken the job.
func (r *Recorder) Save(ctx context.Context, key string, v any) error {
	if r == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerWait)
		defer cancel()
		err = r.Journal.KeepReply(ctx, r.ID, r.worker, key, b)
		r.noteLoss(err)
	}
	if err != nil {
		return fmt.Errorf("writing the journal of the run %s: %w", r.ID, err)
	}
	return nil
}

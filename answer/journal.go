package answer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
)

// A Journal keeps the replies of the calls of a run.
type Journal interface {
	// Reply gives what was kept under the key; ok is false when nothing was.
	Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error)
	// Keep keeps a reply. It is durable when Keep returns nil.
	Keep(ctx context.Context, run, key string, reply []byte) error
}

// A Run is work that can be taken up again after a crash: the same work under
// the same ID, Secret and Journal makes only those calls whose replies the
// journal lacks, and comes to the same end. Its journal may be used by several
// calls at once.
type Run struct {
	ID string
	// Secret makes the marks of the fences in the run's prompts, 32 random
	// bytes. Whoever knows it can write a document that closes its fence.
	Secret  []byte
	Journal Journal
}

// A keptReply is a finished call's outcome as a journal keeps it.
type keptReply struct {
	Text   []byte `json:"text"` // bytes: no encoding may change a prompt made of it
	Finish string `json:"finish"`
	Usage  Tokens `json:"usage"`
}

// journalled gives the model with the run's journal before it. Models that
// differ must have different names. Calls that fail or are left before their
// end are not kept.
func (run *Run) journalled(m Model, name string) Model {
	return journalled{run: run, model: m, name: name}
}

type journalled struct {
	run   *Run
	model Model
	name  string
}

func (j journalled) Complete(ctx context.Context, p Prompt) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		key := j.key(p)
		known, ok, err := j.known(ctx, key)
		if err != nil {
			yield(Piece{}, err)
			return
		}
		if ok {
			if len(known.Text) > 0 && !yield(Piece{Text: string(known.Text)}, nil) {
				return
			}
			yield(Piece{Finish: known.Finish, Usage: known.Usage}, nil)
			return
		}
		var reply keptReply
		for piece, err := range j.model.Complete(ctx, p) {
			if err != nil {
				yield(piece, err)
				return
			}
			reply.Text = append(reply.Text, piece.Text...)
			if piece.Finish == "stop" || piece.Finish == "length" {
				reply.Finish, reply.Usage = piece.Finish, piece.Usage
				if err := j.keep(ctx, key, reply); err != nil {
					yield(Piece{}, err)
					return
				}
			}
			if !yield(piece, nil) {
				return
			}
		}
	}
}

func (j journalled) known(ctx context.Context, key string) (keptReply, bool, error) {
	var k keptReply
	b, ok, err := j.run.Journal.Reply(ctx, j.run.ID, key)
	if err != nil {
		return k, false, fmt.Errorf("looking into the journal of the run %s: %w", j.run.ID, err)
	}
	if !ok {
		return k, false, nil
	}
	if err := json.Unmarshal(b, &k); err != nil {
		return k, false, fmt.Errorf("reading the journal of the run %s: %w", j.run.ID, err)
	}
	return k, true, nil
}

func (j journalled) keep(ctx context.Context, key string, k keptReply) error {
	b, err := json.Marshal(k)
	if err == nil {
		err = j.run.Journal.Keep(ctx, j.run.ID, key, b)
	}
	if err != nil {
		return fmt.Errorf("writing the journal of the run %s: %w", j.run.ID, err)
	}
	return nil
}

// key names a call by all that decides on its reply.
func (j journalled) key(p Prompt) string {
	h := sha256.New()
	for _, part := range []string{j.name, string(p.Role), p.System, p.User, strconv.Itoa(p.MaxTokens)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"ibid/retrieve"
)

// renewBatch is how many documents are renewed in one transaction.
const renewBatch = 64

// renew stores anew the terms that another version of the analysis made. The
// memory has those of this version already, since they are made while it is
// filled; without this each start would make them. What a crash leaves undone
// the next start does.
func (e *Engine) renew(ctx context.Context, tell func(documents int)) error {
	var stale []string
	for _, d := range e.memory.documents {
		if d.stale {
			stale = append(stale, d.info.ID)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	if tell != nil {
		tell(len(stale))
	}
	slices.Sort(stale)
	for batch := range slices.Chunk(stale, renewBatch) {
		err := e.update(ctx, func(tx *sql.Tx) error {
			for _, id := range batch {
				if err := e.renewDocument(ctx, tx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("store the terms of another analysis: %w", err)
		}
	}
	return e.reload(ctx)
}

func (e *Engine) renewDocument(ctx context.Context, tx *sql.Tx, id string) error {
	row, err := readRow(ctx, tx, id)
	if errors.Is(err, retrieve.ErrNotFound) {
		return nil // another process has deleted it
	}
	if err != nil {
		return err
	}
	if err := e.eraseRow(ctx, tx, row.key); err != nil {
		return err
	}
	if err := analyse(ctx, tx, row); err != nil {
		return err
	}
	return e.reinsert(ctx, tx, row)
}

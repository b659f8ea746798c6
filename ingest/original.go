package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// ErrChanged means that a file has changed since its document was read.
var ErrChanged = errors.New("the file has changed since it was read: ingest its folder again")

// Original returns the bytes of a document's file, which is in its root's folder or in an archive
// there. The error wraps [fs.ErrNotExist] if the file is gone, or is [ErrChanged].
func (r *Reader) Original(ctx context.Context, fsys fs.FS, doc *Document) ([]byte, error) {
	folder, _ := (&Syncer{Reader: r}).start(Root{}, fsys)
	name, packed := doc.Path, ""
	for at := range doc.Path {
		if doc.Path[at] == '/' && isContainer(doc.Path[:at]) {
			if info, err := fs.Lstat(fsys, doc.Path[:at]); err == nil && !info.IsDir() {
				name, packed = doc.Path[:at], doc.Path[at+1:]
				break
			}
		}
	}
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("checking the file %s: %w", name, plainError(err))
	}
	f := folder.listing.inspect(name, fs.FileInfoToDirEntry(info))
	if f.err != nil {
		return nil, fmt.Errorf("the file %s: %w", name, f.err)
	}
	data, err := folder.readBytes(ctx, f)
	if err == nil && packed != "" {
		var reply childReply
		reply, err = r.askContainer(ctx, name, data, []string{packed})
		data = []byte(reply.text)
	}
	if err != nil {
		return nil, fmt.Errorf("the file %s: %w", name, err)
	}
	if digestOf(data) != doc.Digest {
		return nil, ErrChanged
	}
	return data, nil
}

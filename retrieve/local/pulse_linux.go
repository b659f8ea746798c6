package local

import (
	"io/fs"
	"os"
	"sync"

	"modernc.org/sqlite"
)

// A pulse tells, without a query, whether any process has committed to the
// database: from the header of the index of the write-ahead log, which SQLite
// keeps in a file that all its processes map. Every commit changes it.
//
// It is read only while locks belong to open files; else closing the file here
// would drop the locks that SQLite holds on it.
type pulse struct {
	path string

	mu   sync.Mutex
	file *os.File
	info fs.FileInfo
}

// A beat is the header of the index: two copies of 48 bytes, with a counter of
// changes, the end of the log and its checksum.
type beat [96]byte

// read gives the header as it is, and false where there is none to rely on.
func (p *pulse) read() (b beat, ok bool) {
	if !sqlite.OFDLockingEnabled() {
		return b, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// The file is another one after all connections have been closed.
	info, err := os.Stat(p.path)
	if err != nil {
		return b, false
	}
	if p.file == nil || !os.SameFile(p.info, info) {
		if p.drop() != nil {
			return b, false
		}
		file, err := os.Open(p.path)
		if err != nil {
			return b, false
		}
		p.file = file
		if p.info, err = file.Stat(); err != nil || !os.SameFile(p.info, info) {
			return b, false
		}
	}
	_, err = p.file.ReadAt(b[:], 0)
	return b, err == nil
}

func (p *pulse) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drop()
}

func (p *pulse) drop() error {
	if p.file == nil {
		return nil
	}
	file := p.file
	p.file = nil
	return file.Close()
}

package child

import (
	"encoding/binary"
	"errors"
	"io"
)

// A frame is a message between parent and child: a JSON object with data. A frame to be sent may
// have a text instead of data, to avoid a copy.
type frame struct {
	last   bool // the child exits after this reply
	object []byte
	data   []byte
	text   string
}

// frameHead is the size of the head: one byte for last and eight for each of two lengths.
const frameHead = 17

var errTooMuch = errors.New("the message is too long")

func sendFrame(out io.Writer, f frame) error {
	head := make([]byte, frameHead, frameHead+len(f.object))
	if f.last {
		head[0] = 1
	}
	binary.BigEndian.PutUint64(head[1:], uint64(len(f.object)))
	binary.BigEndian.PutUint64(head[9:], uint64(len(f.data)+len(f.text)))
	if _, err := out.Write(append(head, f.object...)); err != nil {
		return err
	}
	if _, err := out.Write(f.data); err != nil {
		return err
	}
	_, err := io.WriteString(out, f.text)
	return err
}

// receiveFrame reads a frame of up to most bytes. The error is io.EOF at the end of the input.
func receiveFrame(in io.Reader, most uint64) (f frame, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return f, err
	}
	f.last = head[0] == 1
	length, size := binary.BigEndian.Uint64(head[1:]), binary.BigEndian.Uint64(head[9:])
	if length > most || size > most-length {
		return f, errTooMuch
	}
	if f.object, err = readExactly(in, length); err == nil {
		f.data, err = readExactly(in, size)
	}
	return f, err
}

// readExactly reads n bytes as they arrive, so that a false length costs no memory.
func readExactly(in io.Reader, n uint64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, int64(n)))
	if err == nil && uint64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

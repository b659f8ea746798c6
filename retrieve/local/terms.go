package local

import (
	"encoding/binary"
	"errors"

	"ibid/retrieve"
)

// packTerms is the stored form of a chunk's terms: the number of the analysis,
// the number of all terms, the number of different ones, then each with its
// length before and its count behind it, all numbers as varints. It saves the
// analysis at start.
func packTerms(counts []retrieve.TermCount, length int) []byte {
	b := binary.AppendUvarint(nil, retrieve.Analysis)
	b = binary.AppendUvarint(b, uint64(length))
	b = binary.AppendUvarint(b, uint64(len(counts)))
	for _, c := range counts {
		b = binary.AppendUvarint(b, uint64(len(c.Term)))
		b = append(b, c.Term...)
		b = binary.AppendUvarint(b, uint64(c.Count))
	}
	return b
}

var errTerms = errors.New("its list of terms cannot be read")

// unpackTerms reads the stored form. Current is false when it was made by
// another analysis and the text must be analysed again.
func unpackTerms(b []byte) (counts []retrieve.TermCount, length int, current bool, err error) {
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err = errTerms
			return 0
		}
		b = b[n:]
		return v
	}
	if analysis := next(); err != nil || analysis != retrieve.Analysis {
		return nil, 0, false, err
	}
	length = int(next())
	n := next()
	if err != nil || n > uint64(len(b)) {
		return nil, 0, false, errTerms
	}
	counts = make([]retrieve.TermCount, n)
	text := string(b) // one string that all terms are parts of
	for i := range counts {
		size := next()
		if err != nil || size > uint64(len(b)) {
			return nil, 0, false, errTerms
		}
		at := len(text) - len(b)
		counts[i].Term = text[at : at+int(size)]
		b = b[size:]
		counts[i].Count = int(next())
	}
	if err != nil || len(b) > 0 {
		return nil, 0, false, errTerms
	}
	return counts, length, true, nil
}

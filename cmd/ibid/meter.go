package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/term"
)

// A meter shows the progress of a long task in the last line of a terminal. Otherwise it prints
// only the speed at the end. Its methods are safe for concurrent use.
type meter struct {
	out     io.Writer
	columns int    // of the terminal; 0 if out is no terminal, and after the end
	what    string // plural: "documents"
	start   time.Time

	mu          sync.Mutex
	done, total int
	drawn       time.Time
}

// newMeter starts to show progress. A total of 0 means unknown.
func newMeter(out io.Writer, what string, total int) *meter {
	m := &meter{out: out, columns: terminalWidth(out), what: what, total: total, start: time.Now()}
	m.draw("reading " + what)
	return m
}

// draw overwrites the meter's line.
func (m *meter) draw(line string) {
	if n := m.columns - 1; n > 0 {
		fmt.Fprintf(m.out, "\r%-*.*s\r", n, n, line)
	}
}

func (m *meter) update(done, total int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.total = done, total
	if took := time.Since(m.start); done > 0 && time.Since(m.drawn) > 100*time.Millisecond {
		left := took / time.Duration(done) * time.Duration(total-done)
		m.draw(fmt.Sprintf("%d of %d %s, %s, %s left", done, total, m.what, m.rate(took), left.Round(time.Second)))
		m.drawn = time.Now()
	}
}

func (m *meter) rate(took time.Duration) string {
	return fmt.Sprintf("%.0f/s", float64(m.done)/max(took.Seconds(), 1e-9))
}

// Write prints a line above the meter's.
func (m *meter) Write(line []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draw("")
	m.drawn = time.Time{}
	return m.out.Write(line)
}

// clear removes the meter's line. Later lines are passed on unchanged.
func (m *meter) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draw("")
	m.columns = 0
}

// end removes the line, and prints the speed if the task is complete.
func (m *meter) end() {
	m.clear()
	if m.done == m.total && m.total > 0 {
		took := time.Since(m.start)
		fmt.Fprintf(m.out, "%d %s in %s (%s)\n", m.done, m.what, shortDuration(took), m.rate(took))
	}
}

func shortDuration(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// Results go to stdout, messages to stderr. Text of documents and models never reaches a
// terminal with control characters.

// printable removes characters that can control a terminal: control characters except tab and
// line feed, and invisible formatting characters that can reorder or hide text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d':
			return -1
		}
		return r
	}, s)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns the number of columns of the terminal w, or 0 if w is no terminal or
// the number is unknown.
func terminalWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

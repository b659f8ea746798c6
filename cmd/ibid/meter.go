package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// A meter shows the progress of a long task as a bar on a terminal, and otherwise
// only its speed at the end. Its methods are safe for concurrent use.
type meter struct {
	out   io.Writer
	what  string // plural: "documents"
	start time.Time

	mu          sync.Mutex
	done, total int
	bars        *mpb.Progress // nil without a terminal, and after the end
	bar         *mpb.Bar
}

// newMeter starts to show progress. A total of 0 is not known yet.
func newMeter(out io.Writer, what string, total int) *meter {
	m := &meter{out: out, what: what, total: total, start: time.Now()}
	if terminalWidth(out) > 0 {
		m.showBar()
	}
	return m
}

func (m *meter) showBar() {
	m.bars = mpb.New(mpb.WithOutput(m.out), mpb.WithWidth(48))
	m.bar = m.bars.AddBar(int64(m.total), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(func(s decor.Statistics) string {
			if s.Total == 0 {
				return "reading " + m.what
			}
			return fmt.Sprintf("%d of %d %s", s.Current, s.Total, m.what)
		})),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			return m.pace(int(s.Current), int(s.Total))
		})))
}

func (m *meter) update(done, total int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.total = done, total
	if m.bar != nil {
		m.bar.SetTotal(int64(total), false)
		m.bar.SetCurrent(int64(done))
	}
}

// pace returns the speed so far and the time left.
func (m *meter) pace(done, total int) string {
	if done == 0 {
		return ""
	}
	took := time.Since(m.start)
	left := took / time.Duration(done) * time.Duration(total-done)
	return fmt.Sprintf("%s, %s left", m.rate(done, took), left.Round(time.Second))
}

func (m *meter) rate(done int, took time.Duration) string {
	return fmt.Sprintf("%.0f/s", float64(done)/max(took.Seconds(), 1e-9))
}

// Write prints a line above the bar, or without one to where the meter prints.
func (m *meter) Write(line []byte) (int, error) {
	m.mu.Lock()
	bars := m.bars
	m.mu.Unlock()
	if bars != nil {
		return bars.Write(line)
	}
	return m.out.Write(line)
}

// clear removes the bar. The meter only passes lines on afterwards.
func (m *meter) clear() {
	m.mu.Lock()
	bars, bar := m.bars, m.bar
	m.bars, m.bar = nil, nil
	m.mu.Unlock()
	if bar != nil {
		bar.Abort(true)
		bars.Wait()
	}
}

// end removes the bar, and prints the speed if everything was done.
func (m *meter) end() {
	m.clear()
	if m.done == m.total && m.total > 0 {
		took := time.Since(m.start)
		fmt.Fprintf(m.out, "%d %s in %s (%s)\n", m.done, m.what, short(took), m.rate(m.done, took))
	}
}

func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// Results go to stdout, everything about the run to stderr. Nothing that a
// document or a model wrote reaches a terminal with control characters in it.

// printable takes the characters out of s that could command a terminal:
// controls but tab and line feed, and the invisible formatting characters that
// can reorder or hide text.
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

// terminalWidth is the number of columns of the terminal that w is; 0 when it
// is none, or does not know its size.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A meter shows how far a long run is: as a bar on a terminal, elsewhere as a
// line now and then. Its methods may be called from any goroutine.
type meter struct {
	out   io.Writer
	what  string // in the plural: "documents"
	total int
	start time.Time
	bars  *mpb.Progress // nil where there is no terminal
	bar   *mpb.Bar

	mu   sync.Mutex
	done int
	told time.Time
}

// between lines that tell of progress where there is no terminal.
const between = 10 * time.Second

func newMeter(out io.Writer, what string, total int) *meter {
	p := &meter{out: out, what: what, total: total, start: time.Now(), told: time.Now()}
	if terminalWidth(out) > 0 {
		p.bars = mpb.New(mpb.WithOutput(out), mpb.WithWidth(48))
		p.bar = p.bars.AddBar(int64(total), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.CountersNoUnit("%d of %d "+what)),
			mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f/s "), decor.AverageETA(decor.ET_STYLE_GO)))
	}
	return p
}

// add counts one more that is done.
func (p *meter) add() {
	if p.bar != nil {
		p.bar.Increment()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.bar == nil && p.done < p.total && time.Since(p.told) >= between {
		p.told = time.Now()
		left := time.Since(p.start) / time.Duration(p.done) * time.Duration(p.total-p.done)
		fmt.Fprintf(p.out, "%d of %d %s (%s, %s left)\n", p.done, p.total, p.what, p.rate(), left.Round(time.Second))
	}
}

// rate is how many were done in a second so far.
func (p *meter) rate() string {
	return fmt.Sprintf("%.0f/s", float64(p.done)/max(time.Since(p.start).Seconds(), 1e-9))
}

// end takes the bar away, and says how fast it went when all was done.
func (p *meter) end() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == p.total && p.total > 0 {
		fmt.Fprintf(p.out, "%d %s in %s (%s)\n", p.done, p.what, short(time.Since(p.start)), p.rate())
	}
}

//go:build unix

package encoder

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkEncode reports how many word pieces, in texts of 128, a processor encodes per
// second of processor time. train/rate.py compares the rate with that of ONNX Runtime.
func BenchmarkEncode(b *testing.B) {
	path := os.Getenv("IBID_ENCODER")
	if path == "" {
		b.Skip("needs IBID_ENCODER, like TestRuntime")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	m, err := Open(path)
	must(b, err)
	texts := slices.Repeat([]string{strings.Repeat("the light of the harbour is lit at dusk ", 16)}, 24)
	pieces, before := 0, used(b)
	for b.Loop() {
		_, err := m.EmbedPassages(b.Context(), texts, 128)
		must(b, err)
		pieces += 128 * len(texts)
	}
	b.ReportMetric(float64(pieces)/(used(b)-before).Seconds(), "pieces/s")
	must(b, m.Close())
}

// BenchmarkOpen reports the processor time of mapping the file of IBID_ENCODER and verifying its
// checksum, as every start does.
func BenchmarkOpen(b *testing.B) {
	path := os.Getenv("IBID_ENCODER")
	if path == "" {
		b.Skip("needs IBID_ENCODER, like TestRuntime")
	}
	before := used(b)
	for b.Loop() {
		m, err := Open(path)
		must(b, err)
		must(b, m.Close())
	}
	b.ReportMetric(float64((used(b)-before).Microseconds())/1000/float64(b.N), "ms-cpu/op")
}

// used returns the processor time of this process.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

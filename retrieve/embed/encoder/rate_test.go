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

// BenchmarkEncode reports how many word pieces of texts of 128 a processor encodes
// in a second of its time. train/rate.py compares that with ONNX Runtime.
func BenchmarkEncode(b *testing.B) {
	path := os.Getenv("IBID_ENCODER")
	if path == "" {
		b.Skip("needs IBID_ENCODER, as TestRuntime does")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	m, err := Open(path)
	must(b, err)
	used := func() time.Duration {
		var u syscall.Rusage
		must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	texts := slices.Repeat([]string{strings.Repeat("the light of the harbour is lit at dusk ", 16)}, 24)
	pieces, before := 0, used()
	for b.Loop() {
		_, err := m.EmbedPassages(b.Context(), texts, 128)
		must(b, err)
		pieces += 128 * len(texts)
	}
	b.ReportMetric(float64(pieces)/(used()-before).Seconds(), "pieces/s")
	must(b, m.Close())
}

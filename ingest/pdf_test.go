package ingest

import (
	"bytes"
	"context"
	"ibid/data/datatest"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"
)

// Damaged files end in text or in a reason.
func TestReadDamagedPDF(t *testing.T) {
	rng := rand.New(rand.NewPCG(2026, 11))
	r := new(Reader)
	for _, name := range []string{"columns.pdf", "rates.pdf"} {
		whole, err := os.ReadFile(filepath.Join("testdata", "read", name))
		if err != nil {
			t.Fatal(err)
		}
		for range 12 {
			data := bytes.Clone(whole)
			switch rng.IntN(3) {
			case 0:
				for range 1 + rng.IntN(40) {
					data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
				}
			case 1:
				data = data[:rng.IntN(len(data))]
			case 2:
				at, from := rng.IntN(len(data)), rng.IntN(len(data))
				copy(data[at:], data[from:min(len(data), from+500)])
			}
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			doc, err := r.Read(ctx, name, data)
			cancel()
			if err != nil {
				if err.Error() == "" || ctx.Err() == context.DeadlineExceeded {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			checkDocument(t, doc)
			doc.ID = "x"
			checkChunks(t, doc, Split(doc, SplitOptions{}), DefaultMax)
		}
	}
}

// The words of real files are compared with those of another reader.
func TestReadPDFLikePdftotext(t *testing.T) {
	tool, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Skip("pdftotext is not installed")
	}
	dir := datatest.Sets(t, "files", "pdf-real")
	least := map[string]float64{"paper.pdf": 0.97, "pasa.pdf": 0.97, "DHS2020.pdf": 0.95, "multimodal.pdf": 0.98, "NCT06154122_Prot_000.pdf": 0.98}
	for _, name := range datatest.Pick(t, slices.Sorted(maps.Keys(least))) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := new(Reader).Read(t.Context(), name, data)
		if err != nil {
			t.Fatal(err)
		}
		other, err := exec.CommandContext(t.Context(), tool, "-enc", "UTF-8", filepath.Join(dir, name), "-").Output()
		if err != nil {
			t.Fatal(err)
		}
		got := wordF1(doc.Text, string(other))
		t.Logf("%s: %.3f", name, got)
		if want := least[name]; got < want {
			t.Errorf("%s: word F1 %.3f, want %.2f", name, got, want)
		}
	}
}

var (
	anyWord = regexp.MustCompile(`[\pL\pN_]+`)
	parted  = regexp.MustCompile(`(\p{Ll})-\n(\p{Ll})`)
)

// wordF1 is the harmonic mean of the shares of words that the texts have in common;
// repeated words count as often as both have them.
func wordF1(a, b string) float64 { return gramF1(a, b, 1) }

// gramF1 is the same for runs of n words: with two, word spaces and reading order
// count too.
func gramF1(a, b string, n int) float64 {
	count := map[string]int{}
	grams := func(s string) (out []string) {
		words := anyWord.FindAllString(strings.ToLower(parted.ReplaceAllString(norm.NFKC.String(s), "$1$2")), -1)
		for i := 0; i+n <= len(words); i++ {
			out = append(out, strings.Join(words[i:i+n], " "))
		}
		return out
	}
	ga, gb := grams(a), grams(b)
	for _, g := range gb {
		count[g]++
	}
	common := 0
	for _, g := range ga {
		if count[g] > 0 {
			count[g]--
			common++
		}
	}
	if len(ga)+len(gb) == 0 {
		return 1
	}
	return 2 * float64(common) / float64(len(ga)+len(gb))
}

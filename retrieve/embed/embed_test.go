package embed

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ibid/data/datatest"
	"ibid/retrieve"
)

var must = datatest.Must

var _ retrieve.Embedder = (*Model)(nil)

var open = sync.OnceValues(New)

func model(t testing.TB) *Model {
	t.Helper()
	m, err := open()
	must(t, err)
	return m
}

func vectors(t testing.TB, texts ...string) [][]float32 {
	t.Helper()
	rows, err := model(t).Embed(context.Background(), texts)
	must(t, err)
	return rows
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// TestGolden compares Go with the Python code that trained the table: the features must be the
// same, and the first components equal to the last bit.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	must(t, err)
	var cases []struct {
		Text     string
		Features []string
		Bits     []string
	}
	must(t, json.Unmarshal(data, &cases))
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	m := model(t)
	for _, c := range cases {
		features := []string{}
		m.features(c.Text,
			func(row uint32) { features = append(features, fmt.Sprint(row)) },
			func(hash uint64, parts int) { features = append(features, fmt.Sprintf("%016x/%d", hash, parts)) })
		datatest.Same(t, "features in Python and Go of "+c.Text, c.Features, features)
		row := vectors(t, c.Text)[0]
		bits := []string{}
		for _, x := range row[:len(c.Bits)] {
			bits = append(bits, hex.EncodeToString(binary.BigEndian.AppendUint32(nil, math.Float32bits(x))))
		}
		datatest.Same(t, "first components in Python and Go of "+c.Text, c.Bits, bits)
	}
}

// TestSpace ties the name of the space to the table: another table needs another name,
// since vectors with the same name are compared.
func TestSpace(t *testing.T) {
	const (
		want  = "ibid-static-2/256"
		table = "c561e1fe4b75b5be" // the first bytes of the checksum
	)
	if got := model(t).Space(); got != want {
		t.Errorf("Space() = %q, want %q", got, want)
	}
	if got := hex.EncodeToString(file[len(file)-sha256.Size:][:8]); got != table {
		t.Errorf("the table is %s, but %q belongs to %s: a new table needs a new name", got, want, table)
	}
	if got := len(vectors(t, "x")[0]); got != 256 {
		t.Errorf("%d dimensions", got)
	}
}

// TestMeaning checks the minimum that a model of meaning must know.
func TestMeaning(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/texts.txt", "nearer") {
		rows := vectors(t, row...)
		if near, far := dot(rows[0], rows[1]), dot(rows[0], rows[2]); near <= far {
			t.Errorf("%q: %.3f to %q, %.3f to %q", row[0], near, row[1], far, row[2])
		}
	}
}

// TestSame lists different spellings of one text.
func TestSame(t *testing.T) {
	for _, texts := range datatest.Rows(t, "testdata/texts.txt", "same") {
		rows := vectors(t, texts...)
		for i, row := range rows[1:] {
			if !slices.Equal(row, rows[0]) {
				t.Errorf("vectors of %q and %q differ", texts[0], texts[i+1])
			}
		}
	}
}

func check(t interface {
	Helper()
	Fatalf(string, ...any)
}, m *Model, row []float32) {
	t.Helper()
	if len(row) != m.dims {
		t.Fatalf("%d components, want %d", len(row), m.dims)
	}
	var square float64
	for i, x := range row {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			t.Fatalf("component %d is %v", i, x)
		}
		square += float64(x) * float64(x)
	}
	if math.Abs(square-1) > 1e-5 {
		t.Fatalf("squared length = %v, want 1", square)
	}
}

func TestRows(t *testing.T) {
	m := model(t)
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching(`([A-Za-z]{1,12} ){0,30}`)), 1, 6).Draw(t, "texts")
		rows, err := m.Embed(ctx, texts)
		if err != nil {
			t.Fatalf("embedding %q: %v", texts, err)
		}
		order := rapid.Permutation(seq(len(texts))).Draw(t, "order")
		shuffled := make([]string, len(texts))
		for i, from := range order {
			shuffled[i] = texts[from]
		}
		again, err := m.Embed(ctx, shuffled)
		if err != nil {
			t.Fatalf("embedding %q: %v", shuffled, err)
		}
		for i, row := range rows {
			check(t, m, row)
			if got := again[slices.Index(order, i)]; !slices.Equal(got, row) {
				t.Fatalf("the vector of %q depends on the batch", texts[i])
			}
		}
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestConcurrent(t *testing.T) {
	m := model(t)
	want := vectors(t, passage(1, 200))[0]
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			rows, err := m.Embed(context.Background(), []string{passage(1, 200)})
			if err != nil || !slices.Equal(rows[0], want) {
				t.Errorf("vector in parallel differs (%v)", err)
			}
		})
	}
	wg.Wait()
	if rows := vectors(t); len(rows) != 0 {
		t.Errorf("%d rows for no text, want 0", len(rows))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if rows, err := m.Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) || rows != nil {
		t.Errorf("canceled Embed = %v, %v", rows, err)
	}
}

// TestDamage changes every part of the table. Each change must be detected.
func TestDamage(t *testing.T) {
	damaged := map[string][]byte{"empty": nil, "cut": file[:len(file)/2], "longer": append(slices.Clone(file), 0)}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, at := range []int{0, len(magic), header, header + 9, len(file) / 2, len(file) - 40, len(file) - 1, rng.IntN(len(file))} {
		flipped := slices.Clone(file)
		flipped[at] ^= 1 << rng.IntN(8)
		damaged[fmt.Sprintf("bit flipped in byte %d", at)] = flipped
	}
	for name, data := range damaged {
		if m, err := parse(data); !errors.Is(err, errTable) || m != nil {
			t.Errorf("%s: parse = %v, want errTable", name, err)
		}
	}
	_, err := parse(file)
	must(t, err)
}

func FuzzEmbed(f *testing.F) {
	for _, seed := range []string{"", "a", "\xff\xfe\x00", "Ünïcødé 漢字 ไทย", strings.Repeat("é", 300), "\u0301\u0301", "İ", "\u1fb3"} {
		f.Add(seed)
	}
	m := model(f)
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := m.Embed(context.Background(), []string{text, text})
		must(t, err)
		check(t, m, rows[0])
		if !slices.Equal(rows[0], rows[1]) {
			t.Fatal("two vectors of one text differ")
		}
		n := 0
		m.features(text, func(uint32) { n++ }, func(uint64, int) { n++ })
		// Compatibility decomposition makes at most 18 runes of one.
		if limit := 2*18*utf8.RuneCountInString(text) + 2; n > limit {
			t.Fatalf("%d features of %d runes", n, utf8.RuneCountInString(text))
		}
	})
}

// TestLinear uses texts that provoke quadratic work. Twice the text may have at most twice
// the features.
func TestLinear(t *testing.T) {
	m := model(t)
	for _, c := range []struct {
		unit  string
		bytes int
	}{
		{"a", 1 << 20}, {"A", 1 << 17}, {"aB", 1 << 17}, {"7", 1 << 17}, {"漢", 1 << 17}, {"é", 1 << 17},
		{"\u0301", 1 << 17}, {"ж", 1 << 17}, {"\xff", 1 << 20}, {"ﷺ", 1 << 15},
	} {
		count := func(bytes int) (n int) {
			m.features(strings.Repeat(c.unit, bytes/len(c.unit)), func(uint32) { n++ }, func(uint64, int) { n++ })
			return n
		}
		half, whole := count(c.bytes/2), count(c.bytes)
		if whole > 2*half+64 {
			t.Errorf("%q: %d features of %d bytes, %d of twice as many", c.unit, half, c.bytes/2, whole)
		}
	}
}

// passage returns running text of common words.
func passage(seed uint64, words int) string {
	rng := rand.New(rand.NewPCG(seed, seed))
	list := strings.Fields("the of and to in server request document is that it a for network was on are with as configured " +
		"database his they be " +
		"index at one have this from by hot word but what some value can out other were all there when up use your how said an " +
		"each she which do " +
		"their time if will way about many then them would write like so these her long make thing see him two has look more day " +
		"could go come did " +
		"Parliament 1984 temperature government parseConfig industrial photosynthesis")
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(list[rng.IntN(len(list))])
		if i%17 == 16 {
			b.WriteByte('.')
		}
	}
	return b.String()
}

func BenchmarkEmbed(b *testing.B) {
	m := model(b)
	for _, c := range []struct {
		name  string
		words int
		tail  string
	}{{"120words", 120, ""}, {"120words-accents", 120, " “naïve” café — façade"}, {"10words", 10, ""}} {
		texts := make([]string, 256)
		for i := range texts {
			texts[i] = passage(uint64(i), c.words) + c.tail
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				_, err := m.Embed(context.Background(), texts)
				must(b, err)
			}
			b.ReportMetric(float64(b.N*len(texts))/b.Elapsed().Seconds(), "texts/s")
		})
	}
}

package pdf

import (
	"slices"
	"testing"
)

const table = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n" +
	"1\t1\t0\t0\t0\t0\t0\t0\t1000\t1400\t-1\t\n" +
	"5\t1\t1\t1\t1\t1\t100\t100\t80\t20\t96.5\tBerth\n" +
	"5\t1\t1\t1\t1\t2\t190\t104\t70\t22\t91\trates\n" +
	"5\t1\t1\t1\t2\t1\t100\t140\t90\t20\t12\t~~~~\n" +
	"5\t1\t1\t1\t2\t2\t200\t140\t90\t20\t88\tValid\n" +
	"5\t1\t1\t1\t2\t3\tx\t140\t90\t20\t88\tbroken\n"

func TestWords(t *testing.T) {
	glyphs := words([]byte(table), 72)
	var got []string
	for _, g := range glyphs {
		got = append(got, g.Text)
	}
	if !slices.Equal(got, []string{"Berth", " ", "rates", "Valid"}) {
		t.Fatalf("%q", got)
	}
	// The words of a line have the same base line.
	if a, b := glyphs[0], glyphs[2]; a.Y != -126 || a.Y != b.Y || a.Size != 26 || b.Size != 26 || !a.Begins || b.Begins {
		t.Errorf("%+v, %+v", a, b)
	}
}

func FuzzWords(f *testing.F) {
	f.Add([]byte(table))
	f.Fuzz(func(t *testing.T, table []byte) {
		for _, g := range words(table, 300) {
			if !g.sound() {
				t.Fatalf("%+v", g)
			}
		}
	})
}

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"ibid/ingest"
)

type bombFile struct {
	name   string
	make   func(t *testing.T) []byte
	action ingest.Action
	reason string
}

// bombs are small files, or endless ones, that would do harm.
func bombs() []bombFile {
	gigabyte := func(t *testing.T) []byte { return zippedZeros(t, "zeros.txt", 1<<30) }
	const large = "larger than 64 MB"
	return []bombFile{
		{"gigabyte.zip", gigabyte, ingest.Skipped, large},
		{"gigabyte.txt.gz", func(t *testing.T) []byte { return gzippedZeros(t, 1<<30) }, ingest.Skipped, large},
		{"three.zip", func(t *testing.T) []byte {
			return zippedFiles(t, map[string][]byte{"a.zip": gigabyte(t), "b.zip": gigabyte(t), "c.zip": gigabyte(t), "d.zip": gigabyte(t)})
		}, ingest.Failed, "it unpacks to more than 200 times its size"},
		{"nested.zip", func(t *testing.T) []byte {
			nested := gigabyte(t)
			for range 5 {
				nested = zippedFiles(t, map[string][]byte{"a.zip": nested, "b.zip": nested})
			}
			return nested
		}, ingest.Failed, "an archive in an archive, more than 3 deep"},
		{"lying.zip", func(t *testing.T) []byte {
			lying := gigabyte(t)
			central := bytes.LastIndex(lying, []byte("PK\x01\x02"))
			binary.LittleEndian.PutUint32(lying[central+24:], 10) // the size after unpacking
			return lying
		}, ingest.Failed, "it is damaged"},
		{"many.zip", func(t *testing.T) []byte {
			files := map[string][]byte{}
			for i := range 20_000 {
				files[fmt.Sprintf("%d.txt", i)] = nil
			}
			return zippedFiles(t, files)
		}, ingest.Failed, "there are more than 10000 files in it"},
		{"huge.tar", hugeTar, ingest.Failed, "it is damaged: it is cut off"},
		{"line.csv", func(*testing.T) []byte { return bytes.Repeat([]byte("word,"), 20<<20) }, ingest.Skipped, large},
	}
}

// deflatedZeros is a deflate stream of that many megabytes of zeros.
func deflatedZeros(t *testing.T, megabytes int) (stream []byte, sum uint32) {
	t.Helper()
	null := make([]byte, 1<<20)
	var block bytes.Buffer
	w, err := flate.NewWriter(&block, flate.BestCompression)
	must(t, err)
	if _, err := w.Write(null); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil { // to where it can be repeated
		t.Fatal(err)
	}
	for range megabytes {
		sum = crc32.Update(sum, crc32.IEEETable, null)
	}
	return append(bytes.Repeat(block.Bytes(), megabytes), 3, 0), sum // an empty last block
}

func zippedZeros(t *testing.T, name string, size int) []byte {
	t.Helper()
	stream, sum := deflatedZeros(t, size>>20)
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	f, err := z.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Deflate, CRC32: sum, CompressedSize64: uint64(len(stream)),
		UncompressedSize64: uint64(size)})
	must(t, err)
	if _, err := f.Write(stream); err != nil {
		t.Fatal(err)
	}
	must(t, z.Close())
	return out.Bytes()
}

func gzippedZeros(t *testing.T, size int) []byte {
	t.Helper()
	stream, sum := deflatedZeros(t, size>>20)
	var head bytes.Buffer
	must(t, gzip.NewWriter(&head).Close())
	out := append(bytes.Clone(head.Bytes()[:10]), stream...)
	out = binary.LittleEndian.AppendUint32(out, sum)
	return binary.LittleEndian.AppendUint32(out, uint32(size))
}

func zippedFiles(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, data := range files {
		f, err := w.Create(name)
		must(t, err)
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Close())
	return out.Bytes()
}

// hugeTar declares a file of a terabyte and holds a kilobyte of it.
func hugeTar(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(t, w.WriteHeader(&tar.Header{Name: "huge.txt", Size: 1 << 40, Mode: 0o644}))
	if _, err := w.Write(make([]byte, 1<<10)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

package mail

import (
	"bytes"
	"encoding/binary"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf16"
)

// packCompound packs streams into a compound file (MS-CFB), as office programs before
// 2007 wrote. The names are paths.
func packCompound(streams map[string][]byte) []byte {
	const sector, small, least, none, last = 512, 64, 4096, 0xffffffff, 0xfffffffe
	// A chain is the numbers of sectors from the first on.
	chain := func(table []uint32, n int) []uint32 {
		for i := range n {
			table = append(table, uint32(len(table)+1))
			if i == n-1 {
				table[len(table)-1] = last
			}
		}
		return table
	}
	pad := func(data []byte, to int, fill byte) []byte {
		return append(data, bytes.Repeat([]byte{fill}, (to-len(data)%to)%to)...)
	}
	names := []string{""}
	for name := range maps.Keys(streams) {
		for ; name != "."; name = path.Dir(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	directory := make([]byte, (len(names)+3)/4*sector)
	var mini, big []byte
	var miniTable, bigTable []uint32
	start := map[string]uint32{}
	for _, name := range names {
		data := streams[name]
		if start[name] = last; len(data) >= least {
			start[name] = uint32(len(bigTable))
			bigTable = chain(bigTable, (len(data)+sector-1)/sector)
			big = pad(append(big, data...), sector, 0)
		} else if len(data) > 0 {
			start[name] = uint32(len(miniTable))
			miniTable = chain(miniTable, (len(data)+small-1)/small)
			mini = pad(append(mini, data...), small, 0)
		}
	}
	miniSectors, tableSectors := (len(mini)+sector-1)/sector, (len(miniTable)+sector/4-1)/(sector/4)
	miniStart, tableStart := len(bigTable), len(bigTable)+miniSectors
	directoryStart := tableStart + tableSectors
	fat := chain(chain(chain(bigTable, miniSectors), tableSectors), len(directory)/sector)
	fatSectors := 1 + len(fat)/(sector/4-1)
	fatStart := len(fat)
	fat = append(fat, slices.Repeat([]uint32{0xfffffffd}, fatSectors)...)
	fat = append(fat, slices.Repeat([]uint32{none}, fatSectors*sector/4-len(fat))...)
	for i, name := range names {
		data, isStream := streams[name]
		kind, at, size := byte(1), uint32(0), len(data) // a folder
		switch {
		case isStream:
			kind, at = 2, start[name]
		case name == "":
			kind, at, size = 5, uint32(miniStart), len(mini)
		}
		copy(directory[i*128:], compoundEntry(names, i, kind, at, size))
	}
	head := compoundHead(tableStart, tableSectors, directoryStart, fatStart, fatSectors)
	return slices.Concat(head, big, pad(mini, sector, 0), pad(bytesOf(miniTable), sector, 0xff), directory, bytesOf(fat))
}

// compoundHead is the first sector of a compound file, which says where the tables of
// sectors and the directory begin.
func compoundHead(tableStart, tableSectors, directoryStart, fatStart, fatSectors int) []byte {
	const least, none, last = 4096, 0xffffffff, 0xfffffffe
	head := make([]byte, 512)
	copy(head, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"+strings.Repeat("\x00", 16)+"\x3e\x00\x03\x00\xfe\xff\x09\x00\x06\x00")
	copy(head[44:], bytesOf([]uint32{uint32(fatSectors), uint32(directoryStart), 0, least, uint32(tableStart), uint32(tableSectors),
		last, 0}))
	tables := slices.Repeat([]uint32{none}, 109)
	for i := range fatSectors {
		tables[i] = uint32(fatStart + i)
	}
	copy(head[76:], bytesOf(tables))
	return head
}

// compoundEntry is the entry of names[i] in the directory of a compound file. All members
// of a folder are in one row, since the names are sorted.
func compoundEntry(names []string, i int, kind byte, at uint32, size int) []byte {
	const none = 0xffffffff
	entry, name := make([]byte, 128), names[i]
	title := utf16.Encode([]rune(path.Base("/" + name)))
	if name == "" {
		title = utf16.Encode([]rune("Root Entry"))
	}
	for j, c := range title {
		binary.LittleEndian.PutUint16(entry[2*j:], c)
	}
	binary.LittleEndian.PutUint16(entry[64:], uint16(2*len(title)+2))
	entry[66], entry[67] = kind, 1 // black
	next, child := uint32(none), uint32(none)
	for j, other := range names[i+1:] {
		if dir := path.Dir(other); next == none && dir == path.Dir(name) && name != "" {
			next = uint32(i + 1 + j)
		} else if child == none && (dir == name || name == "" && dir == ".") {
			child = uint32(i + 1 + j)
		}
	}
	copy(entry[68:], bytesOf([]uint32{none, next, child}))
	copy(entry[116:], bytesOf([]uint32{at, uint32(size)}))
	return entry
}

func bytesOf(numbers []uint32) (out []byte) {
	for _, n := range numbers {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	return out
}

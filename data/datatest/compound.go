package datatest

import (
	"encoding/binary"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf16"
)

// Compound packs streams into a compound file (MS-CFB), as office programs before
// 2007 wrote. The names are paths.
func Compound(streams map[string][]byte) []byte {
	const sector, small, least, none, last = 512, 64, 4096, 0xffffffff, 0xfffffffe
	words := func(fill uint32, n int) []uint32 { return slices.Repeat([]uint32{fill}, n) }
	bytesOf := func(numbers []uint32) (out []byte) {
		for _, n := range numbers {
			out = binary.LittleEndian.AppendUint32(out, n)
		}
		return out
	}
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
			big = append(append(big, data...), make([]byte, (sector-len(data)%sector)%sector)...)
		} else if len(data) > 0 {
			start[name] = uint32(len(miniTable))
			miniTable = chain(miniTable, (len(data)+small-1)/small)
			mini = append(append(mini, data...), make([]byte, (small-len(data)%small)%small)...)
		}
	}
	miniSectors, tableSectors := (len(mini)+sector-1)/sector, (len(miniTable)+sector/4-1)/(sector/4)
	miniStart, tableStart := len(bigTable), len(bigTable)+miniSectors
	directoryStart := tableStart + tableSectors
	fat := chain(chain(chain(bigTable, miniSectors), tableSectors), len(directory)/sector)
	fatSectors := 1 + len(fat)/(sector/4-1)
	fatStart := len(fat)
	fat = append(fat, words(0xfffffffd, fatSectors)...)
	fat = append(fat, words(none, fatSectors*sector/4-len(fat))...)
	for i, name := range names {
		entry := directory[i*128:]
		title := utf16.Encode([]rune(path.Base("/" + name)))
		if name == "" {
			title = utf16.Encode([]rune("Root Entry"))
		}
		for j, c := range title {
			binary.LittleEndian.PutUint16(entry[2*j:], c)
		}
		binary.LittleEndian.PutUint16(entry[64:], uint16(2*len(title)+2))
		data, isStream := streams[name]
		entry[66], entry[67] = 1, 1 // a folder, black
		left, right, child := uint32(none), uint32(none), uint32(none)
		for j, other := range names[i+1:] {
			if dir := path.Dir(other); right == none && dir == path.Dir(name) && name != "" {
				right = uint32(i + 1 + j) // all siblings are in one row
			} else if child == none && (dir == name || name == "" && dir == ".") {
				child = uint32(i + 1 + j)
			}
		}
		at, size := start[name], len(data)
		switch {
		case isStream:
			entry[66] = 2
		case name == "":
			entry[66], at, size = 5, uint32(miniStart), len(mini)
		default:
			at = 0
		}
		copy(entry[68:], bytesOf([]uint32{left, right, child}))
		copy(entry[116:], bytesOf([]uint32{at, uint32(size)}))
	}
	head := make([]byte, sector)
	copy(head, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"+strings.Repeat("\x00", 16)+"\x3e\x00\x03\x00\xfe\xff\x09\x00\x06\x00")
	copy(head[44:], bytesOf([]uint32{uint32(fatSectors), uint32(directoryStart), 0, least, uint32(tableStart), uint32(tableSectors),
		last, 0}))
	difat := words(none, 109)
	for i := range fatSectors {
		difat[i] = uint32(fatStart + i)
	}
	copy(head[76:], bytesOf(difat))
	pad := func(data []byte, fill byte) []byte {
		return append(data, slices.Repeat([]byte{fill}, (sector-len(data)%sector)%sector)...)
	}
	return slices.Concat(head, big, pad(mini, 0), pad(bytesOf(miniTable), 0xff), directory, bytesOf(fat))
}

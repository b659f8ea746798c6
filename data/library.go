// Package data has the sample library.
package data

import (
	"embed"
	"io/fs"
)

//go:embed library
var embedded embed.FS

// Library returns the files of the sample library.
func Library() fs.FS {
	sub, err := fs.Sub(embedded, "library")
	if err != nil {
		panic(err) // the name is invalid
	}
	return sub
}

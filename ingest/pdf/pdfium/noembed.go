//go:build !pdfium

package pdfium

const embedded = ""

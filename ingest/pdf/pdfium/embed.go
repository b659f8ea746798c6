//go:build pdfium

package pdfium

import _ "embed"

// embedded is PDFium's code, which 'go generate ./ingest/pdf' brings.
//
//go:embed pdfium.wasm
var embedded string

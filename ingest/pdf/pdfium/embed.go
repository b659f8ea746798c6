//go:build pdfium

package pdfium

import _ "embed"

// embedded is PDFium's code, fetched by 'go generate ./ingest/pdf'.
//
//go:embed pdfium.wasm
var embedded string

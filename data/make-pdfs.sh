#!/bin/sh
# Prints the HTML sources in pdf-sources/ to the PDFs of the sample library.
# Needs Chromium (Debian: apt-get install chromium fonts-dejavu-core); set
# CHROMIUM when it goes by another name.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
chromium=${CHROMIUM:-chromium}
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

print() { # source, target folder below library/
	"$chromium" --headless --no-sandbox --disable-gpu --no-pdf-header-footer \
		--user-data-dir="$profile" \
		--print-to-pdf="$here/library/$2/$1.pdf" "file://$here/pdf-sources/$1.html"
}

print emergency-plan safety
print annual-report-2024 minutes
print corrie-21-guide boats
print examination-syllabus courses

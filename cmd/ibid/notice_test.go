package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// noticeHead is the part of NOTICE above the lines that the test writes.
const noticeHead = "Every binary contains these Go modules, whose licences are in the folder\n\"licenses\" of each archive of a " +
	"release, and parts of Go's standard library\n(BSD-3-Clause, Copyright 2009 The Go Authors):\n\n"

// TestNotice checks that NOTICE has every module that is linked on any system, with the
// licence of its own files: 'go test ./cmd/ibid -run Notice -update' writes it. By default
// it lists the modules of one system and checks that those of the other systems are in
// go.mod.
func TestNotice(t *testing.T) {
	t.Parallel()
	name := filepath.Join(moduleRoot(t), "NOTICE")
	notice, err := os.ReadFile(name)
	must(t, err)
	above, below, found := strings.Cut(string(notice), noticeHead)
	if !found {
		t.Fatalf("%s lacks %q", name, noticeHead)
	}
	systems := []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
	if !*datatest.Update {
		systems = datatest.Pick(t, systems)
	}
	rows := map[string]string{}
	for module, folder := range linkedModules(t, systems) {
		licence, owner := licenceOf(t, folder)
		if licence == "" {
			t.Errorf("%s: unknown licence in %s", module, folder)
		}
		rows[module] = fmt.Sprintf("  %s %s%s\n", module, licence, owner)
	}
	if len(rows) < 50 {
		t.Fatalf("only %d modules are linked: the list is broken", len(rows))
	}
	if !datatest.Campaign() && !*datatest.Update {
		required, err := os.ReadFile(filepath.Join(moduleRoot(t), "go.mod"))
		must(t, err)
		for row := range strings.Lines(below) {
			module := strings.Fields(row)[0]
			if rows[module] == "" && strings.Contains(string(required), "\t"+module+" ") {
				rows[module] = row
			}
		}
	}
	want := above + noticeHead
	for _, module := range slices.Sorted(maps.Keys(rows)) {
		want += rows[module]
	}
	datatest.Golden(t, name, want)
}

// linkedModules returns the folder of every module with a package in the release binaries
// for these systems.
func linkedModules(t *testing.T, systems []string) map[string]string {
	t.Helper()
	folders := make(map[string]string)
	for _, system := range systems {
		goos, arch, _ := strings.Cut(system, "/")
		// -e because PDFium, which the tag embeds, may not have been downloaded.
		list := exec.Command("go", "list", "-e", "-deps", "-tags", "pdfium",
			"-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", "./cmd/ibid")
		list.Dir = moduleRoot(t)
		list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("running %v: %v%s", list.Args, err, stderrOf(err))
		}
		for line := range strings.Lines(string(out)) {
			if module, folder, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				folders[module] = folder
			}
		}
	}
	return folders
}

// licenceOf returns the SPDX name of the licence of a module, found by the words of its
// licence file, and the copyright holder if the file has one.
func licenceOf(t *testing.T, folder string) (licence, owner string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	own := regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)(\.md|\.txt)?$`)
	holder := regexp.MustCompile(`(?im)^\s*copyright (?:\(c\)|©)?\s*([^\n\[{]*)$`)
	var names []string
	for _, e := range entries {
		if !own.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		must(t, err)
		for name, says := range map[string]string{
			"Apache-2.0": `Apache License\s+Version 2\.0`,
			"MIT":        `Permission is hereby granted, free of charge`,
			"MPL-2.0":    `Mozilla Public License Version 2\.0\s+=`,
			"Unlicense":  `unencumbered software released into the public domain`,
			"0BSD":       `Permission to use, copy, modify, and/or distribute`,
			"BSD":        `Redistribution and use in source and binary forms`,
		} {
			if !regexp.MustCompile(says).Match(text) {
				continue
			}
			if name == "BSD" {
				name = "BSD-2-Clause"
				if regexp.MustCompile(`(?i)names?\s+of\s+(the\s+)?(its|any|contributors|copyright|[^.]{0,80}contributors)|endorse or promote`).Match(text) {
					name = "BSD-3-Clause"
				}
			}
			names = append(names, name)
		}
		// the placeholder of the Apache License
		if m := holder.FindSubmatch(text); m != nil && owner == "" && !strings.HasPrefix(string(m[1]), "notice ") {
			name, _, _ := strings.Cut(string(m[1]), "All rights reserved")
			owner = ", Copyright " + strings.TrimRight(strings.Join(strings.Fields(name), " "), ",.")
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " and "), owner
}

func stderrOf(err error) string {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return ": " + string(exit.Stderr)
	}
	return ""
}

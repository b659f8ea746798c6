package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	t.Parallel()
	const revision, at = "bdbaa3b671343b2dc11e3c8993b60f97a8657fc1", "2026-11-21T23:32:13Z"
	build := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "ibid", Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	git := []string{"vcs", "git", "vcs.revision", revision, "vcs.time", at}
	for _, test := range []struct {
		info        *debug.BuildInfo
		short, long string
	}{
		// A release: a tag, a clean tree.
		{build("v0.3.1", append(git, "vcs.modified", "false", "GOOS", "linux", "GOARCH", "arm64", "-tags", "pdfium")...),
			"v0.3.1 (bdbaa3b67134)", "v0.3.1 (bdbaa3b67134, 2026-11-21T23:32:13Z), go1.26.8 linux/arm64, tags pdfium"},
		// A checkout between releases, with changes of its own.
		{build("v0.3.2-0.20261121233213-bdbaa3b67134+dirty", append(git, "vcs.modified", "true", "GOOS", "darwin", "GOARCH", "arm64")...),
			"development (bdbaa3b67134, modified)", "development (bdbaa3b67134, modified, 2026-11-21T23:32:13Z), go1.26.8 darwin/arm64"},
		{build("v0.3.1+dirty", append(git, "vcs.modified", "true")...),
			"v0.3.1 (bdbaa3b67134, modified)", "v0.3.1 (bdbaa3b67134, modified, 2026-11-21T23:32:13Z), go1.26.8"},
		// go run, or a folder without git.
		{build("(devel)", "GOOS", "windows", "GOARCH", "amd64"), "development", "development, go1.26.8 windows/amd64"},
		{build(""), "development", "development, go1.26.8"},
	} {
		if got := versionOf(test.info); got != test.short {
			t.Errorf("versionOf(%s): %q, want %q", test.info.Main.Version, got, test.short)
		}
		if got := builtOf(test.info); got != test.long {
			t.Errorf("builtOf(%s): %q, want %q", test.info.Main.Version, got, test.long)
		}
	}
}

package main

import (
	"runtime/debug"
	"strings"
)

// version names this build in a few words, for pages, replies and protocols:
// the version or the revision.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "ibid (built without version information)"
	}
	return "ibid " + versionOf(info)
}

// built is version with all that tells two builds apart, on one line.
func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version()
	}
	return "ibid " + builtOf(info)
}

// versionOf is the version that a release was tagged with, or what it was built
// from: the revision, or nothing but that it is no release.
func versionOf(info *debug.BuildInfo) string {
	revision := setting(info, "vcs.revision")
	revision = revision[:min(12, len(revision))]
	v := info.Main.Version
	// Between releases the go command makes up a version that ends in the revision.
	if v == "" || v == "(devel)" || revision != "" && strings.Contains(v, revision) {
		v = "development"
	}
	if revision == "" {
		return v
	}
	v = strings.TrimSuffix(v, "+dirty")
	if setting(info, "vcs.modified") == "true" {
		revision += ", modified"
	}
	return v + " (" + revision + ")"
}

// builtOf adds the time of the revision, the Go it was built with, the system it
// is for and the build tags.
func builtOf(info *debug.BuildInfo) string {
	v := versionOf(info)
	if at := setting(info, "vcs.time"); at != "" {
		v = strings.TrimSuffix(v, ")") + ", " + at + ")"
	}
	v += ", " + info.GoVersion
	if system := setting(info, "GOOS"); system != "" {
		v += " " + system + "/" + setting(info, "GOARCH")
	}
	if tags := setting(info, "-tags"); tags != "" {
		v += ", tags " + tags
	}
	return v
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

//go:build race

package retrieve_test

// raceDetector is on, and everything takes ten times as long.
const raceDetector = true

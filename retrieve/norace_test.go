//go:build !race

package retrieve_test

const raceDetector = false

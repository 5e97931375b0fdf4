//go:build race

package proto

// raceDetector says that the race detector watches: tests of what is random and
// not concurrent have a smaller programme then, and their whole one without it.
const raceDetector = true

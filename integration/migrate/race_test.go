//go:build race

package migrate_test

// raceDetector says that the race detector watches, which needs several times the
// memory of what it watches.
const raceDetector = true

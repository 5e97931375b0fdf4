//go:build !race

package migrate_test

const raceDetector = false

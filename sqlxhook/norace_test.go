//go:build !race

package sqlxhook_test

const raceDetector = false

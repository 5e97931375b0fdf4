//go:build !race

package gormplugin_test

const raceDetector = false

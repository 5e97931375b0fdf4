//go:build !race

package proto

const raceDetector = false

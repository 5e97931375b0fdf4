//go:build !race

package snowflake

const raceDetector = false

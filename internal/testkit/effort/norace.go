//go:build !race

package effort

// Race says that the race detector watches.
const Race = false

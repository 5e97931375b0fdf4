package main

import "fmt"

// goal is what a benchmark is to reach: a ratio to another one in the same
// round, or, without to, a value of its own.
type goal struct {
	what string
	key  key
	to   key
	most float64
}

const nsPerID = "ns/op"

// next is the key of a subject of BenchmarkNext.
func next(subject string, goroutines int) key {
	return key{fmt.Sprintf("Next/%s/goroutines=%d", subject, goroutines), nsPerID}
}

const (
	atomicAdd = "atomic_add"
	clockRead = "time.Since"
)

var goals = []goal{
	{"segment", next("segment", 1), next(atomicAdd, 1), 1.2},
	{"segment, through the interface with ctx and error", next("segment_interface", 1), next(atomicAdd, 1), 1.3},
	{"segment, 2 goroutines", next("segment", 2), next(atomicAdd, 2), 1.5},
	{"segment, 8 goroutines", next("segment", 8), next(atomicAdd, 8), 1.5},
	{"segment, `Fill` of 64", next("segment_Fill(64)", 1), next(atomicAdd, 1), 0.25},
	{"cached", next("cached", 1), next(atomicAdd, 1), 1.5},
	{"cached, 2 goroutines", next("cached", 2), next(atomicAdd, 2), 1.5},
	{"cached, 8 goroutines", next("cached", 8), next(atomicAdd, 8), 1.5},
	{"cached, `Fill` of 64", next("cached_Fill(64)", 1), next(atomicAdd, 1), 0.25},
	{"snowflake", next("snowflake", 1), next(clockRead, 1), 1.35},
	{"snowflake, 2 goroutines", next("snowflake", 2), next(atomicAdd, 2), 1.5},
	{"snowflake, 8 goroutines", next("snowflake", 8), next(atomicAdd, 8), 1.5},
	{"snowflake, `Fill` of 64", next("snowflake_Fill(64)", 1), next(atomicAdd, 1), 0.25},
	{"segment, p99.99 with a database of 5 ms, ns", key{"Latency/segment", "p99.99-ns"}, key{}, 200},
	{"segment, errors while a database of 5 ms is slower than the callers", key{"SlowSource/segment/latency=5ms", "errors"}, key{}, 0},
	{"segment, errors while a database of 30 ms is slower than the callers", key{"SlowSource/segment/latency=30ms", "errors"}, key{}, 0},
}

// reached returns what the goal's benchmark reached in each round: ratios, or
// the values themselves.
func (r *results) reached(g goal) []float64 {
	if g.to == (key{}) {
		return r.values[g.key]
	}
	return r.ratios(g.key, g.to)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// results are the benchmarks' results, and the description of the machine.
type results struct {
	names   []string // in the order of the first round
	values  map[key][]float64
	rounds  int
	about   map[string]string // cpu, load
	modules []string          // "path version"
}

// key names a benchmark and a unit, such as "Next/segment/goroutines=1" and "ns/op". It has
// one value for each round.
type key struct{ name, unit string }

// parse reads the output of `go test -bench`, of one round after the other.
func parse(in io.Reader) (*results, error) {
	r := &results{values: map[key][]float64{}, about: map[string]string{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := r.line(lines.Text()); err != nil {
			return nil, err
		}
	}
	if len(r.names) == 0 {
		return nil, errors.New("there are no benchmarks in the input; give it the output of go test -bench")
	}
	return r, lines.Err()
}

func (r *results) line(line string) error {
	if name, ok := strings.CutPrefix(line, "Benchmark"); ok {
		return r.benchmark(name)
	}
	if strings.HasPrefix(line, "--- FAIL") || line == "FAIL" {
		return errors.New("a benchmark failed; its output says why")
	}
	if what, is, ok := strings.Cut(line, ": "); ok {
		if what == "module" {
			r.modules = append(r.modules, is)
		} else {
			r.about[what] = is
		}
	}
	return nil
}

// benchmark reads "Next/x-2  1000  3.5 ns/op  0 B/op", Benchmark being cut off.
func (r *results) benchmark(line string) error {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return nil // its name alone, printed before its log
	}
	name := withoutProcs(fields[0])
	if !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
	for pair := range slices.Chunk(fields[2:], 2) {
		v, err := strconv.ParseFloat(pair[0], 64)
		if err != nil || len(pair) < 2 {
			return fmt.Errorf("this is not a benchmark's result: %q", line)
		}
		k := key{name, pair[1]}
		r.values[k] = append(r.values[k], v)
		r.rounds = max(r.rounds, len(r.values[k]))
	}
	return nil
}

// withoutProcs cuts off the number of processors that go test adds to names.
func withoutProcs(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name
	}
	if _, err := strconv.Atoi(name[i+1:]); err != nil {
		return name
	}
	return name[:i]
}

// median is of all rounds; NaN when there is none.
func (r *results) median(k key) float64 { return median(r.values[k]) }

// ratio is the median of the rounds' ratios. Noise that lasts for a whole
// round does not change a ratio.
func (r *results) ratio(k, to key) float64 { return median(r.ratios(k, to)) }

func (r *results) ratios(k, to key) []float64 {
	var ratios []float64
	for i, v := range r.values[k] {
		if base := r.values[to]; i < len(base) && base[i] > 0 {
			ratios = append(ratios, v/base[i])
		}
	}
	return ratios
}

// differences returns for each round by how much the benchmark took longer than the other one.
func (r *results) differences(k, to key) []float64 {
	var differences []float64
	for i, v := range r.values[k] {
		if base := r.values[to]; i < len(base) {
			differences = append(differences, v-base[i])
		}
	}
	return differences
}

// spread is half the distance between the quartiles, as a share of the median.
func (r *results) spread(k key) float64 {
	low, high := quartiles(r.values[k])
	return (high - low) / 2 / r.median(k)
}

// quartiles returns the values that bound the middle half.
func quartiles(v []float64) (low, high float64) {
	if len(v) == 0 {
		return math.NaN(), math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/4], v[(len(v)*3-1)/4]
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

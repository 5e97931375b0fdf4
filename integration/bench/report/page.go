// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// page writes BENCHMARKS.md.
type page struct {
	out       io.Writer
	results   *results
	goVersion string
	cores     int
	date      time.Time
	err       error
}

func (p *page) write() error {
	p.printf("# Benchmarks\n\n")
	p.lead()
	p.printf("%s", intro)
	p.machine()
	for i, s := range sections {
		p.goals(s)
		if i == 0 {
			p.floors()
		}
	}
	p.routing()
	p.subjects()
	p.latency()
	p.slowSource()
	return p.err
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// lead writes the charts, two side by side if the page is wide enough.
func (p *page) lead() {
	for _, c := range p.results.lead() {
		p.printf(`<picture><source media="(prefers-color-scheme: dark)" srcset="%s"><img alt="%s" src="%s" width="%d" align="top"></picture>
`, path.Join(picturesAt, c.fileIn("dark")), html.EscapeString(c.alt()), path.Join(picturesAt, c.fileIn("light")), chartWidth)
	}
	p.printf(`
MariaDB and the benchmark share %d processors, so the time of a statement varies by
more than shardid adds. The second picture shows only what is added, measured with a driver that answers
at once. The query of the newest rows asks eight shards at the same time, which share these
processors. `, p.cores)
	if change, pause := p.results.median(followed), p.results.median(pauseOfSwitch); !math.IsNaN(change + pause) {
		p.printf("A migration follows %s changes a second, and its switch locked\nthe tables for %s ms without writers. ", number(1e9/change), number(pause))
	}
	p.printf(`Segments come from memory here, and the snowflakes
can make more than a million ids in a millisecond. With the usual 12 bits of sequence, any implementation is limited to
4.1 million a second. The tables below have all numbers, and the goals.

`)
}

const intro = `## How it is measured

` + "`make bench`" + ` writes this page and takes about a quarter of an hour. Run it on
your own machine while no other program uses it. In each round all benchmarks run one after
the other; those of the generators are in one
binary. The tables show medians over the rounds.

How to read it:

* **ns for each id** is the elapsed time divided by the number of ids that all
  goroutines took. Two goroutines without contention would halve it.
* **× atomic add** compares with ` + "`atomic.Int64.Add`" + ` in the same round and with as
  many goroutines. No shared counter that gives numbers
  one by one costs less. Ratios differ less between machines than
  nanoseconds do. But on a machine with a cheap atomic addition, a call and
  a comparison are a larger part of the total.
* A generator of ids that contain the time reads the clock for each id, so it cannot be faster than
  ` + "`time.Since`" + `.

`

func (p *page) machine() {
	r := p.results
	p.printf("## Machine\n\n%s, %d cores, %s, %s, %d rounds.", r.about["cpu"], p.cores, p.goVersion, p.date.Format(time.DateOnly), r.rounds)
	if load := r.about["load"]; load != "" {
		p.printf(" The load average was %s when the run began.", load)
	}
	p.printf(" Half of a benchmark's rounds lie within %.0f %% of its median; the benchmark that varies most is %s\n\n", 100*p.usualSpread(), p.leastSteady())
	p.printf("Compared with")
	for i, m := range r.modules {
		p.printf("%s `%s`", separator(i, len(r.modules)), m)
	}
	p.printf(".\n\n")
}

func separator(i, n int) string {
	switch i {
	case 0:
		return ""
	case n - 1:
		return " and"
	default:
		return ","
	}
}

func (p *page) usualSpread() float64 {
	var all []float64
	for _, name := range p.results.names {
		if s := p.results.spread(key{name, nsPerID}); !math.IsNaN(s) {
			all = append(all, s)
		}
	}
	return median(all)
}

func (p *page) leastSteady() string {
	worst, at := 0.0, ""
	for _, name := range p.results.names {
		if s := p.results.spread(key{name, nsPerID}); s > worst {
			worst, at = s, name
		}
	}
	return fmt.Sprintf("`%s` with %.0f %%.", at, 100*worst)
}

// goals writes a section's table, or nothing when none of its benchmarks ran.
func (p *page) goals(s section) {
	if !slices.ContainsFunc(s.goals, func(g goal) bool { return len(p.results.reached(g)) > 0 }) {
		return
	}
	p.printf("## %s\n\n%s\n\n", s.title, s.intro)
	p.printf("| | %s | compared with | ratio | middle half | goal | reached |\n|---|--:|---|--:|--:|--:|---|\n", s.unit)
	for _, g := range s.goals {
		p.goal(g)
	}
	p.printf("\n")
}

// goal writes a row, or nothing when there is no such benchmark.
func (p *page) goal(g goal) {
	rounds := p.results.reached(g)
	if len(rounds) == 0 {
		return
	}
	reached, most, verdict := median(rounds), fmt.Sprintf("≤ %.2f", g.most), "yes"
	switch {
	case g.most == noGoal:
		most, verdict = "–", "–"
	case reached > g.most:
		verdict = "**no**"
	}
	low, high := quartiles(rounds)
	if g.to == (key{}) {
		if g.most != noGoal {
			most = "≤ " + number(g.most)
		}
		p.printf("| %s | | | %s | %s–%s | %s | %s |\n", g.what, number(reached), number(low), number(high), most, verdict)
		return
	}
	p.printf("| %s | %s | %s %s | %.2f | %.2f–%.2f | %s | %s |\n", g.what, number(p.results.median(g.key)),
		title(subjectOf(g.to.name)), number(p.results.median(g.to)), reached, low, high, most, verdict)
}

// floors compares the generators with the least that any generator of their kind must do. This
// shows whether the code or the machine is the reason for a missed goal.
func (p *page) floors() {
	const call, clocked = "atomic_add_interface", "time.Since,_atomic_add"
	r := p.results
	limit, bare := next("atomic_add_and_a_limit", 1), next(atomicAdd, 1)
	p.printf("A segment ends, so its generator must compare the sum with a limit. An addition\nwith such a comparison takes %s × as long as the addition alone, and\nan addition in a called function %s ×. segment takes %s × as long as addition and\ncomparison, and cached %s ×. Their Next is inlined. No generator of segments can be faster than\naddition and comparison. Called through an interface, an addition takes %s × as long as without it; segment\ntakes %s × as long as that. ",
		number(r.ratio(limit, bare)), number(r.ratio(next("atomic_add_in_a_call", 1), bare)), number(r.ratio(next("segment", 1), limit)), number(r.ratio(next("cached", 1), limit)),
		number(r.ratio(next(call, 1), bare)), number(r.ratio(next("segment_interface", 1), next(call, 1))))
	p.printf("If ids rise over all goroutines and contain the time, each id needs at least a reading of the\nclock and an addition to a shared counter. Both together take")
	for i, n := range []int{1, 2, 8} {
		p.printf("%s %s", separator(i, 3), number(r.ratio(next(clocked, n), next(atomicAdd, n))))
	}
	p.printf(" × as long as the addition\nalone with 1, 2 and 8 goroutines; snowflake takes")
	for i, n := range []int{1, 2, 8} {
		p.printf("%s %s", separator(i, 3), number(r.ratio(next("snowflake", n), next(clocked, n))))
	}
	p.printf(" × as long as both.\n\n")
	alone := r.median(next(atomicAdd, 1))
	p.printf("A `Fill` of 64 with snowflake reads the clock once. This is %s ns for\neach id, or %s × the addition alone.\n\n",
		number(r.median(next("time.Since", 1))/64), number(r.median(next("time.Since", 1))/64/alone))
}

// routing writes what shardid and go-gorm/sharding add to a statement.
func (p *page) routing() {
	p.printf(`## What routing adds to a statement

GORM, database/sql and sqlx use a driver that answers at once, so that only the time
before the database is measured. There are four tables, and rows have their ids. The goals
are 800 ns and 4 allocations for a statement, 500 ns for one on a home table, and 3 %% for
a batch of 1000 rows on one shard. "second pool" is the least that any pool over other pools adds: a
driver that only passes a statement to another *sql.DB. A negative number says that the rounds differ by
more than is added.

| | plain, ns | allocations | second pool adds, ns | allocations | shardid adds, ns | allocations | go-gorm/sharding adds, ns | allocations |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
`)
	for _, statement := range p.statements() {
		p.printf("| %s | %s | %s |", title(statement), number(p.results.median(routed(statement, "plain", nsPerID))), number(p.results.median(routed(statement, "plain", allocs))))
		for _, who := range []string{secondPool, shardid, peer} {
			p.printf(" %s | %s |", number(p.adds(statement, who, nsPerID)), number(p.adds(statement, who, allocs)))
		}
		p.printf("\n")
	}
	p.printf("\n")
}

const allocs = "allocs/op"

func routed(statement, who, unit string) key {
	return key{"Routing/" + statement + "/" + who, unit}
}

// statements returns those that BenchmarkRouting measured.
func (p *page) statements() (all []string) {
	for _, s := range p.named("Routing/") {
		if statement, plain := strings.CutSuffix(s, "/plain"); plain {
			all = append(all, statement)
		}
	}
	return all
}

// adds is the median over the rounds of the difference to plain GORM.
func (p *page) adds(statement, who, unit string) float64 {
	return median(p.results.differences(routed(statement, who, unit), routed(statement, "plain", unit)))
}

// subjects writes the table of everything that BenchmarkNext measured.
func (p *page) subjects() {
	p.printf("## All generators\n\n| | 1 goroutine, ns | × atomic add | 2, ns | × | 8, ns | × | allocations |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range p.named("Next/") {
		p.printf("| %s |", title(s))
		for _, n := range []int{1, 2, 8} {
			k := next(s, n)
			p.printf(" %s | %s |", number(p.results.median(k)), number(p.results.ratio(k, next(atomicAdd, n))))
		}
		p.printf(" %s |\n", number(p.results.median(key{next(s, 1).name, allocs})))
	}
	code := p.results.median(key{"WithoutWaits/sony/sonyflake/goroutines=1", nsPerID})
	p.printf(`
"wide" layouts have two million ids or more in a millisecond, so that the
code is the limit and not the layout. With the usual 12 bits of sequence a worker has 4096 ids in
a millisecond, which is 244 ns for each in any implementation; sonyflake's 8
bits in 10 ms are 39,063 ns, and its code without the waits takes %s ns.
The source of segment is in memory and gives a million ids at a time, so that only
the generator is measured. What more than %d cores would change, especially to "segment striped",
which is made for many cores, was not measured.

`, number(code), p.cores)
}

// named returns the subjects of the benchmarks whose names have the prefix.
func (p *page) named(prefix string) []string {
	var subjects []string
	for _, name := range p.results.names {
		if strings.HasPrefix(name, prefix) && !slices.Contains(subjects, subjectOf(name)) {
			subjects = append(subjects, subjectOf(name))
		}
	}
	return subjects
}

func (p *page) latency() {
	p.printf("## Single calls\n\nOne goroutine measures each call. The first row is the time of the measurement itself, which is\npart of all other rows. segment's source takes 5 ms to answer.\n\n| ns | p50 | p99 | p99.99 |\n|---|--:|--:|--:|\n")
	for _, s := range p.named("Latency/") {
		p.printf("| %s |", title(s))
		for _, unit := range []string{"p50-ns", "p99-ns", "p99.99-ns"} {
			p.printf(" %s |", number(p.results.median(key{"Latency/" + s, unit})))
		}
		p.printf("\n")
	}
	p.printf("\n")
}

func (p *page) slowSource() {
	p.printf(`## A source that is slower than its callers

Eight goroutines request ids without a pause for two seconds. Segments have a
thousand ids, and the source answers after the given time and never fails. Each call
should wait and get an id. (Leaf's double buffer returns an error when its
second segment has not arrived yet: 16 errors with 5 ms and 102 with 30 ms in
two seconds, in a separate measurement in Java that is not part of this run.)

| | calls | errors |
|---|--:|--:|
`)
	for _, latency := range []string{"5ms", "30ms"} {
		name := "SlowSource/segment/latency=" + latency
		p.printf("| segment, %s | %s | %s |\n", latency, number(p.results.median(key{name, "calls"})), number(p.results.median(key{name, "errors"})))
	}
}

// subjectOf returns the part of a benchmark's name that names the measured case.
func subjectOf(name string) string {
	_, s, _ := strings.Cut(name, "/")
	if i := strings.Index(s, "/goroutines="); i >= 0 {
		s = s[:i]
	}
	return s
}

// underscored is a title as go test prints it.
func underscored(title string) string { return strings.ReplaceAll(title, " ", "_") }

// title is the name of a subject before go test replaced its spaces.
func title(subject string) string { return strings.ReplaceAll(subject, "_", " ") }

// number writes a value with three significant digits.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v < 0:
		return "-" + number(-v)
	case v >= 100 || v == math.Trunc(v):
		return thousands(fmt.Sprintf("%.0f", v))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

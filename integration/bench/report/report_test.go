// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

const output = `module: example.com/peer v1.2.3
load: 0.10
cpu: A Machine
BenchmarkNext/atomic_add/goroutines=1-2   100   2.000 ns/op   0 B/op   0 allocs/op
BenchmarkNext/segment/goroutines=1-2      100   3.000 ns/op   0 B/op   0 allocs/op
PASS
BenchmarkNext/atomic_add/goroutines=1-2   100   4.000 ns/op   0 B/op   0 allocs/op
BenchmarkNext/segment/goroutines=1-2      100   4.400 ns/op   0 B/op   0 allocs/op
PASS
BenchmarkNext/atomic_add/goroutines=1-2   100   2.000 ns/op   0 B/op   0 allocs/op
BenchmarkNext/segment/goroutines=1-2      100   2.200 ns/op   0 B/op   0 allocs/op
BenchmarkMigrate/mysqldump_to_mysql-2      1     12000 ns/row
BenchmarkMigrate/shardid-2                1     30 MB   5000 copy-ns/row   6000 ns/row
BenchmarkMigrateOnPostgreSQL/shardid_follows-2    1     40 pause-ms   50000 ns/row
BenchmarkRouting/create/plain-2           100   100.0 ns/op   9 B/op   30 allocs/op
BenchmarkRouting/create/second_pool-2     100   110.0 ns/op   9 B/op   33 allocs/op
BenchmarkRouting/create/shardid-2         100   130.0 ns/op   9 B/op   32 allocs/op
BenchmarkRouting/database/sql,_by_key/plain-2    100   10.0 ns/op   9 B/op   6 allocs/op
BenchmarkRouting/database/sql,_by_key/shardid-2  100   12.0 ns/op   9 B/op   9 allocs/op
BenchmarkStatements/MariaDB/gorm,_by_key/plain-2            100   100.0 ns/op
BenchmarkStatements/MariaDB/gorm,_by_key/shardid-2          100   105.0 ns/op
BenchmarkStatements/MariaDB/gorm,_by_key/go-gorm/sharding-2 100   210.0 ns/op
BenchmarkStatements/SQLite/gorm,_latest_20/plain-2          100   100.0 ns/op
BenchmarkStatements/SQLite/gorm,_latest_20/shardid-2        100   300.0 ns/op
BenchmarkSpanning/lookup/by_key-2                           100   100.0 ns/op
BenchmarkSpanning/lookup/by_address,_two_databases-2        100   190.0 ns/op
BenchmarkSpanning/transaction/one_database-2                100   400.0 ns/op
BenchmarkSpanning/transaction/two,_Atomic-2                 100  1000.0 ns/op
PASS
`

func parsed(t *testing.T) *results {
	t.Helper()
	r, err := parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARatioIsTheMedianOfTheRoundsRatios(t *testing.T) {
	r := parsed(t)
	if got := r.ratio(next("segment", 1), next(atomicAdd, 1)); math.Abs(got-1.1) > 1e-9 {
		t.Errorf("ratio %v, want 1.1", got)
	}
	if got := r.median(next("segment", 1)); got != 3 {
		t.Errorf("median %v, want 3", got)
	}
	if r.rounds != 3 {
		t.Errorf("%d rounds", r.rounds)
	}
}

func TestThePageHasGoalsMachineAndModules(t *testing.T) {
	var out bytes.Buffer
	p := &page{out: &out, results: parsed(t), goVersion: "go1.2", cores: 2, date: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	if err := p.write(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"A Machine, 2 cores, go1.2, 2026-01-02, 3 rounds. The load average was 0.10",
		"`example.com/peer v1.2.3`",
		"| segment | 3 | atomic add 2 | 1.10 | 1.10–1.50 | ≤ 1.20 | yes |",
		"| create | 100 | 30 | 10 | 3 | 30 | 2 | – | – |",
		"| database/sql, by key | 10 | 6 | – | – | 2 | 3 | – | – |",
		"| MariaDB: gorm, by key | 105 | MariaDB/gorm, by key/plain 100 | 1.05 | 1.05–1.05 | ≤ 1.03 | **no** |",
		"| MariaDB: gorm, by key | 105 | MariaDB/gorm, by key/go-gorm/sharding 210 | 0.50 | 0.50–0.50 | ≤ 1.00 | yes |",
		"| SQLite: gorm, latest 20 | 300 | SQLite/gorm, latest 20/plain 100 | 3.00 | 3.00–3.00 | – | – |",
		"| copy and comparison | 6,000 | mysqldump to mysql 12,000 | 0.50 | 0.50–0.50 | ≤ 0.67 | yes |",
		"## What it costs to leave one database\n",
		"| by address, two databases | 190 | lookup/by key 100 | 1.90 | 1.90–1.90 | – | – |",
		"| transaction on two databases, Atomic | 1,000 | transaction/one database 400 | 2.50 | 2.50–2.50 | – | – |",
		"| pause of a switch, ms | | | 40 | 40–40 | – | – |",
		"| memory of the process, MB | | | 30 | 30–30 | ≤ 64 | yes |",
		"| atomic add | 2 | 1 | – | – | – | – | 0 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "Goals of GORM") {
		t.Error("there is a section of benchmarks that did not run")
	}
}

func TestAMissedGoalIsSaid(t *testing.T) {
	r := parsed(t)
	var out bytes.Buffer
	g := goal{"x", next("segment", 1), next(atomicAdd, 1), 1.05}
	(&page{out: &out, results: r}).goal(g)
	if !strings.Contains(out.String(), "**no**") {
		t.Error(out.String())
	}
}

func TestAFailedOrEmptyRunIsAnError(t *testing.T) {
	for _, in := range []string{"", "PASS\n", output + "--- FAIL: BenchmarkNext\nFAIL\n", "BenchmarkX-2 1 fast ns/op\n"} {
		if r, err := parse(strings.NewReader(in)); err == nil {
			t.Errorf("%q gave %+v", in, r)
		}
	}
}

func TestNumbersHaveThreeDigitsThatMatter(t *testing.T) {
	for v, want := range map[float64]string{-875: "-875", -2763: "-2,763", -0.5: "-0.50", 0.7227: "0.72", 3.936: "3.94", 35.81: "35.8", 243.2: "243", 38201: "38,201", 1234567: "1,234,567", 0: "0"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

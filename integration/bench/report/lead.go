// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
)

// lead returns the charts at the beginning of the page. They answer the questions of developers who do not use
// shardid yet.
func (r *results) lead() (all []*chart) {
	for _, c := range []*chart{r.statementsChart(), r.routingChart(), r.migrationChart(), r.idsChart()} {
		if !c.empty() {
			all = append(all, c)
		}
	}
	return all
}

const (
	shardid = "shardid"
	peer    = "go-gorm/sharding"
	// secondPool passes statements to another pool, and does nothing else.
	secondPool = "second_pool"
)

// statementsChart compares statements of GORM on MariaDB with the same statements on one table.
func (r *results) statementsChart() *chart {
	c := &chart{
		file: "statements", title: "How much slower is my insert, my query?", mark: 1,
		notes: []string{
			"GORM on MariaDB. One table without sharding takes 1.",
			"Shorter is better. A line is the middle half of the rounds.",
		},
	}
	c.add("INSERT of 1000 rows, ids not by AUTO_INCREMENT", r.relative(shardid, "Gorm1000Rows/mariadb/filled", "Gorm1000Rows/mariadb/database"))
	for _, s := range []struct{ title, what string }{
		{"INSERT of 1000 rows into their shard", "gorm, 1000 rows"},
		{"SELECT by key", "gorm, by key"},
		{"SELECT from a table that is not sharded", "gorm, home table"},
		{"SELECT of the newest 20 rows in all 8 shards", "gorm, latest 20"},
	} {
		name := "Statements/MariaDB/" + underscored(s.what) + "/"
		c.add(s.title, r.relative(shardid, name+shardid, name+"plain"), r.relative(peer, name+peer, name+"plain"))
	}
	return c
}

// routingChart shows the time that is added to a statement before it is sent.
func (r *results) routingChart() *chart {
	c := &chart{
		file: "routing", title: "What does it add to a statement?",
		notes: []string{"Microseconds before it is sent to the database.", "Shorter is better."},
	}
	for _, s := range []struct{ title, what string }{
		{"GORM: create of a row", "create"},
		{"GORM: first by key", "first_by_key"},
		{"GORM: update by key", "update_by_key"},
		{"GORM: table that is not sharded", "home_table"},
		{"database/sql: select by key", "database/sql,_by_key"},
		{"sqlx: select by key", "sqlx,_by_key"},
	} {
		added := func(who string) bar {
			return summed(title(who), r.differences(routed(s.what, who, nsPerID), routed(s.what, "plain", nsPerID)), func(ns float64) float64 { return ns / 1000 })
		}
		c.add(s.title, added(shardid), added(secondPool), added(peer))
	}
	return c
}

// migrationChart shows how fast a million rows reach other servers.
func (r *results) migrationChart() *chart {
	c := &chart{
		file: "migration", title: "How fast is a migration?",
		notes: []string{"Thousand rows a second, of a million rows of 250 bytes.", "Longer is better."},
	}
	rows := func(who string, k key) bar {
		b := summed(who, r.values[k], func(ns float64) float64 { return 1e6 / ns })
		b.ours = k.name == "Migrate/shardid"
		return b
	}
	c.add("shardid, into shards, with triggers for writers",
		rows("copy", key{"Migrate/shardid", "copy-ns/row"}),
		rows("copy and compare", key{"Migrate/shardid", nsPerRow}))
	c.add("Into one table, not compared, without writers",
		rows("INSERT SELECT", byInsertSelect), rows("mydumper", byMydumper), rows("mysqldump", byDump))
	return c
}

// idsChart shows generators beside those of other libraries.
func (r *results) idsChart() *chart {
	c := &chart{
		file: "ids", title: "How many ids a second?",
		notes: []string{"Millions, of all goroutines of a process together.", "Longer is better."},
	}
	for _, n := range []int{1, 8} {
		ids := func(who, subject string, ours bool) bar {
			b := summed(who, r.values[next(subject, n)], func(ns float64) float64 { return 1000 / ns })
			b.ours = ours
			return b
		}
		c.add(map[int]string{1: "1 goroutine", 8: "8 goroutines"}[n],
			ids("segment", "segment", true),
			ids("snowflake", "snowflake", true),
			ids("bwmarrin/snowflake", "bwmarrin/snowflake_wide", false),
			ids("rs/xid", "rs/xid", false),
			ids("google/uuid v4", "google/uuid_v4", false),
			ids("oklog/ulid", "oklog/ulid", false),
			ids("google/uuid v7", "google/uuid_v7", false))
	}
	return c
}

// relative is a bar of the rounds' ratios of one benchmark to another.
func (r *results) relative(who, name, to string) bar {
	return summed(who, r.ratios(key{name, nsPerID}, key{to, nsPerID}), func(ratio float64) float64 { return ratio })
}

// summed is a bar of the rounds' values in the chart's unit; without rounds its value is NaN.
func summed(who string, rounds []float64, unit func(float64) float64) bar {
	values := make([]float64, len(rounds))
	for i, v := range rounds {
		values[i] = unit(v)
	}
	low, high := quartiles(values)
	return bar{who: who, ours: who == shardid, value: median(values), low: low, high: high}
}

// alt describes the chart in words.
func (c *chart) alt() string {
	var said []string
	for _, g := range c.groups {
		var bars []string
		for _, b := range g.bars {
			bars = append(bars, b.who+" "+number(b.value))
		}
		said = append(said, g.name+": "+strings.Join(bars, ", "))
	}
	return strings.Join(c.notes, " ") + " " + strings.Join(said, "; ") + "."
}

// picturesAt is where the page finds its pictures.
const picturesAt = "docs/images"

func (c *chart) fileIn(theme string) string { return "bench-" + c.file + "-" + theme + ".svg" }

// writeCharts writes the charts into a folder, each for a light and for a dark page.
func (r *results) writeCharts(dir string) error {
	for _, c := range r.lead() {
		for theme, in := range themes {
			if err := os.WriteFile(filepath.Join(dir, c.fileIn(theme)), []byte(c.svg(in)), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

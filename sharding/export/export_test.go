// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

var update = flag.Bool("update", false, "write the golden files")

// spread distributes a table over east and west.
func spread(t testing.TB, name, key string, rule sharding.Rule, tables int) sharding.Table {
	t.Helper()
	layout, err := sharding.Spread([]string{"east", "west"}, tables, name+"_%02d")
	if err != nil {
		t.Fatal(err)
	}
	return sharding.Table{Name: name, Key: key, Rule: rule, Map: layout}
}

// slots assigns slots to targets by the list.
func slots(t testing.TB, name, key string, rule sharding.Rule, targets ...sharding.Target) sharding.Table {
	t.Helper()
	layout, err := sharding.MapOf(targets...)
	if err != nil {
		t.Fatal(err)
	}
	return sharding.Table{Name: name, Key: key, Rule: rule, Map: layout}
}

func router(t testing.TB, options ...sharding.Option) *sharding.Router {
	t.Helper()
	r, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)}, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inGroup puts a table into a group.
func inGroup(t sharding.Table, group string) sharding.Table {
	t.Group = group
	return t
}

// withGene gives a table an id that carries the slot.
func withGene(t sharding.Table, rule sharding.Rule) sharding.Table {
	t.Also = []sharding.Alt{{Column: "id", Rule: rule, From: 1000}}
	return t
}

// golden compares the files of an export with those in testdata.
func golden(t *testing.T, dir string, out export.Export) {
	t.Helper()
	files := append([]export.File{}, out.Files...)
	files = append(files, export.File{Name: "notes.txt", Text: strings.Join(out.Notes, "\n") + "\n"})
	for _, f := range files {
		path := filepath.Join("testdata", dir, f.Name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(f.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || f.Text != string(want) {
			t.Errorf("%s differs (%v); got\n%s", path, err, f.Text)
		}
	}
	if on, err := os.ReadDir(filepath.Join("testdata", dir)); err != nil || len(on) != len(files) {
		t.Errorf("testdata/%s has %d files (%v), the export %d", dir, len(on), err, len(files))
	}
}

// refused checks that each of the tables is refused, with the text.
func refused(t *testing.T, err error, table, says string) {
	t.Helper()
	var r *export.RefusedError
	if !errors.As(err, &r) || !errors.Is(err, export.ErrInexact) || r.Table != table || !strings.Contains(err.Error(), says) {
		t.Errorf("%v; want a refusal of %s with %q", err, table, says)
	}
}

// keys are keys at the limits of arithmetic, and many others.
func keys() []int64 {
	all := []int64{0, 1, -1, 2, -2, 9223372036854775807, -9223372036854775808, 1 << 32, -1 << 32}
	k := uint64(88172645463325252)
	for range 1000 {
		k ^= k << 13
		k ^= k >> 7
		k ^= k << 17
		all = append(all, int64(k), int64(k%100000))
	}
	return all
}

// target returns the router's target for a key of the table t.
func target(t testing.TB, r *sharding.Router, key any) string {
	t.Helper()
	at, err := r.Target("t", key)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(at)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
)

func TestAMistakeIsToldWithWhatToGiveInstead(t *testing.T) {
	plain := newConfig(t, shardsJSON)
	users := newConfig(t, pageBlock(t, "json"))
	ids := newFile(t, execute(t, "schema", "--dialect", "sqlite").stdout)
	versions, none := t.TempDir(), t.TempDir()
	twice := t.TempDir()
	for _, file := range []string{filepath.Join(versions, "00001_orders.sql"), filepath.Join(twice, "00001_orders.sql"), filepath.Join(twice, "1_again.sql")} {
		if err := os.WriteFile(file, []byte("-- +goose Up\nCREATE TABLE orders (user_id BIGINT);\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ddl := func(verb string, args ...string) []string {
		return append([]string{"ddl", verb, "--config", plain, "--dir", versions}, args...)
	}
	lookup := func(config string, args ...string) []string {
		return append([]string{"lookup", "verify", "--config", config}, args...)
	}
	serve := func(args ...string) []string { return append([]string{"serve", "--source", ids}, args...) }
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"doctor, negative time":     {[]string{"doctor", "--config", plain, "--timeout", "-5s"}, "it must be between 1ms and 168h; see shardid doctor --help"},
		"doctor, time without unit": {[]string{"doctor", "--config", plain, "--timeout", "5"}, `"5" is not a duration; write a number with a unit: 500ms, 10s, 1h`},
		"doctor, rows of words":     {[]string{"doctor", "--config", plain, "--rows", "all"}, `"all" is not a whole number`},
		"doctor, a directory":       {[]string{"doctor", "--config", none}, "is a directory; name the file that says where rows lie, as in shardid export --help"},
		"audit, a directory":        {[]string{"audit", "--config", plain, "--table", "orders", "--ids", none}, "is a directory; name a file with one id per line"},
		"ddl without files":         {[]string{"ddl", "up", "--config", plain, "--dir", none}, "there are none; name them like 00001_orders.sql"},
		"ddl without directory":     {[]string{"ddl", "up", "--config", plain, "--dir", filepath.Join(none, "x")}, "is not a directory that can be read; name the directory with the files, such as 00001_orders.sql"},
		"adopt without version":     {ddl("adopt"), "which is the last version that the tables have? give --to"},
		"resolve without table":     {ddl("resolve", "--version", "1", "--done"), "give --version, and --table as database/table"},
		"resolve without answer":    {ddl("resolve", "--version", "1", "--table", "east/orders_00"), "give --done if it was, --not-done if it was not"},
		"resolve with both answers": {ddl("resolve", "--version", "1", "--table", "east/orders_00", "--done", "--not-done"), "give --done if it was, --not-done if it was not"},
		"ddl up to no version":      {ddl("up", "--to", "9"), "no file has version 9; the newest is 1"},
		"ddl with a number twice":   {[]string{"ddl", "up", "--config", plain, "--dir", twice}, "found duplicate migration version 1: existing:00001_orders.sql; current:1_again.sql"},
		"unchecked export to fdw":   {[]string{"export", "fdw", "--config", plain, "--unchecked"}, "--unchecked is for vitess"},
		"no lookup in the file":     {lookup(newConfig(t, strings.Replace(shardsJSON, "{", `{"home": "east",`, 1))), `no table of the file has "lookups"`},
		"no home in the file":       {lookup(plain), `give "home", the database of the tables that are not sharded`},
		"lookup without a name":     {lookup(users), "which lookup? give --table users --column email"},
		"unknown lookup":            {lookup(users, "--table", "users", "--column", "name"), `no lookup of table "users" by column "name"; give --table users --column email`},
		"serve without namespace":   {serve("--namespace", ""), "--namespace is empty; give the name that the servers share"},
		"serve without tables":      {[]string{"serve", "--source", newFile(t, "CREATE TABLE t (id INTEGER)")}, "--source: no ids can be given from this database"},
		"serve at no port":          {serve("--listen", "127.0.0.1:99999"), "give a free address of this machine"},
		"serve without token file":  {serve("--token-file", filepath.Join(none, "token")), "does not exist; name a file with a token"},
		"source of another kind":    {[]string{"inspect", "--source", "https://db/shop"}, `"https" is not the scheme of a database; give user:password@tcp(host:3306)/shop`},
	} {
		t.Run(name, func(t *testing.T) {
			o := execute(t, test.args...)
			if o.code != command.ExitInput || !strings.Contains(o.stderr, test.says) || !oneSentence(o.stderr) || o.stdout != "" {
				t.Errorf("exit code %d, %q, %q; want %q", o.code, o.stdout, o.stderr, test.says)
			}
		})
	}
}

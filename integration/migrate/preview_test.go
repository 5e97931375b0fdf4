// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/preview"
	"github.com/shardid/shardid/sharding"
)

func TestRecordersThatWriteAtOnceLoseNothing(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *sql.DB{
		"MariaDB":    func(t *testing.T) *sql.DB { t.Helper(); return server.ShareMariaDB(t).Open(t, "preview") },
		"MySQL":      func(t *testing.T) *sql.DB { t.Helper(); return server.ShareMySQL(t).Open(t, "preview") },
		"PostgreSQL": func(t *testing.T) *sql.DB { t.Helper(); return server.SharePostgres(t).Open(t, "preview") },
	} {
		t.Run(name, func(t *testing.T) {
			const processes, rounds, statements = 6, 5, 8
			db := open(t)
			var at sync.WaitGroup
			for range processes {
				at.Go(func() { recordSome(t, db, rounds, statements) })
			}
			at.Wait()
			found, err := preview.Read(t.Context(), db, "autumn")
			if err != nil {
				t.Fatal(err)
			}
			if len(found.Statements) != statements || found.Recorded == nil || found.Refused() != statements/2 {
				t.Fatalf("%+v", found)
			}
			for _, s := range found.Statements {
				if s.Times != processes*rounds || s.Reason != strings.Repeat("because é ", 100) && s.Change == sharding.WillBeRefused {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// recordSome is a process that finds the same as the others, and writes it some times.
func recordSome(t *testing.T, db *sql.DB, rounds, statements int) {
	t.Helper()
	var p sharding.Preview
	r, err := preview.Start(t.Context(), preview.Config{Source: db, Preview: &p, Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Error(err)
		return
	}
	for round := range rounds {
		for n := range statements {
			change, why := sharding.SeveralShards, error(nil)
			if n%2 == 0 {
				change, why = sharding.WillBeRefused, fmt.Errorf("%s", strings.Repeat("because é ", 100))
			}
			if text := fmt.Sprintf("SELECT é%d FROM orders", n); p.Count(text) {
				p.Add(text, change, why)
			}
		}
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

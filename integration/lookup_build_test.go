// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
)

func TestALookupIsBuiltUnderWriters(t *testing.T) {
	open := server.ShareMariaDB(t).Open
	home, dbs := open(t, "built_home"), sharding.DBs{"a": open(t, "built_a"), "b": open(t, "built_b")}
	d := directoryOn(t, home, dbs, true).create(t)
	d.fill(t)
	stop := d.rewrite(t)
	for _, column := range []string{"email", "city"} {
		c := d.lookup(column)
		c.ChunkRows = 100
		if r, err := lookups.Build(t.Context(), c); err != nil {
			t.Errorf("%s: %+v, %v", column, r, err)
		}
	}
	stop()
	directoryOn(t, home, dbs, false).sound(t)
}

// builtRows is how many users fill makes.
const builtRows = 4000

// fill inserts users that have no entries in the lookup tables.
func (d *directory) fill(t *testing.T) {
	t.Helper()
	for i, at := range d.router.Targets("users") {
		var rows []string
		for id := i; id < builtRows; id += 4 {
			rows = append(rows, fmt.Sprintf("(%d, 'u%[1]d@x', %d)", id, id%5))
		}
		database.Exec(t, d.dbs[at.DB], "INSERT INTO "+at.Table+" VALUES "+strings.Join(rows, ", "))
	}
}

// rewrite begins to change users, until stop is called.
func (d *directory) rewrite(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 2))
			for ctx.Err() == nil {
				id := r.IntN(builtRows)
				for _, text := range []string{
					fmt.Sprintf("UPDATE users SET email = 'w%d.%d@x', city = 7 WHERE id = %d", w, r.IntN(1e9), id),
					fmt.Sprintf("DELETE FROM users WHERE id = %d", id),
					fmt.Sprintf("INSERT INTO users (id, email, city) VALUES (%d, 'v%d.%d@x', 8)", id, w, r.IntN(1e9)),
				} {
					if _, err := d.routed.ExecContext(ctx, text); err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "1062") && !strings.Contains(err.Error(), "1213") {
						t.Error(err)
					}
				}
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// buildVar makes a test build the lookups instead, in chunks of 50 rows: it has the DSNs of the databases.
const buildVar = "SHARDID_LOOKUP_BUILD"

// buildAndTell prints a line for each chunk that is done.
func buildAndTell(t *testing.T, dsns []string) {
	t.Helper()
	dbs := openedAll(t, dsns)
	for _, column := range []string{"email", "city"} {
		c := directoryOn(t, dbs[0], sharding.DBs{"a": dbs[1], "b": dbs[2]}, true).lookup(column)
		c.ChunkRows, c.Observe = 50, func(lookups.Progress) { _, _ = fmt.Fprintln(os.Stdout, "chunk") }
		if _, err := lookups.Build(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// No call is left to read one of the four tables to its end, so that all are read only if each
// goes on where the one before it was killed.
func TestABuildThatIsKilledAgainAndAgainGoesOnBehindItsLastChunk(t *testing.T) {
	if dsns := os.Getenv(buildVar); dsns != "" {
		buildAndTell(t, strings.Fields(dsns))
		return
	}
	m := server.ShareMariaDB(t)
	home, dbs := m.Open(t, "killed_home"), sharding.DBs{"a": m.Open(t, "killed_a"), "b": m.Open(t, "killed_b")}
	d := directoryOn(t, home, dbs, true).create(t)
	d.fill(t)
	stop := d.rewrite(t)
	kills, chunks := 0, 0
	for done := false; !done; {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=0")
		cmd.Env = append(os.Environ(), buildVar+"="+strings.Join([]string{m.DSN("killed_home"), m.DSN("killed_a"), m.DSN("killed_b")}, " "))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		left := 5 + rand.IntN(8)
		if kills == 20 {
			left = -1
			if n := database.MustNumber(t, home, "SELECT COUNT(*) FROM shardid_lookup_progress"); n != 4 {
				t.Errorf("%d tables were begun, not 4", n)
			}
		}
		for left != 0 && lines.Scan() {
			if lines.Text() == "chunk" {
				chunks, left = chunks+1, left-1
			}
		}
		if left == 0 {
			_ = cmd.Process.Kill() // of one that has ended it fails
		}
		_, _ = io.Copy(io.Discard, out)
		switch err := cmd.Wait(); {
		case err == nil:
			done = true
		case !strings.Contains(err.Error(), "killed"):
			t.Fatalf("the build ended by itself: %v", err)
		default:
			kills++
		}
	}
	stop()
	directoryOn(t, home, dbs, false).sound(t)
	t.Logf("%d builds were killed, and one was not; %d chunks of 50 rows were read", kills, chunks)
}

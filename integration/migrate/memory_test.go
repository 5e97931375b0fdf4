// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// weighedVar makes a test migrate by itself instead, and print the memory that
// each step takes: it holds the driver and the DSNs of the source and of the two
// databases with shards.
const weighedVar = "SHARDID_TEST_WEIGHED"

const (
	kB = 1 << 10
	mB = 1 << 20
)

// allowed is the memory that rows of a size may take: 64 MB and four rows. It is
// compared with all memory of the process, including garbage and the driver's
// memory.
func allowed(row int) int { return 64*mB + 4*row }

func TestMemoryDoesNotGrowWithTheSizeOfRows(t *testing.T) {
	if spec := os.Getenv(weighedVar); spec != "" {
		weigh(t, strings.Split(spec, " "))
		return
	}
	program := withoutRaceDetector(t)
	// Many rows are read in batches by the same code on each database. On SQLite they take less time.
	all := []struct{ count, size int }{{6, 16 * mB}}
	if effort.Soak() {
		all = append(all, struct{ count, size int }{3000, 256 * kB})
	}
	for _, rows := range all {
		t.Run(fmt.Sprintf("%d rows of %d kB", rows.count, rows.size/kB), func(t *testing.T) {
			t.Run("MariaDB", func(t *testing.T) {
				flags := []string{"--max-allowed-packet=256M", "--innodb-log-file-size=256M"}
				weighOnServers(t, server.RunMariaDB(t, flags...), server.RunMariaDB(t, flags...), rows.count, rows.size, program)
			})
			t.Run("MySQL", func(t *testing.T) {
				flags := []string{"--max-allowed-packet=256M", "--innodb-redo-log-capacity=512M"}
				weighOnServers(t, server.RunMySQL(t, flags...), server.RunMySQL(t, flags...), rows.count, rows.size, program)
			})
			t.Run("PostgreSQL", func(t *testing.T) {
				weighOnServers(t, server.RunPostgres(t), server.RunPostgres(t), rows.count, rows.size, program)
			})
		})
	}
	t.Run("SQLite", func(t *testing.T) {
		weighOnFiles(t, effort.Cases(300, 3000), 256*kB, program)
		weighOnFiles(t, 6, 16*mB, program)
	})
}

func weighOnServers(t *testing.T, a, b database.Server, count, size int, program string) {
	t.Helper()
	s := newMigrationShop(t, a, b)
	s.fill(t, count)
	database.Exec(t, s.source, s.speaks.long)
	for from := 1; from <= count; from += 100 {
		database.Exec(t, s.source, fmt.Sprintf("UPDATE orders SET note = REPEAT(SUBSTR('!#$()*+,-./0123456789:;<=>@ABCDEFGHIJKLMNOPQRSTUVWXYZ', 1 + id %% 50, 1), %d) WHERE id BETWEEN %d AND %d", size, from, from+99))
	}
	most := allowed(size)
	if s.speaks == postgresShop {
		most += 8 * size // pgx reads a row into a buffer, and makes a message of it in two more, all of which grow by doubling
	}
	weighChild(t, program, most, s.speaks.driver, a.DSN("shop"), a.DSN("shop_a"), b.DSN("shop_b"))
}

func weighOnFiles(t *testing.T, count, size int, program string) {
	t.Helper()
	dir := t.TempDir()
	var dsns []string
	// A connection keeps up to 2 MB of pages unless told otherwise, and how many connections work at once
	// depends on how busy the machine is.
	for _, name := range []string{"source", "a", "b"} {
		dsns = append(dsns, "file:"+filepath.Join(dir, name+".db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(off)&_pragma=busy_timeout(60000)&_pragma=cache_size(-64)")
	}
	db, err := sql.Open("sqlite", dsns[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	database.Exec(t, db, "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, note BLOB NOT NULL)")
	database.Exec(t, db, fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO orders SELECT i, i %% 17, randomblob(%d) FROM n", count, size))
	written := 2 * size                                                                        // two digits for a byte
	weighChild(t, program, allowed(written)+3*written, append([]string{"sqlite"}, dsns...)...) // and SQLite's own copies
}

var weighedLine = regexp.MustCompile(`(?m)^weighed (.+): (-?\d+)$`)

// withoutRaceDetector returns a program of these tests that the race detector does
// not watch: what it notes of each byte would be weighed as well.
func withoutRaceDetector(t *testing.T) string {
	t.Helper()
	if !effort.Race {
		return os.Args[0]
	}
	program := filepath.Join(t.TempDir(), "weighed.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the other modules' tests are built
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// weighChild fails if a step of the program takes more memory than allowed.
func weighChild(t *testing.T, program string, most int, spec ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.v")
	// make test collects less garbage than programs do by default.
	cmd.Env = append(os.Environ(), weighedVar+"="+strings.Join(spec, " "), "GOGC=100")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := weighedLine.FindAllStringSubmatch(string(out), -1)
	if len(found) != weighedSteps {
		t.Errorf("%d steps were weighed, want %d: %s", len(found), weighedSteps, out)
	}
	for _, line := range found {
		n, err := strconv.Atoi(line[2])
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d MB, %d are allowed", line[1], n/mB, most/mB)
		if n > most {
			t.Errorf("%s took %d MB, more than the %d that are allowed", line[1], n/mB, most/mB)
		}
	}
}

const weighedSteps = 7

// weigh migrates and rolls back, with changes of all rows in each direction: all of many rows are more than a
// step may take.
func weigh(t *testing.T, spec []string) {
	t.Helper()
	var dbs [3]*sql.DB
	for i, dsn := range spec[1:] {
		db, err := sql.Open(spec[0], dsn)
		if err != nil {
			t.Fatal(err)
		}
		dbs[i] = db
	}
	speaks := mysqlShop
	if spec[0] == postgresShop.driver {
		speaks = postgresShop
	}
	s := &migrationShop{speaks: speaks, source: dbs[0], shards: sharding.DBs{"a": dbs[1], "b": dbs[2]}}
	j := s.job(t, "user_id", func(c *migrate.Config) { c.ChunkRows = 0 })
	ctx := t.Context()
	weighStep(t, "copy", func() error { return j.Run(ctx) })
	verify := func() error {
		v, err := j.Verify(ctx)
		if err == nil && !v.Clean() {
			err = fmt.Errorf("%+v", v)
		}
		return err
	}
	weighStep(t, "verify", verify)
	database.Exec(t, s.source, "UPDATE orders SET user_id = user_id + 1")
	weighStep(t, "follow", func() error { return j.Run(ctx) })
	weighStep(t, "cutover", func() error { _, err := j.Cutover(ctx, longPause); return err })
	for i, at := range shopOrders(t, "user_id").Map.Targets() {
		database.Exec(t, s.shards[at.DB], fmt.Sprintf("UPDATE orders_%02d SET user_id = user_id + 4", i))
	}
	weighStep(t, "carry back", func() error { return j.Run(ctx) })
	weighStep(t, "verify behind", verify)
	weighStep(t, "rollback", func() error { _, err := j.Rollback(context.WithoutCancel(ctx), longPause); return err })
}

// weighStep prints by how much the memory of this process grows in a step: heap,
// garbage, stacks and what SQLite has beside the heap.
func weighStep(t *testing.T, name string, step func() error) {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	before := procStatus(t, "VmRSS")
	if err := step(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	_, _ = fmt.Fprintf(os.Stdout, "weighed %s: %d\n", name, procStatus(t, "VmHWM")-before)
}

// procStatus returns a number of bytes from the kernel's status of this process.
func procStatus(t *testing.T, field string) int {
	t.Helper()
	file, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), field+":"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return n * kB
		}
	}
	t.Fatalf("the kernel does not tell %s", field)
	return 0
}

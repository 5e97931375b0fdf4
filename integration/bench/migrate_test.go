// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

var migratedRows = flag.Int("migrate.rows", 1_000_000, "rows of BenchmarkMigrate")

// warehouse is a table on one server, and another server to bring it to. Both
// hold all of it in memory, so that it is not the disk that is measured.
type warehouse struct {
	here, there interface{ DSN(database string) string }
	source      *sql.DB
	shards      sharding.DBs
	rows        int
	processes   []string // below /proc: this one and the servers; nil where these are of many processes
}

func newWarehouse(b *testing.B) *warehouse {
	b.Helper()
	flags := []string{"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M", "--innodb-flush-log-at-trx-commit=2"}
	here, there := server.RunMariaDB(b, flags...), server.RunMariaDB(b, flags...)
	w := &warehouse{here: here, there: there, rows: *migratedRows, source: here.Open(b, "shop")}
	w.shards = sharding.DBs{"a": here.Open(b, "shop_a"), "b": there.Open(b, "shop_b")}
	w.processes = []string{"self", processOf(b, w.source), processOf(b, w.shards["b"])}
	execute(b, w.source, `CREATE TABLE orders (
		id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
		user_id INT NOT NULL,
		status VARCHAR(20) NOT NULL,
		total DECIMAL(12,2) NOT NULL,
		weight DOUBLE NULL,
		note VARCHAR(250) NOT NULL,
		created_at DATETIME(6) NOT NULL,
		KEY by_user (user_id)) CHARACTER SET utf8mb4`)
	execute(b, w.source, fmt.Sprintf(`INSERT INTO orders SELECT seq, seq %% 20011, ELT(1 + seq %% 4, 'new', 'paid', 'packed', 'sent'), seq / 7,
		IF(seq %% 3, seq / 11, NULL), CONCAT('it''s order ', seq, ' ', REPEAT(MD5(seq), 6)), '2024-02-29 12:00:00' + INTERVAL seq SECOND FROM seq_1_to_%d`, w.rows))
	return w
}

func execute(b *testing.B, db *sql.DB, statement string) {
	b.Helper()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
}

// BenchmarkMigrate brings a table to another place: to four shards on two
// servers, half of which is the source's, and compares each row; as a dump to the
// other server, of one thread or of two; and as a copy on the same one. What it counts is
// one row, in time that passed and in time of the processors, which says more on a busy
// machine. The last one follows changes of rows that were copied, and switches there and
// back.
func BenchmarkMigrate(b *testing.B) {
	w := newWarehouse(b)
	b.Run("mysqldump to mysql", w.each(w.dump))
	b.Run("mydumper to myloader", w.each(w.dumpInThreads))
	b.Run("INSERT SELECT", w.each(w.insertSelect))
	b.Run("shardid", w.each(w.migrate))
	b.Run("shardid follows", w.follow)
}

// follow changes every fifth row, and has the shards follow; then it switches there and
// back, and reports the middle one of the pauses.
func (w *warehouse) follow(b *testing.B) {
	job, undo := w.job(b)
	defer undo()
	if err := job.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	var followed time.Duration
	var pauses []time.Duration
	changed := 0
	for b.Loop() {
		b.StopTimer()
		execute(b, w.source, "UPDATE orders SET total = total + 1 WHERE id % 5 = 0")
		changed += w.rows / 5
		b.StartTimer()
		began := b.Elapsed()
		if err := job.Run(b.Context()); err != nil {
			b.Fatal(err)
		}
		followed += b.Elapsed() - began
		for _, change := range []func(context.Context, time.Duration) (migrate.Switch, error){job.Cutover, job.Rollback} {
			done, err := change(b.Context(), time.Minute)
			if err != nil {
				b.Fatal(err)
			}
			pauses = append(pauses, done.Pause)
		}
	}
	b.ReportMetric(float64(followed.Nanoseconds())/float64(changed), "ns/row")
	slices.Sort(pauses)
	b.ReportMetric(pauses[len(pauses)/2].Seconds()*1000, "pause-ms")
	b.ReportMetric(0, "ns/op")
}

// each measures bring, but not the undo that it returns.
func (w *warehouse) each(bring func(*testing.B) (undo func())) func(*testing.B) {
	return func(b *testing.B) {
		var spent time.Duration
		for b.Loop() {
			before := w.cpu(b)
			undo := bring(b)
			b.StopTimer()
			spent += w.cpu(b) - before
			undo()
			b.StartTimer()
		}
		w.perRow(b, "ns/row", b.Elapsed()/time.Duration(b.N))
		if w.processes != nil {
			w.perRow(b, "cpu-ns/row", spent/time.Duration(b.N))
		}
		b.ReportMetric(0, "ns/op")
	}
}

// perRow reports what all rows took.
func (w *warehouse) perRow(b *testing.B, unit string, all time.Duration) {
	b.Helper()
	b.ReportMetric(float64(all.Nanoseconds())/float64(w.rows), unit)
}

// job brings the table to four shards.
func (w *warehouse) job(b *testing.B) (job *migrate.Job, undo func()) {
	b.Helper()
	spread, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%02d")
	if err != nil {
		b.Fatal(err)
	}
	job, err = migrate.New(migrate.Config{
		Source: w.source, Shards: w.shards,
		Tables: []migrate.Table{{Table: sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: spread}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return job, func() {
		if err := job.Abort(context.Background()); err != nil {
			b.Fatal(err)
		}
		for i, at := range spread.Targets() {
			execute(b, w.shards[at.DB], fmt.Sprintf("DROP TABLE IF EXISTS orders_%02d, orders_%02[1]d_sealed", i))
		}
	}
}

func (w *warehouse) migrate(b *testing.B) (undo func()) {
	job, undo := w.job(b)
	forgetPeak(b)
	began, before, own := b.Elapsed(), w.cpu(b), spentBy(b, "self")
	if err := job.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	w.perRow(b, "copy-ns/row", b.Elapsed()-began)
	if w.processes != nil {
		w.perRow(b, "copy-cpu-ns/row", w.cpu(b)-before)
	}
	w.perRow(b, "copy-client-cpu-ns/row", spentBy(b, "self")-own)
	v, err := job.Verify(b.Context())
	if err != nil || !v.Clean() || v.Rows != int64(w.rows) {
		b.Fatalf("%+v, %v", v, err)
	}
	b.ReportMetric(peak(b), "MB")
	return undo
}

func (w *warehouse) insertSelect(b *testing.B) (undo func()) {
	execute(b, w.source, "CREATE TABLE copied LIKE orders")
	execute(b, w.source, "INSERT INTO copied SELECT * FROM orders")
	return func() { execute(b, w.source, "DROP TABLE copied") }
}

func (w *warehouse) dump(b *testing.B) (undo func()) {
	from := client(b, w.here, "mariadb-dump", "--single-transaction", "--quick", "--skip-lock-tables", "shop", "orders")
	to := client(b, w.there, "mariadb", "shop_b")
	var said bytes.Buffer
	from.Stderr, to.Stderr = &said, &said
	piped(b, from, to, &said)
	return func() { execute(b, w.shards["b"], "DROP TABLE orders") }
}

// piped runs two programs, of which the second reads what the first writes.
func piped(b *testing.B, from, to *exec.Cmd, said *bytes.Buffer) {
	b.Helper()
	pipe, err := from.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	to.Stdin = pipe
	if err := from.Start(); err != nil {
		b.Fatal(err)
	}
	if err := to.Run(); err != nil {
		b.Fatal(err, said.String())
	}
	if err := from.Wait(); err != nil {
		b.Fatal(err, said.String())
	}
}

// dumpInThreads writes into memory where there is a directory of it.
func (w *warehouse) dumpInThreads(b *testing.B) (undo func()) {
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = b.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "shardid-dump") //nolint:usetesting // TempDir lies on a disk
	if err != nil {
		b.Fatal(err)
	}
	for _, program := range [][]string{
		{w.here.DSN(""), "mydumper", "--database=shop", "--tables-list=orders", "--rows=100000", "--outputdir=" + dir},
		{w.there.DSN(""), "myloader", "--source-db=shop", "--database=shop_b", "--directory=" + dir},
	} {
		cfg, err := mysql.ParseDSN(program[0])
		if err != nil {
			b.Fatal(err)
		}
		host, port, _ := strings.Cut(cfg.Addr, ":")
		args := append([]string{"--threads=2", "--host=" + host, "--port=" + port, "--user=root"}, program[2:]...)
		if said, err := exec.CommandContext(b.Context(), program[1], args...).CombinedOutput(); err != nil {
			b.Fatalf("%s: %v: %s", program[1], err, said)
		}
	}
	var rows int
	if err := w.shards["b"].QueryRowContext(b.Context(), "SELECT COUNT(*) FROM orders").Scan(&rows); err != nil || rows != w.rows {
		b.Fatalf("%d rows came over, %v", rows, err)
	}
	return func() {
		execute(b, w.shards["b"], "DROP TABLE orders")
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
}

// client is a program of MariaDB that speaks to the server.
func client(b *testing.B, s interface{ DSN(database string) string }, program string, args ...string) *exec.Cmd {
	b.Helper()
	cfg, err := mysql.ParseDSN(s.DSN(""))
	if err != nil {
		b.Fatal(err)
	}
	host, port, _ := strings.Cut(cfg.Addr, ":")
	args = append([]string{"--no-defaults", "--protocol=tcp", "--host=" + host, "--port=" + port, "--user=root"}, args...)
	return exec.CommandContext(b.Context(), program, args...)
}

// processOf is the process that a database is served by.
func processOf(b *testing.B, db *sql.DB) string {
	b.Helper()
	var dir, file string
	if err := db.QueryRowContext(b.Context(), "SELECT @@datadir, @@pid_file").Scan(&dir, &file); err != nil {
		b.Fatal(err)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	pid, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(string(pid))
}

// tick is the unit in which the kernel tells what a process has spent.
const tick = 10 * time.Millisecond

// cpu is how long the processors have worked so far: for the servers, for this
// process and for the programs that it has run.
func (w *warehouse) cpu(b *testing.B) (spent time.Duration) {
	b.Helper()
	for _, process := range w.processes {
		spent += spentBy(b, process)
	}
	return spent
}

// spentBy is how long the processors have worked for one process.
func spentBy(b *testing.B, process string) (spent time.Duration) {
	b.Helper()
	text, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		b.Fatal(err)
	}
	_, counters, _ := strings.Cut(string(text), ") ") // the program's name comes before
	for _, counter := range strings.Fields(counters)[11:15] {
		n, err := strconv.ParseInt(counter, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		spent += time.Duration(n) * tick
	}
	return spent
}

// forgetPeak has the kernel measure the most memory that this process has from
// now on.
func forgetPeak(b *testing.B) {
	b.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

var peakLine = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// peak is the most memory since forgetPeak, in MB.
func peak(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	found := peakLine.FindSubmatch(text)
	if found == nil {
		b.Fatal("the kernel does not say how much memory there is in use")
	}
	kB, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kB / 1000
}

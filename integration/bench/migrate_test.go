package bench

import (
	"bytes"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

var migratedRows = flag.Int("migrate.rows", 1_000_000, "rows of BenchmarkMigrate")

// warehouse is a table on one server, and another server to bring it to. Both
// hold all of it in memory, so that it is not the disk that is measured.
type warehouse struct {
	here, there *server.MariaDB
	source      *sql.DB
	shards      sharding.DBs
	rows        int
}

func newWarehouse(b *testing.B) *warehouse {
	b.Helper()
	flags := []string{"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M", "--innodb-flush-log-at-trx-commit=2"}
	w := &warehouse{here: server.RunMariaDB(b, flags...), there: server.RunMariaDB(b, flags...), rows: *migratedRows}
	w.source = w.here.Open(b, "shop")
	w.shards = sharding.DBs{"a": w.here.Open(b, "shop_a"), "b": w.there.Open(b, "shop_b")}
	execute(b, w.source, `CREATE TABLE orders (
		id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
		user_id INT NOT NULL,
		status VARCHAR(20) NOT NULL,
		total DECIMAL(12,2) NOT NULL,
		weight DOUBLE NULL,
		note VARCHAR(250) NOT NULL,
		created_at DATETIME(6) NOT NULL,
		KEY by_user (user_id))`)
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
// other server; and as a copy on the same one. What it counts is one row.
func BenchmarkMigrate(b *testing.B) {
	w := newWarehouse(b)
	b.Run("mysqldump to mysql", w.each(w.dump))
	b.Run("INSERT SELECT", w.each(w.insertSelect))
	b.Run("shardid", w.each(w.migrate))
}

func (w *warehouse) each(bring func(*testing.B)) func(*testing.B) {
	return func(b *testing.B) {
		for b.Loop() {
			bring(b)
		}
		perRow(b, "ns/row", w.rows*b.N)
		b.ReportMetric(0, "ns/op")
	}
}

// perRow reports the time so far.
func perRow(b *testing.B, unit string, rows int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), unit)
}

func (w *warehouse) migrate(b *testing.B) {
	b.StopTimer()
	spread, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%02d")
	if err != nil {
		b.Fatal(err)
	}
	job, err := migrate.New(migrate.Config{
		Source: w.source, Shards: w.shards,
		Tables: []migrate.Table{{Table: sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: spread}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	forgetPeak(b)
	b.StartTimer()
	before := b.Elapsed()
	if err := job.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((b.Elapsed()-before).Nanoseconds())/float64(w.rows), "copy-ns/row")
	v, err := job.Verify(b.Context())
	if err != nil || !v.Clean() || v.Rows != int64(w.rows) {
		b.Fatalf("%+v, %v", v, err)
	}
	b.StopTimer()
	b.ReportMetric(peak(b), "MB")
	if err := job.Abort(b.Context()); err != nil {
		b.Fatal(err)
	}
	for i, at := range spread.Targets() {
		execute(b, w.shards[at.DB], fmt.Sprintf("DROP TABLE orders_%02d", i))
	}
	b.StartTimer()
}

func (w *warehouse) insertSelect(b *testing.B) {
	execute(b, w.source, "CREATE TABLE copied LIKE orders")
	execute(b, w.source, "INSERT INTO copied SELECT * FROM orders")
	b.StopTimer()
	execute(b, w.source, "DROP TABLE copied")
	b.StartTimer()
}

func (w *warehouse) dump(b *testing.B) {
	from := client(b, w.here, "mysqldump", "--single-transaction", "--quick", "--skip-lock-tables", "shop", "orders")
	to := client(b, w.there, "mysql", "shop_b")
	var said bytes.Buffer
	from.Stderr, to.Stderr = &said, &said
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
	b.StopTimer()
	execute(b, w.shards["b"], "DROP TABLE orders")
	b.StartTimer()
}

// client is a program of MariaDB that speaks to the server.
func client(b *testing.B, s *server.MariaDB, program string, args ...string) *exec.Cmd {
	b.Helper()
	cfg, err := mysql.ParseDSN(s.DSN(""))
	if err != nil {
		b.Fatal(err)
	}
	host, port, _ := strings.Cut(cfg.Addr, ":")
	args = append([]string{"--no-defaults", "--protocol=tcp", "--host=" + host, "--port=" + port, "--user=root"}, args...)
	return exec.CommandContext(b.Context(), program, args...)
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

// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MariaDB is one private server, reached at [MariaDB.DSN] by user root without
// a password. DSN may be called at any time, by any goroutine; Kill, Start and
// Stop not at the same time as each other.
type MariaDB struct{ *instance }

// StartMariaDB makes a server with an empty data directory and returns once it
// answers queries. The flags are passed to mariadbd after the usual ones, and
// so override them: "--log-bin", "--server-id=2". The data directory is made with an
// "--innodb-page-size=4096". The caller must Stop it.
//
// ctx bounds the start, not the server's life.
func StartMariaDB(ctx context.Context, flags ...string) (*MariaDB, error) {
	i, err := mariadbFor(flags).start(ctx, flags)
	if err != nil {
		return nil, err
	}
	return &MariaDB{i}, nil
}

// DSN is the data source name, in go-sql-driver's form and without parameters,
// of the named database; "" names none. The database need not exist. The DSN
// stays the same when the server is killed and started again.
func (m *MariaDB) DSN(database string) string {
	return mariadbConfig(m.port, m.named(database)).FormatDSN()
}

var mariadb = kind{
	name:    "mariadb",
	program: mariadbProgram("mariadbd"),
	install: installMariaDB,
	args:    mariadbArgs,
	open:    openMariaDB,
	asker:   bySQL(openMariaDB, "SELECT @@datadir"),

	portTaken: "Bind on TCP/IP port",
}

// mariadbFor returns the kind of servers with these flags, because the template must have the page size of
// the servers that run on it.
func mariadbFor(flags []string) kind {
	k := mariadb
	for _, flag := range flags {
		if strings.HasPrefix(flag, "--innodb-page-size=") {
			k.install = func(ctx context.Context, program, dataDir string) (*exec.Cmd, error) {
				cmd, err := installMariaDB(ctx, program, dataDir)
				if err == nil {
					cmd.Args = append(cmd.Args, flag)
				}
				return cmd, err
			}
		}
	}
	return k
}

func mariadbProgram(name string) program {
	return program{name, []string{"/usr/sbin", "/usr/local/sbin"}, "mariadb-server-core mariadb-client-core"}
}

// innodbLogSize must be the same when the template is made and when a server
// runs on it, or the server would first build a new log.
const innodbLogSize = "--innodb-log-file-size=4M"

func installMariaDB(ctx context.Context, _, dataDir string) (*exec.Cmd, error) {
	path, err := mariadbProgram("mariadb-install-db").find()
	if err != nil {
		return nil, err
	}
	args := []string{
		"--no-defaults",
		"--skip-test-db",
		"--auth-root-authentication-method=normal", // user root, no password
		innodbLogSize,
		"--datadir=" + dataDir,
	}
	return exec.CommandContext(ctx, path, append(args, runAsRoot()...)...), nil
}

// mariadbArgs keep the server small and its start fast. Committed rows
// survive a kill as on a production server, because they are written to files; only a crash of the machine
// would lose files that are not synced.
func mariadbArgs(i *instance) []string {
	args := []string{
		"--no-defaults", // must come first
		"--datadir=" + i.dataDir(),
		"--tmpdir=" + i.tmpDir(),
		"--bind-address=" + loopback,
		"--port=" + strconv.Itoa(i.port),
		"--socket=s.sock", // below datadir; absolute it could exceed the 108 bytes a socket path may have
		"--pid-file=mariadb.pid",
		"--skip-name-resolve",
		"--innodb-buffer-pool-size=32M",
		"--innodb-flush-method=nosync",
		// By default the log is written past the file system's cache, and a kill once lost its
		// last block. Through the cache a kill loses nothing.
		"--loose-innodb-log-file-buffering=ON",
		innodbLogSize,
		"--innodb-buffer-pool-load-at-startup=0",
		"--innodb-buffer-pool-dump-at-shutdown=0",
		"--performance-schema=0",
		"--aria-pagecache-buffer-size=1M",
		"--key-buffer-size=1M",
	}
	return append(append(args, runAsRoot()...), i.settings...)
}

// runAsRoot permits mariadbd to run as root, which it refuses by default.
func runAsRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

func openMariaDB(port int, database string) (*sql.DB, error) {
	connector, err := mysql.NewConnector(mariadbConfig(port, database))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func mariadbConfig(port int, database string) *mysql.Config {
	c := mysql.NewConfig()
	c.User = "root"
	c.Net = "tcp"
	c.Addr = address(port)
	c.DBName = database
	c.Logger = &mysql.NopLogger{} // broken connections to a killed server are expected
	return c
}

// RunSpider is [RunMariaDB] for a server that has the storage engine Spider.
func RunSpider(tb testing.TB, flags ...string) *MariaDB {
	tb.Helper()
	cache, err := cacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(cache, "spider")
	if _, err := os.Stat(filepath.Join(dir, "ha_spider.so")); err != nil {
		tb.Fatalf("MariaDB's engine Spider is not installed for the tests; `make test` does that, or do it alone with .ci/install-spider: %v", err)
	}
	return RunMariaDB(tb, append([]string{"--plugin-dir=" + dir, "--plugin-load-add=ha_spider.so"}, flags...)...)
}

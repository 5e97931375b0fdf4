// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
)

// MySQL is one private server of MySQL itself, not of MariaDB, reached at
// [MySQL.DSN] by user root without a password. DSN may be called at any time, by
// any goroutine; Kill, Start and Stop not at the same time as each other.
type MySQL struct{ *instance }

// StartMySQL makes a server with an empty data directory and returns once it
// answers queries, about half a second later. The flags are passed to mysqld
// after the usual ones, and so override them: "--log-bin", "--server-id=2". The
// caller must Stop it.
//
// ctx bounds the start, not the server's life.
func StartMySQL(ctx context.Context, flags ...string) (*MySQL, error) {
	k, err := mysqlKind()
	if err != nil {
		return nil, err
	}
	i, err := k.start(ctx, flags)
	if err != nil {
		return nil, err
	}
	return &MySQL{i}, nil
}

// RunMySQL is [StartMySQL] for a test or benchmark: a server that does not start
// fails it, and the server is stopped when it ends. The test's log begins with
// the server's version; that of a test that fails ends with the server's errors.
func RunMySQL(tb testing.TB, flags ...string) *MySQL {
	tb.Helper()
	k, err := mysqlKind()
	if err != nil {
		tb.Fatal(err)
	}
	m := &MySQL{k.run(tb, flags)}
	tb.Logf("MySQL %s", m.version(tb))
	return m
}

// DSN is the data source name, in go-sql-driver's form and without parameters,
// of the named database; "" names none. The database need not exist. The DSN
// stays the same when the server is killed and started again.
func (m *MySQL) DSN(database string) string {
	return mariadbConfig(m.port, m.named(database)).FormatDSN()
}

// Open returns a connection pool of the named database, which is created when
// it does not exist. The pool is closed when the test ends.
func (m *MySQL) Open(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	m.admin(tb, "CREATE DATABASE IF NOT EXISTS "+dialect.MySQL{}.Quote(m.named(database)))
	m.drop(tb, dialect.MySQL{}, database, "")
	return m.pool(tb, database)
}

func (m *MySQL) version(tb testing.TB) (version string) {
	tb.Helper()
	db := m.pool(tb, "")
	if err := db.QueryRowContext(tb.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		tb.Fatal(err)
	}
	return version
}

// mysqldWrapper runs MySQL's mysqld. It has another name because some systems call MariaDB's
// server mysqld, too.
const mysqldWrapper = "shardid-mysqld"

func mysqlKind() (kind, error) {
	cache, err := cacheDir()
	if err != nil {
		return kind{}, err
	}
	if _, err := os.Stat(filepath.Join(cache, mysqldWrapper)); err != nil {
		return kind{}, fmt.Errorf("MySQL's server is not installed for the tests; "+
			"`make test` does that, or do it alone with .ci/install-mysql: %w", err)
	}
	return kind{
		name:    "mysql",
		program: program{name: mysqldWrapper, dirs: []string{cache}},
		install: installMySQL,
		args:    mysqlArgs,
		open:    openMariaDB,
		asker:   bySQL(openMariaDB, "SELECT @@datadir"),

		portTaken: "Bind on TCP/IP port",
	}, nil
}

// mysqlLogSize is the smallest that MySQL permits, because each copy of the template has such a log.
const mysqlLogSize = "--innodb-redo-log-capacity=8M"

// mysqlRoot creates the user of the DSNs. MySQL's own root may connect only from the name
// localhost, and these servers do not resolve names.
const mysqlRoot = "CREATE USER root@'%'; GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;"

func installMySQL(ctx context.Context, program, dataDir string) (*exec.Cmd, error) {
	script := dataDir + "-init.sql"
	if dataDir != "" { // without it, the caller only needs the command
		if err := os.WriteFile(script, []byte(mysqlRoot), 0o600); err != nil {
			return nil, fmt.Errorf("write the script that makes the user root: %w", err)
		}
	}
	args := []string{
		"--no-defaults",
		"--initialize-insecure", // no passwords
		"--init-file=" + script,
		"--datadir=" + dataDir,
		mysqlLogSize,
		mysqlWithoutAio,
		"--innodb-doublewrite=OFF", // leaves no files of copies, which each server would read when it starts
	}
	return exec.CommandContext(ctx, program, append(args, runAsRoot()...)...), nil
}

// mysqlWithoutAio is for machines on which many servers use up the kernel's asynchronous I/O
// requests.
const mysqlWithoutAio = "--innodb-use-native-aio=0"

// mysqlArgs keep the server small and its start fast. Committed rows
// survive a kill as on a production server, because they are written to files; only a crash of the machine
// would lose files that are not synced.
func mysqlArgs(i *instance) []string {
	args := []string{
		"--no-defaults", // must come first
		"--datadir=" + i.dataDir(),
		"--tmpdir=" + i.tmpDir(),
		"--bind-address=" + loopback,
		"--port=" + strconv.Itoa(i.port),
		"--mysqlx=OFF",    // it would need another free port
		"--socket=s.sock", // below datadir; absolute it could exceed the 108 bytes a socket path may have
		"--pid-file=mysql.pid",
		"--secure-file-priv=NULL", // the built-in folder does not exist
		"--skip-name-resolve",
		"--innodb-buffer-pool-size=32M",
		"--innodb-flush-method=nosync",
		mysqlLogSize,
		// A server fills its buffer for the log with zeros when it starts; the default is 64 MB. Threads that
		// write the log for many users wait for work by spinning, and take a processor from few users.
		"--innodb-log-buffer-size=1M",
		"--innodb-log-writer-threads=OFF",
		"--innodb-buffer-pool-load-at-startup=0",
		"--innodb-buffer-pool-dump-at-shutdown=0",
		"--performance-schema=0",
		"--key-buffer-size=1M",
		"--skip-log-bin",
		mysqlWithoutAio,
	}
	return append(append(args, runAsRoot()...), i.settings...)
}

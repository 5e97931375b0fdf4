// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sys/unix"
)

// Postgres is one private server of PostgreSQL, reached at [Postgres.DSN] by
// the superuser postgres without a password. DSN may be called at any time, by
// any goroutine; Kill, Start and Stop not at the same time as each other.
type Postgres struct{ *instance }

// StartPostgres makes a server with an empty data directory and returns once it
// answers queries. The settings are those of postgresql.conf, as
// "name=value"; they override the usual ones: "wal_level=logical",
// "max_connections=20". The caller must Stop it.
//
// ctx bounds the start, not the server's life.
func StartPostgres(ctx context.Context, settings ...string) (*Postgres, error) {
	i, err := postgres.start(ctx, settings)
	if err != nil {
		return nil, err
	}
	return &Postgres{i}, nil
}

// DSN is the data source name, a URL without parameters, of the named database;
// "" is the server's first one, postgres. The database need not exist. The DSN
// stays the same when the server is killed and started again.
func (p *Postgres) DSN(database string) string { return postgresDSN(p.port, p.named(database)) }

// postgresUser is both the superuser in the database and, where root runs the
// tests, the user who runs the server: Debian's package makes it.
const postgresUser = "postgres"

var postgres = kind{
	name:    "postgres",
	program: program{"postgres", []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"}, "postgresql"},
	users:   []string{postgresUser, "nobody"},
	install: installPostgres,
	args:    postgresArgs,
	open:    openPostgres,
	asker:   bySQL(openPostgres, "SHOW data_directory"),

	portTaken: "Address already in use",
}

// installPostgres does not sync, because the template is only copied.
func installPostgres(ctx context.Context, program, dataDir string) (*exec.Cmd, error) {
	return exec.CommandContext(ctx, filepath.Join(filepath.Dir(program), "initdb"),
		"--pgdata="+dataDir, "--username="+postgresUser, "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--wal-segsize=1", "--no-sync"), nil
}

// postgresArgs keep the server small and its start fast. Committed rows
// survive a kill as on a production server, because they are written to files; only a crash of the machine
// would lose files that are not synced.
func postgresArgs(i *instance) []string {
	args := []string{"-D", i.dataDir()}
	usual := []string{
		"listen_addresses=" + loopback,
		"port=" + strconv.Itoa(i.port),
		"unix_socket_directories=", // none, because its path could exceed the limit of 108 bytes
		"shared_buffers=16MB",
		"fsync=off",
		"recovery_init_sync_method=syncfs", // one call instead of one for each file
		"dynamic_shared_memory_type=mmap",  // in the data directory, because a killed server leaves files in /dev/shm
	}
	for _, setting := range append(usual, i.settings...) {
		args = append(args, "-c", setting)
	}
	return args
}

// freeSharedMemory removes the segment of System V shared memory that the PostgreSQL of a data
// directory left when it was killed. Its next start would do so. Linux has at most 4096 segments for all
// programs, and a PostgreSQL does not start without one.
func freeSharedMemory(dataDir string) {
	if id, ok := sharedMemory(dataDir); ok {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) // fails only if it is gone
	}
}

// sharedMemory returns the segment of the PostgreSQL that runs in a data directory, or that was killed
// there. Other servers, and those that ended by themselves, have none.
func sharedMemory(dataDir string) (id int, ok bool) {
	state, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	lines := strings.Split(string(state), "\n")
	const segment = 6 // the line with the segment's key and id
	if len(lines) <= segment {
		return 0, false
	}
	var key int
	_, err = fmt.Sscan(lines[segment], &key, &id)
	return id, err == nil
}

func openPostgres(port int, database string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(postgresDSN(port, database) + "?sslmode=disable")
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*config), nil
}

func postgresDSN(port int, database string) string {
	dsn := url.URL{Scheme: "postgres", User: url.User(postgresUser), Host: address(port), Path: "/" + database}
	return dsn.String()
}

// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"os/exec"
)

// kind is what the servers of one database product have in common and those of
// another have not.
type kind struct {
	name    string // "mariadb": of directories
	program program

	// users are who may run the server when root runs the tests, the first that
	// exists; none are needed where root may.
	users []string
	// install returns the command that makes an empty data directory; nil when the
	// server makes its own.
	install func(ctx context.Context, program, dataDir string) (*exec.Cmd, error)
	// configure writes the server's configuration file; nil when args say it all.
	configure func(*instance) error
	args      func(*instance) []string
	open      func(port int, database string) (*sql.DB, error) // nil when it knows no SQL
	asker     func(port int) (asker, error)

	portTaken string // what the error log says when the port is not free
}

// asker asks a server for its data directory.
type asker interface {
	dataDir(ctx context.Context) (string, error)
	Close() error
}

// bySQL is the asker of servers that answer a query.
func bySQL(open func(port int, database string) (*sql.DB, error), query string) func(port int) (asker, error) {
	return func(port int) (asker, error) {
		db, err := open(port, "")
		if err != nil {
			return nil, err
		}
		return sqlAsker{db, query}, nil
	}
}

type sqlAsker struct {
	*sql.DB

	query string
}

func (a sqlAsker) dataDir(ctx context.Context) (dir string, err error) {
	err = a.QueryRowContext(ctx, a.query).Scan(&dir)
	return dir, err
}

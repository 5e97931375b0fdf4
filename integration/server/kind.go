// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"os/exec"
)

// kind describes the servers of one database product.
type kind struct {
	name    string // "mariadb": of directories
	program program

	// users are the users that may run the server if root runs the tests; the first existing one
	// is used. It is empty if root may run the server.
	users []string
	// install returns the command that makes an empty data directory; nil when the
	// server makes its own.
	install func(ctx context.Context, program, dataDir string) (*exec.Cmd, error)
	// configure writes the server's configuration file; nil when args say it all.
	configure func(*instance) error
	args      func(*instance) []string
	open      func(port int, database string) (*sql.DB, error) // nil if the server does not speak SQL
	asker     func(port int) (asker, error)

	portTaken string // the text in the error log if the port is taken
}

// asker queries a server for its data directory.
type asker interface {
	dataDir(ctx context.Context) (string, error)
	Close() error
}

// bySQL is the asker of servers that speak SQL.
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

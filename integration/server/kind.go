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
	// install returns the command that makes an empty data directory.
	install func(ctx context.Context, program, dataDir string) (*exec.Cmd, error)
	args    func(*instance) []string
	open    func(port int, database string) (*sql.DB, error)

	whereData string // the query for the server's data directory
	portTaken string // what the error log says when the port is not free
}

// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite" // registers the driver "sqlite", which needs no C compiler

	"github.com/shardid/shardid/sharding"
)

// Flags are the flags of all programs.
type Flags struct{ Listen, East, West string }

// Parse reads the flags of the command line.
func Parse() (f Flags) {
	flag.StringVar(&f.Listen, "listen", "localhost:8080", "where to answer")
	flag.StringVar(&f.East, "east", "", "DSN of a MySQL or MariaDB database, user:password@tcp(host:port)/shop; default: a file of SQLite that goes away")
	flag.StringVar(&f.West, "west", "", "the same of the second database")
	flag.Parse()
	return f
}

// Databases are the databases of a program.
type Databases struct {
	Driver string // "mysql" or "sqlite"

	dsn  func(name string) (string, error)
	undo []func() error
}

// Connect uses the databases of the flags, or SQLite files in a new folder.
func Connect(f Flags) (*Databases, error) {
	d := &Databases{Driver: "mysql"}
	switch {
	case f.East != "" && f.West != "":
		d.dsn = f.dsn
		return d, nil
	case f.East != "" || f.West != "":
		return nil, errors.New("give both -east and -west, or neither")
	}
	d.Driver = "sqlite"
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		return nil, err
	}
	d.Undo(func() error { return os.RemoveAll(dir) })
	d.dsn = func(name string) (string, error) {
		return "file:" + filepath.Join(dir, name+".db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_txlock=immediate", nil
	}
	return d, nil
}

func (f Flags) dsn(name string) (string, error) {
	dsn := f.East
	if name == "west" {
		dsn = f.West
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", fmt.Errorf("the DSN of %s: %w", name, err)
	}
	cfg.ParseTime = true
	return cfg.FormatDSN(), nil
}

// Open returns a new pool, of west for the name west, and of east for any other name. With SQLite each name
// has its own file.
func (d *Databases) Open(name string) (*sql.DB, error) {
	dsn, err := d.dsn(name)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open(d.Driver, dsn)
	if err != nil {
		return nil, err
	}
	d.Undo(db.Close)
	return db, nil
}

// Shards opens east and west.
func (d *Databases) Shards() (sharding.DBs, error) {
	dbs := sharding.DBs{}
	for _, name := range []string{"east", "west"} {
		db, err := d.Open(name)
		if err != nil {
			return nil, err
		}
		dbs[name] = db
	}
	return dbs, nil
}

// Undo makes Close call do, before the functions of earlier calls.
func (d *Databases) Undo(do func() error) { d.undo = append(d.undo, do) }

// Close calls the functions of Undo in reverse order, so that generators end before their database.
func (d *Databases) Close() (err error) {
	for _, undo := range slices.Backward(d.undo) {
		err = errors.Join(err, undo())
	}
	return err
}

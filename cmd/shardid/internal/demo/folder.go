// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// Everything is written into this folder. By the marker a later run knows that it may
// replace the folder's files.
const (
	folderName = "shardid-demo"
	markerName = "made-by-shardid-demo"
	markerText = "The next \"shardid demo\" with the same --dir replaces the databases beside this file.\n"
)

const (
	sourceFile  = "source.db"
	controlFile = "control.db"
)

// ownFiles are the only files that a run removes.
func ownFiles() []string {
	var names []string
	for _, name := range append(shardNames(), "source", "live", "control") {
		for _, suffix := range []string{".db", ".db-wal", ".db-shm", ".db-journal"} {
			names = append(names, name+suffix)
		}
	}
	return names
}

func shardNames() []string {
	names := make([]string, databases)
	for i := range names {
		names[i] = fmt.Sprintf("shard%d", i)
	}
	return names
}

// errLocked: another run has the folder.
var errLocked = errors.New("another demo is running there")

// folder is the directory into which a run writes.
type folder struct {
	path   string
	marker *os.File // locked while the run lasts
}

// checkFolder checks, before anything is written, whether dir can be used.
func checkFolder(dir, source string) error {
	if dir == "" {
		return nil
	}
	if strings.Contains(dir, "@") && dialect.RedactDSN(dir) != dir {
		return input.Errorf("--dir %s looks like a database with a password; name a directory", dialect.RedactDSN(dir))
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return input.Errorf("--dir %s is a file; name a directory, or one that can be created", dir)
	}
	path := filepath.Join(dir, folderName)
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return input.Errorf("--dir cannot be used: %w; choose another one", err)
	case !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == markerName && e.Type().IsRegular() }):
		return input.Errorf("%s exists and was not made by this command; choose another --dir", path)
	}
	return folder{path: path}.checkSource(source)
}

// checkSource refuses to migrate a database that this run would replace.
func (f folder) checkSource(source string) error {
	given, missing := os.Stat(source) // opening the file reports errors
	for _, name := range ownFiles() {
		if own, err := os.Stat(f.file(name)); err == nil && missing == nil && os.SameFile(own, given) {
			return input.Errorf("--db %s is a file that this run would replace; choose another --dir", source)
		}
	}
	return nil
}

// makeFolder creates the folder, removes the files of an earlier run, and locks the folder
// for this run until it is closed. checkFolder must have accepted dir.
func makeFolder(dir string) (folder, error) {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "shardid-")
		if err != nil {
			return folder{}, input.Errorf("no temporary directory can be created: %w; name a directory with --dir, or set TMPDIR to one", err)
		}
		dir = temporary
	}
	path, err := filepath.Abs(filepath.Join(dir, folderName))
	if err != nil {
		return folder{}, err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return folder{}, input.Errorf("%s cannot be created: %w; choose another --dir", path, err)
	}
	f := folder{path: path}
	if err := f.take(); err != nil {
		return folder{}, input.Errorf("%s cannot be written to: %w; choose another --dir", path, err)
	}
	if err := f.clean(); err != nil {
		return folder{}, errors.Join(err, f.close())
	}
	return f, nil
}

// take locks the marker, so that no other run uses the folder.
func (f *folder) take() error {
	marker, err := os.OpenFile(f.file(markerName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = lock(marker)
	if err == nil {
		_, err = marker.WriteAt([]byte(markerText), 0)
	}
	if err != nil {
		return errors.Join(err, marker.Close())
	}
	f.marker = marker
	return nil
}

// close unlocks the folder.
func (f folder) close() error {
	if f.marker == nil {
		return nil
	}
	return f.marker.Close()
}

func (f folder) clean() error {
	for _, name := range ownFiles() {
		if err := os.Remove(f.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (f folder) file(name string) string { return filepath.Join(f.path, name) }

// Writers wait up to twenty seconds for the lock, and take it at BEGIN: SQLite refuses a
// transaction that begins with reading and writes after another one has written.
const writable = "mode=rwc&_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"

// create opens a new database in the folder.
func (f folder) create(ctx context.Context, name string) (*sql.DB, error) {
	uri, err := database.SQLiteURI(f.file(name), writable)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(connections)
	db.SetMaxOpenConns(connections)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// connections is enough for a cursor on each table of a database, all writers and the
// migration.
const connections = 2*tables + 2*writersPerApp + 4

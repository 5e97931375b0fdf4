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

	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
)

// The folder that everything is written to, and the file by which a later run
// knows that it may replace what is in there.
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
	for _, name := range append(shardNames(), "source", "control") {
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

// folder is the directory that a run writes to.
type folder struct{ path string }

// checkFolder finds before anything is written whether dir can be used.
func checkFolder(dir, source string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return input.Errorf("--dir %s is a file; name a directory, or one that can be made", dir)
	}
	path := filepath.Join(dir, folderName)
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == markerName && e.Type().IsRegular() }) {
		return input.Errorf("%s exists and was not made by this command; choose another --dir", path)
	}
	return folder{path}.checkSource(source)
}

// checkSource refuses to migrate a database that this run would replace.
func (f folder) checkSource(source string) error {
	given, missing := os.Stat(source) // what is wrong with it, opening it will say
	for _, name := range ownFiles() {
		if own, err := os.Stat(f.file(name)); err == nil && missing == nil && os.SameFile(own, given) {
			return input.Errorf("--db %s is a file that this run would replace; choose another --dir", source)
		}
	}
	return nil
}

// makeFolder makes the folder, without what an earlier run left there. dir is
// one that checkFolder accepted.
func makeFolder(dir string) (folder, error) {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "shardid-")
		if err != nil {
			return folder{}, err
		}
		dir = temporary
	}
	path, err := filepath.Abs(filepath.Join(dir, folderName))
	if err != nil {
		return folder{}, err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return folder{}, input.Errorf("%s cannot be made: %w", path, err)
	}
	f := folder{path}
	if err := os.WriteFile(f.file(markerName), []byte(markerText), 0o600); err != nil {
		return folder{}, input.Errorf("%s cannot be written to: %w", path, err)
	}
	return f, f.clean()
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

// Writers queue up for five seconds, and take their lock at BEGIN, because
// SQLite refuses one that turns from reading to writing behind another's back.
const writable = "mode=rwc&_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"

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

// connections is enough for a cursor on each table of a database, and more.
const connections = tables + 2

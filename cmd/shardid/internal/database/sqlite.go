// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // registers "sqlite", which needs no C compiler

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// SQLiteURI returns the name under which the SQLite driver opens a file, with
// settings such as "mode=ro&_pragma=busy_timeout(5000)".
func SQLiteURI(path, settings string) (string, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	slashed := "/" + strings.TrimPrefix(filepath.ToSlash(whole), "/")
	return "file:" + (&url.URL{Path: slashed}).EscapedPath() + "?" + settings, nil
}

// OpenFile opens an existing SQLite file read-only.
func OpenFile(ctx context.Context, path string) (*sql.DB, error) {
	if isServer(path) {
		return nil, input.Errorf("%s is a server; name a SQLite file", dialect.RedactDSN(path))
	}
	return openFile(ctx, path, "", dialect.RedactDSN(path))
}

// openFile keeps the settings except the mode. shown is the name that the user gave.
func openFile(ctx context.Context, path, settings, shown string) (*sql.DB, error) {
	if err := checkFile(path, shown); err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(settings)
	if err != nil {
		return nil, input.Errorf("%s: the settings after the question mark cannot be read; write them as name=value&name=value", shown)
	}
	values.Set("mode", "ro")
	if idleWAL(path) {
		values.Set("immutable", "1")
	}
	values.Add("_pragma", "busy_timeout(5000)")
	uri, err := SQLiteURI(path, values.Encode())
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return nil, err
	}
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return nil, errors.Join(Failed(err, fmt.Errorf("%s cannot be read as a SQLite database: %w", shown, err)), db.Close())
	}
	return db, nil
}

func checkFile(path, shown string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return input.Errorf("there is no file %s; name an existing SQLite file", shown)
	case err != nil:
		return input.Errorf("%s cannot be opened; check its path and rights", shown)
	case !info.Mode().IsRegular():
		return input.Errorf("%s is not a file; name a SQLite file", shown)
	}
	return nil
}

// idleWAL reports whether the file is in WAL mode and nobody has it open. SQLite would
// create files beside it even for reading, and leave them there, unless the file is
// declared immutable.
func idleWAL(path string) bool {
	if exists(path + "-wal") {
		return false
	}
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	const readVersion = 19           // its offset in the file's header
	var header [readVersion + 1]byte
	_, err = io.ReadFull(f, header[:])
	return err == nil && header[readVersion] == 2
}

func unescape(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

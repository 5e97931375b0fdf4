// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pressly/goose/v3"
)

// version is a file with its statements, not yet parsed.
type version struct {
	number   int64
	name     string // the file's name
	up, down script
}

// script is one direction of a version.
type script struct {
	statements []string
	tx         bool // the file does not say NO TRANSACTION
}

// in returns the script of a direction.
func (v *version) in(d direction) script {
	if d == down {
		return v.down
	}
	return v.up
}

type direction string

const (
	up   direction = "up"
	down direction = "down"
)

// readVersions reads the files by goose's own parser: goose's provider runs each of them on
// a recorder instead of a database.
func readVersions(ctx context.Context, files fs.FS) ([]*version, error) {
	rec := new(recorder)
	db := sql.OpenDB(rec)
	defer func() { _ = db.Close() }() // it has no connection
	p, err := goose.NewProvider("", db, files, goose.WithStore(gooseStore{rec}), goose.WithDisableGlobalRegistry(true))
	if errors.Is(err, goose.ErrNoMigrations) {
		return nil, fmt.Errorf("%w: there are none; name them like 00001_orders.sql", ErrFiles)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFiles, err)
	}
	var all []*version
	for _, source := range p.ListSources() {
		if text, err := fs.ReadFile(files, source.Path); err == nil && !strings.Contains(string(text), "+goose Up") {
			return nil, fmt.Errorf("%w: %s has no line -- +goose Up; write its statements below that line", ErrFiles, path.Base(source.Path))
		}
		v := &version{number: source.Version, name: path.Base(source.Path)}
		if v.up, err = rec.record(ctx, p, v.number, true); err == nil {
			v.down, err = rec.record(ctx, p, v.number, false)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFiles, v.name, err)
		}
		if len(v.up.statements) == 0 {
			return nil, fmt.Errorf("%w: %s has no statement below -- +goose Up", ErrFiles, v.name)
		}
		all = append(all, v)
	}
	return all, nil
}

// fingerprint identifies a statement's text.
func fingerprint(statement string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(statement)))
	return hex.EncodeToString(sum[:])
}

// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/sqlrun"
)

// logTable is where each database stores its notes.
const logTable = "shardid_ddl"

// note is what a database has stored about one statement on one physical table.
type note struct {
	version       int64
	direction     direction
	statement     int
	place         string // the physical table
	state         noteState
	fingerprint   string // of the statement's text
	before, after string // definitions; after is "" until the statement is done
}

type noteState string

const (
	began   noteState = "began"   // the statement is about to be sent
	done    noteState = "done"    // the statement was executed
	adopted noteState = "adopted" // an operator declared it as executed
)

// noteKey identifies a note in its database.
type noteKey struct {
	version   int64
	direction direction
	statement int
	place     string
}

func (n *note) key() noteKey { return noteKey{n.version, n.direction, n.statement, n.place} }

func (step *Step) key(d direction) noteKey {
	return noteKey{step.Version, d, step.Statement, step.Target.Table}
}

// notes are the notes of one database.
type notes map[noteKey]*note

// makeLog creates the table for the notes.
func (s *session) makeLog(ctx context.Context) error {
	text, options := "TEXT", ""
	if s.Name() == "mysql" {
		text, options = "LONGTEXT", " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
	}
	_, err := s.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+logTable+" (version BIGINT NOT NULL, direction VARCHAR(4) NOT NULL, statement INT NOT NULL,"+
		" place VARCHAR(128) NOT NULL, state VARCHAR(8) NOT NULL, fingerprint VARCHAR(64) NOT NULL, before_ddl "+text+" NOT NULL, after_ddl "+text+" NOT NULL,"+
		" noted_at BIGINT NOT NULL, PRIMARY KEY (version, direction, statement, place))"+options)
	if err != nil {
		return fmt.Errorf("make the table %s in %s: %w", logTable, s.name, err)
	}
	return nil
}

// hasLog reports whether the table for the notes exists.
func (s *session) hasLog(ctx context.Context) (bool, error) {
	query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name = '" + logTable + "'"
	switch s.Name() {
	case "postgres":
		query = "SELECT 'there' WHERE to_regclass('" + logTable + "') IS NOT NULL"
	case "mysql":
		query = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '" + logTable + "'"
	}
	found, err := s.lines(ctx, s, query)
	return len(found) > 0, err
}

// notes reads all notes.
func (s *session) notes(ctx context.Context, on execer) (notes, error) {
	all := notes{}
	err := sqlrun.Each(ctx, on, func(rows *sql.Rows) error {
		n := new(note)
		err := rows.Scan(&n.version, &n.direction, &n.statement, &n.place, &n.state, &n.fingerprint, &n.before, &n.after)
		all[n.key()] = n
		return err
	}, "SELECT version, direction, statement, place, state, fingerprint, before_ddl, after_ddl FROM "+logTable)
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", logTable, s.name, err)
	}
	return all, nil
}

// write stores n instead of the earlier note.
func (s *session) write(ctx context.Context, on execer, n *note) error {
	if err := s.forget(ctx, on, n.key()); err != nil {
		return err
	}
	var places []string
	for i := range 9 {
		places = append(places, s.Placeholder(i+1))
	}
	query := "INSERT INTO " + logTable + " (version, direction, statement, place, state, fingerprint, before_ddl, after_ddl, noted_at) VALUES (" + strings.Join(places, ", ")
	_, err := on.ExecContext(ctx, query+")", n.version, string(n.direction), n.statement, n.place, string(n.state), n.fingerprint, n.before, n.after, time.Now().UnixMilli())
	return wrapNote(err, s.name)
}

// forget removes a note.
func (s *session) forget(ctx context.Context, on execer, k noteKey) error {
	_, err := on.ExecContext(ctx, "DELETE FROM "+logTable+" WHERE version = "+strconv.FormatInt(k.version, 10)+" AND statement = "+strconv.Itoa(k.statement)+
		" AND direction = "+s.Placeholder(1)+" AND place = "+s.Placeholder(2), string(k.direction), k.place)
	return wrapNote(err, s.name)
}

// forgetVersion removes all notes of a version.
func (s *session) forgetVersion(ctx context.Context, on execer, version int64) error {
	_, err := on.ExecContext(ctx, "DELETE FROM "+logTable+" WHERE version = "+strconv.FormatInt(version, 10))
	return wrapNote(err, s.name)
}

func wrapNote(err error, db string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s in %s: %w", logTable, db, err)
}

// replace writes n in one transaction.
func (s *session) replace(ctx context.Context, n *note) error {
	return s.atOnce(ctx, func(on execer) error { return s.write(ctx, on, n) })
}

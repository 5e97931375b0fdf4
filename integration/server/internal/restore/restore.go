// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// Queries are those of a kind of servers. Each row is one text.
type Queries struct {
	// Blocks returns a row for each prepared transaction: the removal of its tables would wait for it.
	Blocks string
	// Ends returns the statements that end the other connections.
	Ends string
	// Removes return the statements that remove all databases and users. Those which the server has from its
	// start on are not executed.
	Removes []string
	// State returns what must be as it was.
	State []string
}

// State is the state of a server.
type State struct {
	queries Queries
	removes []string
	state   []string
}

// Of returns the state of a server.
func Of(ctx context.Context, db *sql.DB, queries Queries) (*State, error) {
	s := &State{queries: queries}
	return s, on(ctx, db, func(conn *sql.Conn) (err error) {
		if s.removes, err = lines(ctx, conn, queries.Removes); err != nil {
			return err
		}
		s.state, err = lines(ctx, conn, queries.State)
		return err
	})
}

// Restore brings the server back to the state.
func (s *State) Restore(ctx context.Context, db *sql.DB) error {
	return on(ctx, db, func(conn *sql.Conn) error {
		if err := s.endConnections(ctx, conn); err != nil {
			return err
		}
		if blocks, err := lines(ctx, conn, []string{s.queries.Blocks}); err != nil || len(blocks) > 0 {
			return errors.Join(err, fmt.Errorf("the server has prepared transactions: %q", blocks))
		}
		removes, err := lines(ctx, conn, s.queries.Removes)
		if err != nil {
			return err
		}
		for _, statement := range removes {
			if slices.Contains(s.removes, statement) {
				continue
			}
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		state, err := lines(ctx, conn, s.queries.State)
		if err != nil {
			return err
		}
		for i := range max(len(state), len(s.state)) {
			is, was := at(state, i), at(s.state, i)
			if is != was {
				return fmt.Errorf("the server has %q, and had %q", is, was)
			}
		}
		return nil
	})
}

func at(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return ""
}

// endConnections returns when no other connection is left.
func (s *State) endConnections(ctx context.Context, conn *sql.Conn) error {
	for rest := time.Millisecond; ; rest *= 2 {
		ends, err := lines(ctx, conn, []string{s.queries.Ends})
		if err != nil || len(ends) == 0 {
			return err
		}
		if rest > time.Minute {
			return errors.New("a connection does not end")
		}
		for _, end := range ends {
			_, _ = conn.ExecContext(ctx, end) // it may have ended meanwhile
		}
		time.Sleep(rest)
	}
}

// on has one connection, because each costs more than the queries.
func on(ctx context.Context, db *sql.DB, f func(conn *sql.Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return f(conn)
}

func lines(ctx context.Context, conn *sql.Conn, queries []string) (all []string, err error) {
	for _, query := range queries {
		err := dialect.Each(ctx, conn, func(rows *sql.Rows) error {
			line, err := line(rows)
			all = append(all, line)
			return err
		}, query)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", query, err)
		}
	}
	return all, nil
}

// line is all columns of a row.
func line(rows *sql.Rows) (string, error) {
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	values, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	if err := rows.Scan(to...); err != nil {
		return "", err
	}
	texts := make([]string, len(columns))
	for i, v := range values {
		texts[i] = v.String
	}
	return strings.Join(texts, "|"), nil
}

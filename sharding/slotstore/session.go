package slotstore

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

const (
	contendedWait  = 10 * time.Second // then the other writer's lock is reported
	contendedPause = 5 * time.Millisecond
)

// base is a database with what is known of it. Texts of its statements have
// names in double quotes and ? for arguments, whatever the server.
type base struct {
	db     *sql.DB
	server dialect.Server
}

func open(ctx context.Context, db *sql.DB) (base, error) {
	server, err := dialect.Detect(ctx, db)
	return base{db, server}, err
}

// tx is a transaction that sees what is committed at each statement.
type tx struct {
	*sql.Tx
	server dialect.Server
}

// do runs f in a transaction, and again while another writer is in the way; f
// must be repeatable.
func (b base) do(ctx context.Context, f func(tx) error) error {
	return retry(ctx, func() error { return b.once(ctx, f) })
}

// retry repeats f while another writer is in the way. When the context ends
// meanwhile the error says both.
func retry(ctx context.Context, f func() error) error {
	giveUp := time.NewTimer(contendedWait)
	defer giveUp.Stop()
	for {
		err := f()
		if !dialect.Contended(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-giveUp.C:
			return fmt.Errorf("%w; another writer held the lock for %v, try again when it is done", err, contendedWait)
		case <-time.After(contendedPause):
		}
	}
}

func (b base) once(ctx context.Context, f func(tx) error) error {
	options := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	if b.server.Name() == "sqlite" {
		options = nil // it has one level only
	}
	begun, err := b.db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	if err := f(tx{begun, b.server}); err != nil {
		return errors.Join(err, rollback(begun))
	}
	return begun.Commit()
}

func rollback(begun *sql.Tx) error {
	if err := begun.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// exec runs one statement outside of a transaction, as DDL does.
func (b base) exec(ctx context.Context, statement string, args ...any) error {
	return retry(ctx, func() error {
		_, err := b.db.ExecContext(ctx, text(b.server, statement), args...)
		return err
	})
}

// execAll runs statements as exec does, on the database or one connection.
func (b base) execAll(ctx context.Context, on Execer, statements []string) error {
	for _, statement := range statements {
		err := retry(ctx, func() error {
			_, err := on.ExecContext(ctx, text(b.server, statement))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b base) row(ctx context.Context, statement string, args ...any) *sql.Row {
	return b.db.QueryRowContext(ctx, text(b.server, statement), args...)
}

func (t tx) exec(ctx context.Context, statement string, args ...any) error {
	_, err := t.ExecContext(ctx, text(t.server, statement), args...)
	return err
}

// insertRows is how many rows one statement inserts, well below what databases take
// in arguments.
const insertRows = 500

// insert inserts rows, all of one width, into a table with its columns; ending
// follows the values.
func (t tx) insert(ctx context.Context, into string, rows [][]any, ending string) error {
	for some := range slices.Chunk(rows, insertRows) {
		group := "(?" + strings.Repeat(", ?", len(some[0])-1) + ")"
		statement := "INSERT INTO " + into + " VALUES " + group + strings.Repeat(", "+group, len(some)-1) + ending
		if err := t.exec(ctx, statement, slices.Concat(some...)...); err != nil {
			return err
		}
	}
	return nil
}

func (t tx) row(ctx context.Context, statement string, args ...any) *sql.Row {
	return t.QueryRowContext(ctx, text(t.server, statement), args...)
}

// each scans the rows of a query one by one.
func (t tx) each(ctx context.Context, scan func(*sql.Rows) error, statement string, args ...any) error {
	rows, err := t.QueryContext(ctx, text(t.server, statement), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err tells all
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// text puts a statement into the server's words.
func text(server dialect.Server, statement string) string {
	var b strings.Builder
	args := 0
	for i, part := range strings.Split(statement, `"`) {
		if i%2 == 1 {
			b.WriteString(server.Quote(part))
			continue
		}
		for j, piece := range strings.Split(part, "?") {
			if j > 0 {
				args++
				b.WriteString(server.Placeholder(args))
			}
			b.WriteString(piece)
		}
	}
	return b.String()
}

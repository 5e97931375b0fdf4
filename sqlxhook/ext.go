package sqlxhook

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/sharding"
)

var (
	_ Execer          = (*Shard)(nil)
	_ Queryer         = (*Shard)(nil)
	_ sqlx.ExtContext = (*Shard)(nil)
	_ sqlx.ExtContext = (*Tx)(nil)
)

// ExecContext executes a query with placeholders. INSERT and REPLACE into a
// sharded table are refused, as it cannot see where their rows belong: that is
// what [Hook.NamedExec] and [Hook.Insert] do.
func (s *Shard) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return sent(ctx, s, query, func(conn sqlx.ExtContext, text string) (sql.Result, error) {
		return conn.ExecContext(ctx, text, args...)
	})
}

// QueryContext is [Shard.ExecContext] for queries that return rows.
func (s *Shard) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return sent(ctx, s, query, func(conn sqlx.ExtContext, text string) (*sql.Rows, error) {
		return conn.QueryContext(ctx, text, args...)
	})
}

// QueryxContext is QueryContext with the rows of sqlx.
func (s *Shard) QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	return sent(ctx, s, query, func(conn sqlx.ExtContext, text string) (*sqlx.Rows, error) {
		return conn.QueryxContext(ctx, text, args...)
	})
}

// QueryRowxContext is QueryxContext for one row. A refusal is the error of the row.
func (s *Shard) QueryRowxContext(ctx context.Context, query string, args ...any) *sqlx.Row {
	row, err := sent(ctx, s, query, func(conn sqlx.ExtContext, text string) (*sqlx.Row, error) {
		row := conn.QueryRowxContext(ctx, text, args...)
		return row, row.Err()
	})
	if err != nil {
		return errorRow(err)
	}
	return row
}

// GetContext reads one row into dest, as sqlx does.
func (s *Shard) GetContext(ctx context.Context, dest any, query string, args ...any) error {
	return s.read(ctx, sqlx.GetContext, dest, query, args)
}

// SelectContext reads all rows into dest, as sqlx does.
func (s *Shard) SelectContext(ctx context.Context, dest any, query string, args ...any) error {
	return s.read(ctx, sqlx.SelectContext, dest, query, args)
}

type reading = func(ctx context.Context, q sqlx.QueryerContext, dest any, query string, args ...any) error

func (s *Shard) read(ctx context.Context, into reading, dest any, query string, args []any) error {
	_, err := sent(ctx, s, query, func(conn sqlx.ExtContext, text string) (struct{}, error) {
		return struct{}{}, into(ctx, conn, dest, text, args...)
	})
	return err
}

// BindNamed writes a query with named parameters as one with placeholders, as sqlx
// does. It fills no keys, and looks at no rows.
func (s *Shard) BindNamed(query string, arg any) (string, []any, error) {
	return s.db.BindNamed(query, arg)
}

// sent sends a query whose rows nobody looks at, once more when it did nothing
// because its table has moved.
func sent[T any](ctx context.Context, s *Shard, query string, send func(conn sqlx.ExtContext, text string) (T, error)) (answer T, err error) {
	var none T
	at, err := s.present(ctx)
	for err == nil {
		text, refused := at.direct(ctx, query)
		if refused != nil {
			return none, refused
		}
		if answer, err = send(at.conn, text); err == nil {
			return answer, nil
		}
		at, err = at.next(ctx, err)
	}
	return none, err
}

// direct returns the text to send of a query whose rows nobody looks at.
func (s *Shard) direct(ctx context.Context, query string) (string, error) {
	if sharding.HintOf(ctx).Unsharded {
		return query, nil
	}
	x, err := s.expanded(query)
	if err == nil && x.inserts != nil {
		err = refusal(x.inserts, sharding.ErrMissingKey, "insert with Hook.Insert or Hook.NamedExec, which look at the rows")
	}
	return x.text, err
}

// errorRow returns a row whose Scan and Err return err.
func errorRow(err error) *sqlx.Row {
	db := sqlx.NewDb(sqlrun.Refusing(err), "")
	defer func() { _ = db.Close() }()
	return db.QueryRowxContext(context.Background(), "")
}

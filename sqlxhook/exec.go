package sqlxhook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"github.com/jmoiron/sqlx"
)

// Execer is what a Hook sends statements to; *sqlx.DB, *sqlx.Tx and *sqlx.Conn
// are Execers.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	Rebind(query string) string
}

var (
	_ Execer = (*sqlx.DB)(nil)
	_ Execer = (*sqlx.Tx)(nil)
	_ Execer = (*sqlx.Conn)(nil)
)

// Result tells what a call wrote.
type Result struct {
	// IDs are the keys of the rows in the order of the argument, generated or
	// preset; nil when the rows' type has no keygen tag. With several tagged
	// fields they are those of the first.
	IDs []int64
	// RowsAffected is the sum over all statements, as the database counts: an
	// upsert that changes a row counts 2 on MySQL.
	RowsAffected int64
}

// args are the values of all rows, taken before anything is sent.
type args struct {
	head, group, tail []any
}

// collect reads the arguments out of the rows.
func (p *plan) collect(r *rows) (args, error) {
	var a args
	var err error
	if a.head, err = once(p.head, r); err != nil {
		return a, err
	}
	if a.tail, err = once(p.tail, r); err != nil {
		return a, err
	}
	a.group = make([]any, 0, len(p.group)*r.n)
	for i := range r.n {
		for f := range p.group {
			v, err := p.group[f].value(r, i)
			if err != nil {
				return a, err
			}
			a.group = append(a.group, v)
		}
	}
	return a, nil
}

// once reads parameters that occur once per statement, outside the VALUES
// group. In a batch all rows must agree on them: no row's value is better than
// another's.
func once(fields []field, r *rows) ([]any, error) {
	var out []any
	for f := range fields {
		first, err := fields[f].value(r, 0)
		if err != nil {
			return nil, err
		}
		for i := 1; i < r.n; i++ {
			v, err := fields[f].value(r, i)
			if err != nil {
				return nil, err
			}
			if !reflect.DeepEqual(v, first) {
				return nil, &RowError{Row: i, Field: fields[f].name, Err: fmt.Errorf(
					"%w: outside VALUES a parameter has one value for the whole batch, and row 0 has another; use excluded.column or VALUES(column)", ErrStatement)}
			}
		}
		out = append(out, first)
	}
	return out, nil
}

// of returns the arguments for rows from to to, of width parameters each.
func (a *args) of(from, to, width int) []any {
	if len(a.head) == 0 && len(a.tail) == 0 {
		return a.group[from*width : to*width]
	}
	out := make([]any, 0, len(a.head)+(to-from)*width+len(a.tail))
	out = append(out, a.head...)
	out = append(out, a.group[from*width:to*width]...)
	return append(out, a.tail...)
}

// send executes the plan for n rows. sent reports whether a statement may have
// reached the database.
func (p *plan) send(ctx context.Context, e Execer, a *args, n int) (affected int64, sent bool, err error) {
	db, pooled := e.(*sqlx.DB)
	if !pooled || p.perStatement(n) >= n {
		return p.sendAll(ctx, e, a, n)
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return 0, false, err
	}
	affected, sent, err = p.sendAll(ctx, tx, a, n)
	if err == nil {
		return affected, true, tx.Commit()
	}
	// Nothing of the batch remains, so that it was partial is no news.
	var partial *PartialError
	if errors.As(err, &partial) {
		err = partial.Err
	}
	if undone := tx.Rollback(); undone != nil && !errors.Is(undone, sql.ErrTxDone) {
		err = errors.Join(err, undone)
	}
	return 0, sent, err
}

func (p *plan) sendAll(ctx context.Context, e Execer, a *args, n int) (affected int64, sent bool, err error) {
	per, query := p.perStatement(n), ""
	for from := 0; from < n; from += per {
		to := min(from+per, n)
		if from == 0 || to-from < per {
			query = p.text(to - from)
		}
		m, err := execute(ctx, e, query, a.of(from, to, len(p.group)))
		if err != nil && from > 0 {
			return affected, true, &PartialError{Done: from, Err: err}
		}
		if err != nil {
			return 0, reached(err), err
		}
		affected += m
	}
	return affected, true, nil
}

func execute(ctx context.Context, e Execer, query string, args []any) (int64, error) {
	res, err := e.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// reached reports whether a failed statement may have reached the database. A
// handle that was closed before sends nothing.
func reached(err error) bool {
	return !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, sql.ErrConnDone)
}

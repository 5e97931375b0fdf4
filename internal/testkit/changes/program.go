// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Program runs a random program on both databases, and returns the first difference as an error.
// Half of the programs are a transaction with savepoints, which is committed or rolled back. It
// returns the number of statements that succeeded.
func (m *Maker) Program(ctx context.Context, routed, whole *sql.DB) (done int, err error) {
	return (&program{Maker: m, routed: routed, whole: whole}).run(ctx, routed, whole)
}

// Program runs a random program on members, like Maker.Program.
func (m *Members) Program(ctx context.Context, routed, whole *sql.DB) (done int, err error) {
	return (&program{Maker: m.Maker, members: m, routed: routed, whole: whole}).run(ctx, routed, whole)
}

func (p *program) run(ctx context.Context, routed, whole *sql.DB) (done int, err error) {
	var end func() error
	if p.IntN(2) == 0 {
		if end, err = p.begin(ctx); err != nil {
			return 0, err
		}
	}
	for range 1 + p.IntN(12) {
		if err := p.step(ctx); err != nil {
			if end != nil {
				_ = end()
			}
			return p.done, err
		}
	}
	if end != nil {
		if err := end(); err != nil {
			return p.done, err
		}
	}
	return p.done, p.compare(ctx, routed, whole)
}

type program struct {
	*Maker
	members       *Members // nil for a program on orders
	routed, whole Queries
	inTx          bool
	savepoints    int
	done          int
}

// begin begins a transaction on both, and returns a function that ends both.
func (p *program) begin(ctx context.Context) (func() error, error) {
	routed, err := p.routed.(*sql.DB).BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	whole, err := p.whole.(*sql.DB).BeginTx(ctx, nil)
	if err != nil {
		_ = routed.Rollback()
		return nil, err
	}
	p.routed, p.whole, p.inTx = routed, whole, true
	commit := p.IntN(3) > 0
	return func() error {
		var errs [2]error
		for i, tx := range []*sql.Tx{routed, whole} {
			end := tx.Rollback
			if commit {
				end = tx.Commit
			}
			errs[i] = end()
		}
		if p.bothFail(errs[0], errs[1]) {
			return nil
		}
		return errors.Join(errs[:]...)
	}, nil
}

// bothFail reports whether both fail after a statement that has aborted the transactions of
// PostgreSQL.
func (p *program) bothFail(routed, whole error) bool {
	return p.PostgreSQL && p.inTx && routed != nil && whole != nil
}

func (p *program) step(ctx context.Context) error {
	switch n := p.IntN(8); {
	case p.inTx && n == 0:
		p.savepoints++
		return p.both(ctx, Statement{Text: fmt.Sprintf("SAVEPOINT s%d", p.savepoints)})
	case p.inTx && n == 1 && p.savepoints > 0:
		return p.both(ctx, Statement{Text: fmt.Sprintf("ROLLBACK TO SAVEPOINT s%d", p.savepoints)})
	case p.inTx && n == 2 && p.savepoints > 0:
		p.savepoints--
		return p.both(ctx, Statement{Text: fmt.Sprintf("RELEASE SAVEPOINT s%d", p.savepoints+1)})
	case n == 3:
		return p.compare(ctx, p.routed, p.whole)
	}
	if p.members != nil {
		return p.orRefused(ctx, p.members.Statement())
	}
	return p.both(ctx, p.Statement())
}

// both executes a statement on both databases.
func (p *program) both(ctx context.Context, s Statement) error {
	want, failed := s.Run(ctx, p.whole)
	got, err := s.Run(ctx, p.routed)
	if s.Args == nil && p.inTx && strings.Contains(s.Text, "SAVEPOINT") { // drivers report any number of rows for savepoints
		got, want = min(got, 0), min(want, 0)
	}
	if got != want {
		return errors.Join(fmt.Errorf("%s %v: %d rows, where one table has %d", s.Text, s.Args, got, want), err, failed)
	}
	if failed == nil {
		p.done++
	}
	return nil
}

// orRefused executes a statement on both databases, unless the shards refuse it.
func (p *program) orRefused(ctx context.Context, s Statement) error {
	got, err := s.Run(ctx, p.routed)
	if p.members.IsRefusal(err) {
		return p.members.refused(ctx, p.whole, s, err)
	}
	want, failed := s.Run(ctx, p.whole)
	if got != want {
		return errors.Join(fmt.Errorf("%s %v: %d rows, where one table has %d", s.Text, s.Args, got, want), err, failed)
	}
	if failed == nil {
		p.done++
	}
	return nil
}

func (p *program) query() string {
	if p.members != nil {
		return "SELECT id, user_id, paid, email FROM members"
	}
	return "SELECT id, user_id, paid, note FROM orders"
}

func (p *program) compare(ctx context.Context, routed, whole Queries) error {
	want, failed := rows(ctx, whole, p.query())
	got, err := rows(ctx, routed, p.query())
	switch {
	case p.bothFail(err, failed):
		return nil
	case err != nil || failed != nil:
		return errors.Join(err, failed)
	case !slices.Equal(got, want):
		return fmt.Errorf("the shards have\n%q\nwhere one table has\n%q", got, want)
	}
	return nil
}

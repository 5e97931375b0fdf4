package changes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Program runs a random program on both databases, and tells where they differ first.
// Half of the programs are a transaction with savepoints, which ends one way or the
// other. It returns how many statements succeeded.
func (m *Maker) Program(ctx context.Context, routed, whole *sql.DB) (done int, err error) {
	p := &program{Maker: m, routed: routed, whole: whole}
	var end func() error
	if m.IntN(2) == 0 {
		if end, err = p.begin(ctx); err != nil {
			return 0, err
		}
	}
	for range 1 + m.IntN(12) {
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
	routed, whole Queries
	inTx          bool
	savepoints    int
	done          int
}

// begin begins on both, and returns what ends both.
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
		for _, tx := range []*sql.Tx{routed, whole} {
			end := tx.Rollback
			if commit {
				end = tx.Commit
			}
			if err := end(); err != nil {
				return err
			}
		}
		return nil
	}, nil
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
	return p.both(ctx, p.Statement())
}

// both executes a statement on both.
func (p *program) both(ctx context.Context, s Statement) error {
	want, failed := s.Run(ctx, p.whole)
	got, err := s.Run(ctx, p.routed)
	if s.Args == nil && p.inTx && strings.Contains(s.Text, "SAVEPOINT") { // after which drivers say anything
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

func (p *program) compare(ctx context.Context, routed, whole Queries) error {
	want, err := Rows(ctx, whole)
	if err != nil {
		return err
	}
	got, err := Rows(ctx, routed)
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the shards have\n%q\nwhere one table has\n%q", got, want)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/twophase"
)

// steps calls a function before and after each statement that is sent, including BEGIN and
// COMMIT.
type steps struct {
	count atomic.Int64
	at    func(step int64, behind bool) // nil does nothing
	lost  error                         // at sets it to lose an answer
}

func (s *steps) around(do func() error) error {
	if s.at == nil {
		return do()
	}
	n := s.count.Add(1)
	s.at(n, false)
	err := do()
	s.at(n, true)
	if lost := s.lost; lost != nil {
		s.lost = nil
		return lost
	}
	return err
}

// stepping makes connections that report their steps.
type stepping struct {
	driver.Connector

	steps *steps
}

func (c stepping) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &steppingConn{conn.(wholeConn), c.steps}, nil
}

// wholeConn has the methods of both drivers' connections.
type wholeConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
	driver.NamedValueChecker
	driver.SessionResetter
}

type steppingConn struct {
	wholeConn

	steps *steps
}

func (c *steppingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	err = c.steps.around(func() error { result, err = c.wholeConn.ExecContext(ctx, query, args); return err })
	return result, err
}

func (c *steppingConn) BeginTx(ctx context.Context, options driver.TxOptions) (tx driver.Tx, err error) {
	err = c.steps.around(func() error { tx, err = c.wholeConn.BeginTx(ctx, options); return err })
	return steppingTx{tx, c.steps}, err
}

type steppingTx struct {
	driver.Tx

	steps *steps
}

func (t steppingTx) Commit() error { return t.steps.around(t.Tx.Commit) }

// openStepping returns a bank whose statements are reported.
func openStepping(ctx context.Context, driverName, east, west string, s *steps) (*bank, error) {
	open := func(dsn string) (*sql.DB, error) {
		plain, err := sql.Open(driverName, dsn)
		if err != nil {
			return nil, err
		}
		defer func() { _ = plain.Close() }()
		connector, err := plain.Driver().(driver.DriverContext).OpenConnector(dsn)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(stepping{connector, s}), nil
	}
	a, err := open(east)
	if err != nil {
		return nil, err
	}
	z, err := open(west)
	if err != nil {
		return nil, err
	}
	return newBank(ctx, a, z)
}

// dieAt makes two transfers, the second of which is killed at a step.
func dieAt(step int64, behind bool) {
	ctx := context.Background()
	s := &steps{}
	b, err := openStepping(ctx, os.Getenv(driverVariable), os.Getenv(eastVariable), os.Getenv(westVariable), s)
	if err != nil {
		panic(err)
	}
	first, err := strconv.ParseInt(os.Getenv(firstVariable), 10, 64)
	if err != nil {
		panic(err)
	}
	if err := b.transfer(ctx, first, 0, 1); err != nil { // which asks what is asked once
		panic(err)
	}
	s.at = func(n int64, isBehind bool) {
		if n == step && behind == isBehind {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if err := b.transfer(ctx, first+1, 2, 3); err != nil {
		panic(err)
	}
	os.Exit(0) // it has no such step
}

// killedAt makes two transfers in a program that is killed at a step of the second, and
// reports whether that has such a step.
func killedAt(t *testing.T, a, z database.Server, first, step int64, behind bool) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), eastVariable+"="+a.DSN("bank_east"), westVariable+"="+z.DSN("bank_west"), driverVariable+"="+database.DriverOf(a),
		firstVariable+"="+strconv.FormatInt(first, 10), stepVariable+"="+strconv.FormatInt(step, 10), behindVariable+"="+strconv.FormatBool(behind))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if status, is := cmd.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != syscall.SIGKILL {
		t.Fatalf("step %d: %v: %s", step, err, out)
	}
	return true
}

const stepVariable, behindVariable = "BANK_STEP", "BANK_BEHIND"

func TestNoTransferIsThereByHalfWhenItsProgramIsKilledAtEachStep(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		committed, id, killed := 0, int64(1), 0
		for step := int64(1); ; step++ {
			ended := false
			for _, behind := range []bool{false, true} {
				if ended = !killedAt(t, a, z, id, step, behind); ended {
					break
				}
				killed++
				b.settle(t)
				all := b.audit(t)
				if all[id] != 3 {
					t.Errorf("transfer %d before the kill is on %d", id, all[id])
				}
				if all[id+1] == 3 {
					committed++
				}
				id += 2
			}
			if ended {
				break
			}
		}
		t.Logf("killed at %d places, %d of which were behind the decision", killed, committed)
		if committed == 0 || committed == killed || killed < 20 {
			t.Errorf("%d kills, %d transfers committed", killed, committed)
		}
	})
}

func TestNoTransferIsThereByHalfWhenAServerIsKilledAtEachStep(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		s := &steps{}
		stepped, err := openStepping(t.Context(), database.DriverOf(a), a.DSN("bank_east"), z.DSN("bank_west"), s)
		must(t, err)
		defer func() { must(t, errors.Join(stepped.routed.Close(), stepped.east.Close(), stepped.west.Close())) }()
		outcomes, id := map[string]int{}, int64(1)
		for step, more := int64(1), true; more; step++ {
			for n, of := range []database.Server{a, z} {
				if !effort.Soak() && int(step)%2 != n {
					continue
				}
				// Pools have connections to the server that was killed before.
				testwait.Until(t, "a transfer that makes new connections", func() bool { return stepped.transfer(t.Context(), id, 0, 1) == nil })
				dead := false
				s.count.Store(0)
				s.at = func(at int64, behind bool) {
					if at == step && !behind {
						of.Kill()
						dead = true
					}
				}
				err := stepped.transfer(t.Context(), id+1, 2, 3)
				s.at = nil
				if !dead {
					more = false
					must(t, err)
					break
				}
				must(t, of.Start(t.Context()))
				b.settle(t)
				sides, said := b.audit(t)[id+1], "refused"
				switch {
				case errors.Is(err, sharding.ErrInDoubt):
					said = "in doubt"
				case err == nil:
					said = "committed"
				}
				if said == "committed" && sides != 3 || said == "refused" && sides != 0 {
					t.Errorf("step %d: %s, and it is on %d: %v", step, said, sides, err)
				}
				outcomes[said]++
				id += 2
			}
		}
		t.Log(outcomes)
		if outcomes["committed"] == 0 || outcomes["refused"] == 0 {
			t.Errorf("%v", outcomes)
		}
	})
}

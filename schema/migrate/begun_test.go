// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

// StepBegun comes once the phase is stored, and again with each Run of a job that has begun; a
// Run that a finding blocks has begun nothing.
func TestARunSaysThatItsJobHasBegun(t *testing.T) {
	s := newShop(t, 20)
	var steps []string
	j := s.job(t, "user_id", func(c *migrate.Config) { c.Observe = func(s migrate.Step) { steps = append(steps, s.Name) } })
	run := func() (began bool, err error) {
		steps = nil
		err = j.Run(t.Context())
		return slices.Contains(steps, migrate.StepBegun), err
	}
	exec(t, s.source, "CREATE TABLE good AS SELECT * FROM orders; DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER); INSERT INTO orders VALUES (7, NULL)")
	if began, err := run(); began || err == nil {
		t.Errorf("blocked: %t, %v", began, err)
	}
	exec(t, s.source, "UPDATE orders SET user_id = 3")
	for range 2 {
		if began, err := run(); !began || err != nil {
			t.Errorf("%t, %v", began, err)
		}
	}
}

// goesAway opens some connections to a database, and then no more.
type goesAway struct {
	of   driver.Driver
	name string
	left int
}

func (d *goesAway) Driver() driver.Driver { return d.of }

func (d *goesAway) Connect(context.Context) (driver.Conn, error) {
	if d.left--; d.left < 0 {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return d.of.Open(d.name)
}

// A runner waits for such a database, whenever it goes away, and so must be able to tell it from a finding.
func TestAShardThatGoesAwayDoesNotBlockARun(t *testing.T) {
	for left := 3; left < 6; left++ { // the connections with which the runner inspects the shard; it waits at others itself
		s := newShop(t, 5)
		a := sql.OpenDB(&goesAway{s.shards["a"].Driver(), "file:" + s.dir + "/a.db", left})
		a.SetMaxIdleConns(-1)
		s.shards["a"] = a
		err := s.job(t, "id").Run(t.Context())
		var blocked *migrate.BlockedError
		if !migrate.Transient(err) || errors.As(err, &blocked) {
			t.Errorf("after %d connections: %v", left, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

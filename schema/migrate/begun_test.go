// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"slices"
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

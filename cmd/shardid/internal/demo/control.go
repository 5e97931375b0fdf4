// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"database/sql"
	"errors"
	"io"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

// The old database gives ids by itself until the switch. The margin is larger than the
// number of ids that its writers use during a demonstration.
const (
	seedMargin  = 1_000_000
	segmentStep = 1000
)

// control is the database that keeps the counters, the generators that take ids from it,
// one per table under the table's name, and other open databases.
type control struct {
	db         *sql.DB
	generators keygen.Set
	open       []io.Closer
}

// install creates shardid's own tables, and for each table a counter above all ids that the
// source has given.
func install(ctx context.Context, f folder, all []*table) (*control, error) {
	db, err := f.create(ctx, controlFile)
	if err != nil {
		return nil, err
	}
	c := &control{db: db, generators: keygen.Set{Named: map[string]keygen.Generator[int64]{}}}
	if err := c.seed(ctx, all); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *control) seed(ctx context.Context, all []*table) error {
	if err := schema.Apply(ctx, c.db); err != nil {
		return err
	}
	store, err := sqlstore.New(ctx, c.db)
	if err != nil {
		return err
	}
	for _, t := range all {
		if _, err := schema.Seed(ctx, c.db, t.name, t.next+seedMargin, segmentStep); err != nil {
			return err
		}
		g, err := segment.New(ctx, segment.Config{Source: store.Tag(t.name)})
		if err != nil {
			return err
		}
		c.open = append(c.open, g)
		c.generators.Named[t.name] = g
	}
	return nil
}

func (c *control) close() error {
	var errs []error
	for _, g := range c.open {
		errs = append(errs, g.Close())
	}
	return errors.Join(append(errs, c.db.Close())...)
}

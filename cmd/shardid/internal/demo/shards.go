// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"database/sql"
	"errors"
	"maps"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// shards are the databases over which rows are spread.
type shards struct {
	dbs    sharding.DBs
	router *sharding.Router // leads to them, whether they serve or not
}

// makeShards creates the databases, in which the migration will create the tables. Children
// use their parent's key, with the same rule and a map of the same form, so that they lie
// in their parents' databases.
func makeShards(ctx context.Context, f folder, all []*table) (*shards, error) {
	s := &shards{dbs: sharding.DBs{}}
	for _, name := range shardNames() {
		db, err := f.create(ctx, name+".db")
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.dbs[name] = db
	}
	var err error
	if s.router, err = newRouter(s.dbs, all); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// and returns the shards and the database that is migrated to them, under the names that
// the applications use.
func (s *shards) and(live *sql.DB) sharding.DBs {
	dbs := maps.Clone(s.dbs)
	dbs[liveName] = live
	return dbs
}

func newRouter(dbs sharding.DBs, all []*table, options ...sharding.Option) (*sharding.Router, error) {
	for _, t := range all {
		spread, err := sharding.Spread(shardNames(), tables, t.name+"_%02d")
		if err != nil {
			return nil, input.Wrap(err)
		}
		options = append(options, sharding.Table{Name: t.name, Key: t.by, Rule: sharding.Low(slotBits), Map: spread, Group: all[0].name})
	}
	router, err := sharding.New(dbs, options...)
	if err != nil {
		return nil, input.Wrap(err)
	}
	return router, nil
}

// checkLayout checks, before anything is written, whether the physical tables can be named:
// names may be too similar or too long.
func checkLayout(all []*table) error {
	dbs := sharding.DBs{}
	for _, name := range shardNames() {
		dbs[name] = new(sql.DB) // never used
	}
	router, err := newRouter(dbs, all)
	if err != nil {
		return err
	}
	if _, err := migrate.New(jobConfig(new(sql.DB), &shards{dbs, router})); err != nil {
		return input.Wrap(err)
	}
	return nil
}

func (s *shards) close() error {
	var errs []error
	for _, db := range s.dbs {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

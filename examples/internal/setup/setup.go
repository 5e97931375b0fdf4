// SPDX-License-Identifier: Apache-2.0

// Package setup opens what all shops need: their databases, the router, the generators and the
// status page.
package setup

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/observe/statuspage"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
)

// Shop has the router and the generators with which a program stores and finds rows.
type Shop struct {
	*Databases

	Home   *sql.DB // east, with the tables that are not sharded
	Router *sharding.Router
	IDs    *snowflake.Generator

	store *sqlstore.Store
}

// Slots is the number of parts into which users, with their orders and items, are divided. It is a
// power of two, so that the last bits of an id are the slot. In production choose a few hundred, so that
// new databases get rows by moving slots.
const (
	Slots    = 8
	slotBits = 3
)

// Open connects to the databases and creates the tables of generators and worker ids.
func Open(ctx context.Context, f Flags) (s *Shop, err error) {
	s = &Shop{}
	if s.Databases, err = Connect(f); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	dbs, err := s.Shards()
	if err != nil {
		return s, err
	}
	s.Home = dbs["east"]
	if s.Router, err = route(dbs); err != nil {
		return s, err
	}
	return s, s.number(ctx)
}

// route returns the router. The tables of the group keep all rows of a user in one slot: a
// user by its id, an order by user_id, an item by order_id. Ids of orders carry
// the slot of their user, so that they lead to this slot, too.
func route(dbs sharding.DBs) (*sharding.Router, error) {
	table := func(name, key string) sharding.Table {
		m, err := sharding.Spread([]string{"east", "west"}, Slots, name+"_%d")
		if err != nil {
			panic(err) // the arguments are constants
		}
		return sharding.Table{Name: name, Key: key, Rule: sharding.Low(slotBits), Map: m, Group: "shop"}
	}
	users, orders, items := table("users", "id"), table("orders", "user_id"), table("items", "order_id")
	users.Lookups = []sharding.Lookup{{Column: "email", Table: "users_by_email", Unique: true}}
	orders.Also = []sharding.Alt{{Column: "id", Rule: sharding.Low(slotBits)}}
	return sharding.New(dbs, users, orders, items, sharding.Broadcast("products"))
}

// number starts the generator. Each process leases a worker id, which no other process has. The lease has a
// pool of its own, because a pool whose connections are all in transactions could not renew it.
func (s *Shop) number(ctx context.Context) (err error) {
	db, err := s.Open("ids")
	if err != nil {
		return err
	}
	if err := schema.Apply(ctx, db); err != nil {
		return err
	}
	if s.store, err = sqlstore.New(ctx, db); err != nil {
		return err
	}
	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: s.store.Leases(), Namespace: "shop"})
	if err != nil {
		return err
	}
	s.IDs, err = snowflake.New(ctx, snowflake.Config{Worker: worker, Layout: keygen.Twitter().WithBucket(slotBits)})
	if err != nil {
		return err
	}
	s.Undo(s.IDs.Close)
	return nil
}

// Page returns the status page of generators, shards and worker ids. In production, protect it with
// authentication.
func (s *Shop) Page() (http.Handler, error) {
	service, err := observe.New(observe.Config{Generators: keygen.Set{Default: s.IDs}, Router: s.Router})
	if err != nil {
		return nil, err
	}
	return statuspage.New(statuspage.Config{Service: service, Store: s.store})
}

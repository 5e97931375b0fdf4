package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// current is the router of the file, with the slots where the stored map has them now, and
// those of them that are on their way. Who writes has to follow the map instead.
func (l layoutFile) current(ctx context.Context, dbs sharding.DBs) (r *sharding.Router, moving []sharding.Slot, err error) {
	if r, err = l.router(dbs); err != nil || l.Slots.Name == "" {
		return r, nil, err
	}
	store, err := l.store(ctx, dbs, r)
	if err != nil {
		return nil, nil, err
	}
	v, err := store.Read(ctx)
	if err != nil || len(v.Slots) == 0 {
		return r, nil, err
	}
	maps := map[string]sharding.Map{}
	for _, t := range store.Tables() {
		places := make([]sharding.Target, len(v.Slots))
		for i, s := range v.Slots {
			places[i] = store.Target(t, s.Shard)
		}
		m, err := sharding.MapOf(places...)
		if err != nil {
			return nil, nil, err
		}
		maps[t.Name] = m.At(v.Version)
	}
	for _, s := range v.Slots {
		if s.State != slotstore.Active {
			moving = append(moving, s.Slot)
		}
	}
	return r, moving, r.Swap(maps)
}

// store is the stored map of a file that names one.
func (l layoutFile) store(ctx context.Context, dbs sharding.DBs, r *sharding.Router) (*slotstore.Store, error) {
	home, err := l.home(dbs)
	if err != nil {
		return nil, err
	}
	c, err := l.slotStore(home, r)
	if err != nil {
		return nil, err
	}
	return slotstore.New(ctx, c)
}

// follow keeps a router on the stored map until the returned function is called.
func (l layoutFile) follow(ctx context.Context, dbs sharding.DBs, r *sharding.Router) (done func() error, err error) {
	done = func() error { return nil }
	if l.Slots.Name == "" {
		return done, nil
	}
	store, err := l.store(ctx, dbs, r)
	if err != nil {
		return nil, err
	}
	if v, err := store.Read(ctx); err != nil || len(v.Slots) == 0 {
		return done, err
	}
	follower, err := store.Follow(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return follower.Close(context.WithoutCancel(ctx)) }, nil
}

// placed is a router for those who send nothing to the databases: they are asked where the
// slots are, if the file says that a map is stored.
func (l layoutFile) placed(ctx context.Context) (r *sharding.Router, err error) {
	if l.Slots.Name == "" {
		return l.router(l.unopened())
	}
	s, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r, _, err = l.current(ctx, s.dbs)
	return r, explained(err, s.mask)
}

// noteMoving says in a diagnosis which slots are on two shards.
func noteMoving(d *schema.Diagnosis, moving []sharding.Slot) {
	if len(moving) > 0 {
		d.Findings = append(d.Findings, schema.ShardFinding{Finding: schema.Finding{
			Code: schema.NotChecked, Severity: schema.Info, Message: fmt.Sprintf("%d slots are on their way, so that rows of theirs are on two shards and may be told as misplaced", len(moving)),
			Fix: "let shardid rebalance run end, and look again",
		}})
	}
}

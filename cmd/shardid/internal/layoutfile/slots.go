// SPDX-License-Identifier: Apache-2.0

package layoutfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// slotsEntry names a map of slots and its shards.
type slotsEntry struct {
	Name   string              `json:"name"`
	Term   string              `json:"term"`
	Shards map[string][]string `json:"shards"`
}

// SlotStore is the configuration of the map.
func (l File) SlotStore(home *sql.DB, router *sharding.Router) (slotstore.Config, error) {
	c := slotstore.Config{Name: l.Slots.Name, DB: home, Router: router, Shards: map[string][]sharding.Target{}}
	if c.Name == "" {
		return c, input.Errorf(`--config: there is no "slots"; name the map, and the shards of its tables; see shardid rebalance --help`)
	}
	if l.Slots.Term != "" {
		term, err := time.ParseDuration(l.Slots.Term)
		if err != nil {
			return c, input.Errorf(`--config: "slots": "term": %q is not a duration; write a number with a unit, as 10s`, l.Slots.Term)
		}
		c.Term = term
	}
	for _, table := range slices.Sorted(maps.Keys(l.Slots.Shards)) {
		targets, err := TargetsOf(l.Slots.Shards[table])
		if err != nil {
			return c, input.Errorf(`--config: "slots": table %q: %w`, table, err)
		}
		c.Shards[table] = targets
	}
	return c, nil
}

// TargetsOf parses texts of the form "database/table".
func TargetsOf(texts []string) (targets []sharding.Target, err error) {
	for _, text := range texts {
		db, table, ok := strings.Cut(text, "/")
		if !ok {
			return nil, fmt.Errorf(`%q: write each as "database/table"`, text)
		}
		targets = append(targets, sharding.Target{DB: db, Table: table})
	}
	return targets, nil
}

// HomeDB returns the database of tables that are not listed.
func (l File) HomeDB(dbs sharding.DBs) (*sql.DB, error) {
	db := dbs[l.Home]
	if db == nil {
		return nil, input.Errorf(`--config: give "home", the database of the tables that are not sharded, where lookup tables and the map of slots are`)
	}
	return db, nil
}

// Current is the router of the file with the present slots of the stored map, and the slots
// that are moving. A caller that writes must use Follow instead.
func (l File) Current(ctx context.Context, dbs sharding.DBs) (r *sharding.Router, moving []sharding.Slot, err error) {
	if r, err = l.Router(dbs); err != nil || l.Slots.Name == "" {
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

// store is the stored map, if the file names one.
func (l File) store(ctx context.Context, dbs sharding.DBs, r *sharding.Router) (*slotstore.Store, error) {
	home, err := l.HomeDB(dbs)
	if err != nil {
		return nil, err
	}
	c, err := l.SlotStore(home, r)
	if err != nil {
		return nil, err
	}
	return OpenStore(ctx, c)
}

// OpenStore opens the map. A "slots" that cannot work is a mistake of the user.
func OpenStore(ctx context.Context, c slotstore.Config) (*slotstore.Store, error) {
	s, err := slotstore.New(ctx, c)
	if errors.Is(err, slotstore.ErrConfig) {
		err = input.Errorf(`--config: "slots": %w`, err)
	}
	return s, err
}

// Follow keeps a router on the stored map until the returned function is called.
func (l File) Follow(ctx context.Context, dbs sharding.DBs, r *sharding.Router) (done func() error, err error) {
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

// Placed is a router for callers that send nothing to the databases. If the file names a
// map, it reads the slots from the home database.
func (l File) Placed(ctx context.Context) (r *sharding.Router, err error) {
	if l.Slots.Name == "" {
		return l.Router(l.Unopened())
	}
	s, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, _, err = l.Current(ctx, s.DBs)
	return r, s.Mask.Explain(err)
}

// NoteMap adds to a diagnosis that a database has a map of slots, if the file does not name one.
func (l File) NoteMap(ctx context.Context, dbs sharding.DBs, d *schema.Diagnosis) {
	if l.Slots.Name != "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(dbs)) {
		var stored sql.NullString
		err := dbs[name].QueryRowContext(ctx, "SELECT MIN(name) FROM shard_fence").Scan(&stored)
		if err != nil || !stored.Valid { // without a map there is no such table
			continue
		}
		d.Findings = slices.Insert(d.Findings, 0, schema.ShardFinding{Place: schema.Place{Database: name}, Finding: schema.Finding{
			Code: schema.NotChecked, Severity: schema.Warning, Message: fmt.Sprintf("the database stores the map of slots %s, which the file does not name: rows that it has moved are misplaced, or missing, for this file and for programs that do not follow the map", stored.String),
			Fix: `move no row by hand; add "slots" to the file if the map has its tables`,
		}})
		return
	}
}

// NoteMoving adds to a diagnosis which slots are on two shards.
func NoteMoving(d *schema.Diagnosis, moving []sharding.Slot) {
	if len(moving) > 0 {
		d.Findings = append(d.Findings, schema.ShardFinding{Finding: schema.Finding{
			Code: schema.NotChecked, Severity: schema.Info, Message: fmt.Sprintf("%d slots are moving, so that their rows are on two shards and may be reported as misplaced, or as rows without parents", len(moving)),
			Fix: "let shardid rebalance run finish, and check again",
		}})
	}
}

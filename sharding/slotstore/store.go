// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/sharding"
)

var (
	// ErrConfig: the Config cannot work; nothing was touched. The text names the field.
	ErrConfig = errors.New("configuration")

	// ErrNoMap: the database stores no map of the name.
	ErrNoMap = errors.New("no map is stored")
)

// Config names a map, its database and its tables.
type Config struct {
	// Name is the name of the map, a plain SQL name. It is required.
	Name string
	// DB is the application's own database that stores the map. It is required.
	DB *sql.DB
	// Router routes the tables of the map, and has the shards' databases. Create stores its present
	// maps. It is required.
	Router *sharding.Router
	// Shards are the targets of each table of the map by logical name: shard i of the map is target
	// i of each table. All tables have the same number of targets, and the targets of one shard are
	// in one database. Either all tables of a group are named or none. Only append to the list,
	// because the database stores indexes of it.
	Shards map[string][]sharding.Target
	// Term is the duration of a lease without renewal: how long a slot may have to wait for a
	// process that has died. Defaults to 10 seconds; at least 100 milliseconds.
	Term time.Duration
	// Patience is how long a statement of package shardsql waits while its slot is moving, before it is refused with
	// [sharding.ErrSlotMoving]; see [sharding.Map.Patient]. Defaults to two terms, as a switch takes about one. If it is negative,
	// statements are refused at once.
	Patience time.Duration
}

func (c Config) withDefaults() Config {
	if c.Term == 0 {
		c.Term = 10 * time.Second
	}
	if c.Patience == 0 {
		c.Patience = 2 * c.Term
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if err := dialect.CheckIdent(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("Config.Name: %w", err))
	}
	if c.DB == nil {
		errs = append(errs, errors.New("Config.DB is nil; set the database that holds the map"))
	}
	if c.Term < 100*time.Millisecond {
		errs = append(errs, fmt.Errorf("Config.Term is %v; it must be at least 100ms", c.Term))
	}
	if c.Router == nil {
		return errors.Join(append(errs, errors.New("Config.Router is nil; set the router of the tables"))...)
	}
	if len(c.Shards) == 0 {
		errs = append(errs, errors.New("Config.Shards is empty; name the tables of the map"))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Shards)) {
		errs = append(errs, c.validateTable(name))
	}
	return errors.Join(append(errs, c.validateGroups()...)...)
}

// validateGroups refuses a map of only some tables of a group: the others would stay on the shards that their rows share with it.
func (c Config) validateGroups() (errs []error) {
	moving := map[string]bool{}
	for name := range c.Shards {
		t, _ := c.Router.Table(name)
		moving[t.Name] = true
	}
	for _, t := range c.Router.Tables() {
		for _, other := range c.Router.Tables() {
			if moving[t.Name] && !moving[other.Name] && c.Router.Snapshot().SameGroup(t.Name, other.Name) {
				errs = append(errs, fmt.Errorf("Config.Shards: table %q is not among them, but %q of its group is; tables of a group move together", other.Name, t.Name))
			}
		}
	}
	return errs
}

// validateTable compares a table with the first one.
func (c Config) validateTable(name string) error {
	t, ok := c.Router.Table(name)
	if !ok {
		return fmt.Errorf("Config.Shards: table %q: %w", name, sharding.ErrUnknownTable)
	}
	if _, ok := sharding.Describe(t.Rule).SQL("", t.Rule.Slots()); !ok {
		return fmt.Errorf("Config.Shards: table %q: a trigger cannot compute its rule; use Low, Bits, Mod or OffsetStep", name)
	}
	first := c.Shards[slices.Min(slices.Collect(maps.Keys(c.Shards)))]
	targets := c.Shards[name]
	if len(targets) == 0 || len(targets) != len(first) {
		return fmt.Errorf("Config.Shards: table %q has %d targets, and another table %d; each table needs one for each shard", name, len(targets), len(first))
	}
	for i, target := range targets {
		switch {
		case target.DB != first[i].DB:
			return fmt.Errorf("Config.Shards: table %q: shard %d is on %s, that of another table on %s; tables of one shard share a database", name, i, target, first[i])
		case c.Router.DB(target.DB) == nil:
			return fmt.Errorf("Config.Shards: table %q: the router has no database %q", name, target.DB)
		}
		if err := dialect.CheckIdent(target.Table); err != nil {
			return fmt.Errorf("Config.Shards: table %q: %w", name, err)
		}
	}
	return nil
}

// Store provides one map of slots. It is safe for concurrent use, also by several processes, and
// needs no Close.
type Store struct {
	layout *layout
	home   storedMap
	fences fences
	term   time.Duration // of leases
	asOf   int64         // a step fails for slots that have changed after this version; 0 means any
}

// New returns the store of a map, and queries the kind of its database. The map need not exist yet;
// see [Store.Create]. A Config that cannot work is an [ErrConfig].
func New(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("slotstore: %w: %w", ErrConfig, err)
	}
	l, err := newLayout(cfg)
	if err != nil {
		return nil, fmt.Errorf("slotstore: %w: %w", ErrConfig, err)
	}
	home, err := open(ctx, cfg.DB)
	if err != nil {
		return nil, fmt.Errorf("slotstore: %w", err)
	}
	return &Store{layout: l, home: storedMap{home, l}, fences: fences{l}, term: cfg.Term}, nil
}

// Create creates the tables shard_map, shard_slot and shard_lease if they are missing, and stores
// the router's present maps as version 1 of the map, with all slots active. It does not change an
// existing map.
func (s *Store) Create(ctx context.Context) error {
	for _, statement := range mapDDL {
		text := dialect.Text(s.home.server, fmt.Sprintf(statement, ending(s.home.server)))
		if err := sqlrun.Create(ctx, s.home.db, text); err != nil {
			return fmt.Errorf("slotstore: create tables: %w", err)
		}
	}
	shardOf, err := s.layout.present()
	if err != nil {
		return fmt.Errorf("slotstore: Create: %w", err)
	}
	err = s.home.do(ctx, func(t tx) error {
		if err := t.exec(ctx, `INSERT INTO "shard_map" ("name", "version", "slots") VALUES (?, 0, ?)`+upsert(t.server, `"name"`), s.layout.name, s.layout.slots); err != nil {
			return err
		}
		version, err := s.home.lock(ctx, t)
		if err != nil || version > 0 {
			return err
		}
		rows := make([][]any, len(shardOf))
		for slot, shard := range shardOf {
			rows[slot] = []any{s.layout.name, slot, string(Active), shard, nowhere, 1}
		}
		if err := t.insert(ctx, `"shard_slot" ("name", "slot", "state", "shard", "other", "version")`, rows, ""); err != nil {
			return err
		}
		return t.exec(ctx, `UPDATE "shard_map" SET "version" = 1 WHERE "name" = ?`, s.layout.name)
	})
	if err != nil {
		return fmt.Errorf("slotstore: Create: %w", err)
	}
	return nil
}

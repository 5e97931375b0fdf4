// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/sharding"
)

// ExpandConfig describes a table that servers number by AUTO_INCREMENT and that
// is to get more servers, without moving a row: one master becomes two, N become
// 2N. It is for MySQL and MariaDB.
type ExpandConfig struct {
	// DBs are the databases of the present servers and of the new ones. There is
	// no default.
	DBs sharding.DBs

	// Table is the table as it is routed now: its Key is its AUTO_INCREMENT
	// column, its Rule an [sharding.EpochRule] (Epochs(Epoch{Slots: []Slot{0}}) for
	// one server), and each slot has a target of its own. There is no default.
	Table sharding.Table

	// Add are the targets on the new servers, in the order of their offsets: as
	// many as there are servers now, or a multiple of it. There is no default.
	Add []sharding.Target

	// Margin is how many ids the busiest server may give until all servers use the new steps:
	// its rate, times the time that rotating all connection pools takes, times three. There is
	// no default.
	Margin int64
}

func (c ExpandConfig) validate() error {
	if len(c.Add) == 0 || c.Margin < 1 {
		return fmt.Errorf("%w: Add and Margin: give the new targets, and a margin of at least 1", ErrConfig)
	}
	if _, err := sharding.New(c.DBs, c.Table); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	all := c.Table.Map.Targets()
	for _, at := range c.Add {
		if c.DBs[at.DB] == nil || slices.Contains(all, at) {
			return fmt.Errorf("%w: Add: %s has no database, or is given twice", ErrConfig, at)
		}
		all = append(all, at)
	}
	_, err := epochsOf(c.Table)
	return err
}

func epochsOf(t sharding.Table) (sharding.EpochRule, error) {
	rule, ok := t.Rule.(sharding.EpochRule)
	if !ok {
		return rule, fmt.Errorf("%w: Table: the rule of %s is not made by Epochs, so an id does not tell which server made it; give the table a rule of sharding.Epochs, which a file writes as epochs(…)", ErrConfig, t.Name)
	}
	if len(t.Map.Targets()) != rule.Slots() {
		return rule, fmt.Errorf("%w: Table: the %d slots of %s need a target each", ErrConfig, rule.Slots(), t.Name)
	}
	return rule, nil
}

// ExpandServer is one server of an expansion.
type ExpandServer struct {
	Slot   sharding.Slot `json:"slot"`
	DB     string        `json:"database"`
	Table  string        `json:"table"`
	New    bool          `json:"new"`
	Next   int64         `json:"next"`  // no id at or above it was given; 0 for a new server
	Now    Class         `json:"now"`   // of its new connections
	Class  Class         `json:"class"` // of the new epoch
	Params string        `json:"dsn_parameters"`
}

// ExpandStep is one step of an expansion.
type ExpandStep struct {
	DB   string   `json:"database,omitempty"` // "" for the application
	Text string   `json:"text"`
	SQL  []string `json:"sql,omitempty"`
}

// Expansion is a plan for more servers, with the steps in order.
type Expansion struct {
	Table   string         `json:"table"`
	Cut     int64          `json:"cut"`  // the first id of the new epoch
	Rule    string         `json:"rule"` // in the form of configuration files
	Servers []ExpandServer `json:"servers"`
	Steps   []ExpandStep   `json:"steps"`

	// Next is the table that all routers must have before the new servers get their first row.
	Next sharding.Table `json:"-"`
}

// PlanExpansion computes the cut from the counters of all servers, and the steps with their
// servers and order. It changes nothing. The error wraps [sharding.ErrEpochUnarmed] when a
// server does not number as the present epoch requires, and ErrConfig.
func PlanExpansion(ctx context.Context, cfg ExpandConfig) (Expansion, error) {
	if err := cfg.validate(); err != nil {
		return Expansion{}, err
	}
	rule, _ := epochsOf(cfg.Table)
	servers, err := present(ctx, cfg.DBs, cfg.Table)
	if err != nil {
		return Expansion{}, fmt.Errorf("migrate: expand %s: %w", cfg.Table.Name, err)
	}
	last := rule.Epochs()[len(rule.Epochs())-1]
	next := sharding.Epoch{Slots: last.Slots}
	for i := range cfg.Add {
		next.Slots = append(next.Slots, sharding.Slot(rule.Slots()+i))
	}
	if len(next.Slots)%len(last.Slots) != 0 {
		return Expansion{}, fmt.Errorf("%w: Add: %d new servers for %d present ones; the total must be a multiple of the present number, so that each server keeps its ids", ErrConfig, len(cfg.Add), len(last.Slots))
	}
	next.From = cutAbove(servers, cfg.Margin, int64(len(next.Slots)))
	if err := rule.Check(1, counters(servers)); err != nil {
		return Expansion{}, fmt.Errorf("migrate: expand %s: %w", cfg.Table.Name, err)
	}
	grown, err := rule.Add(next, cfg.Margin, counters(servers))
	if err != nil {
		return Expansion{}, fmt.Errorf("migrate: expand %s: %w", cfg.Table.Name, err)
	}
	return cfg.plan(ctx, grown, servers)
}

// present reads how the servers of a table number rows, by slot.
func present(ctx context.Context, dbs sharding.DBs, t sharding.Table) ([]ExpandServer, error) {
	var all []ExpandServer
	for _, at := range t.Map.Targets() {
		if err := numbersBySteps(ctx, dbs[at.DB]); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	for slot := range sharding.Slot(t.Rule.Slots()) {
		at, _ := t.Map.Target(slot) // the router has accepted it
		s := ExpandServer{Slot: slot, DB: at.DB, Table: at.Table}
		var err error
		if s.Next, err = schema.NextID(ctx, dbs[at.DB], at.Table, t.Key); err == nil {
			s.Now, err = globalClass(ctx, dbs[at.DB])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// numbersBySteps refuses a database that has no step and offset for its ids.
func numbersBySteps(ctx context.Context, db *sql.DB) error {
	server, err := dialect.Detect(ctx, db)
	if err == nil && server.Name() != "mysql" {
		err = fmt.Errorf("%w: only servers of MySQL and MariaDB number by auto_increment_offset and auto_increment_increment; use a generator for the ids, and move slots to more servers", ErrUnsupported)
	}
	return err
}

// globalClass is the class of new connections. The servers ignore an offset above the step.
func globalClass(ctx context.Context, db *sql.DB) (Class, error) {
	var c Class
	if err := numbersByStep(ctx, db); err != nil {
		return c, err
	}
	err := db.QueryRowContext(ctx, "SELECT @@GLOBAL.auto_increment_offset, @@GLOBAL.auto_increment_increment").Scan(&c.Offset, &c.Step)
	if c.Offset > c.Step {
		c.Offset = 1
	}
	return c, err
}

func counters(servers []ExpandServer) []sharding.Counter {
	all := make([]sharding.Counter, len(servers))
	for i, s := range servers {
		all[i] = sharding.Counter{Slot: s.Slot, Next: s.Next, Offset: s.Now.Offset, Step: s.Now.Step}
	}
	return all
}

// cutAbove is the first id with offset 1 above all counters and the margin.
func cutAbove(servers []ExpandServer, margin, step int64) int64 {
	highest := int64(0)
	for _, s := range servers {
		highest = max(highest, s.Next)
	}
	return (highest+margin+step-2)/step*step + 1
}

// plan computes the steps.
func (c ExpandConfig) plan(ctx context.Context, grown sharding.EpochRule, servers []ExpandServer) (Expansion, error) {
	for i, at := range c.Add {
		servers = append(servers, ExpandServer{Slot: sharding.Slot(len(servers)), DB: at.DB, Table: at.Table, New: true})
		now, err := globalClass(ctx, c.DBs[at.DB])
		if err != nil {
			return Expansion{}, fmt.Errorf("migrate: expand %s: %s: %w", c.Table.Name, c.Add[i], err)
		}
		servers[len(servers)-1].Now = now
	}
	last := grown.Epochs()[len(grown.Epochs())-1]
	place := make([]sharding.Target, len(servers))
	for i := range servers {
		s := &servers[i]
		place[i] = sharding.Target{DB: s.DB, Table: s.Table}
		if offset := slices.Index(last.Slots, s.Slot) + 1; offset > 0 {
			s.Class = Class{offset, len(last.Slots)}
			s.Params = s.Class.Parameters()
		}
	}
	e := Expansion{Table: c.Table.Name, Cut: last.From, Rule: epochsText(grown), Servers: servers, Next: c.Table}
	m, err := sharding.MapOf(place...)
	if err != nil {
		return Expansion{}, fmt.Errorf("%w: Add: %w", ErrConfig, err)
	}
	e.Next.Rule, e.Next.Map = grown, m.At(c.Table.Map.Version()+1)
	if _, err := sharding.New(c.DBs, e.Next); err != nil {
		return Expansion{}, fmt.Errorf("%w: Add: %w", ErrConfig, err)
	}
	e.Steps, err = c.steps(ctx, e)
	return e, err
}

// epochsText is the rule in the form of configuration files.
func epochsText(rule sharding.EpochRule) string {
	var parts []string
	for _, e := range rule.Epochs() {
		slots := strings.Trim(fmt.Sprint(e.Slots), "[]")
		parts = append(parts, fmt.Sprintf("%d = %s", e.From, slots))
	}
	return "epochs(" + strings.Join(parts, ", ") + ")"
}

// steps returns the steps in an order in which no id is given twice.
func (c ExpandConfig) steps(ctx context.Context, e Expansion) ([]ExpandStep, error) {
	definition, err := c.definition(ctx, e.Servers[0])
	if err != nil {
		return nil, err
	}
	var arm, create, rotate []ExpandStep
	for _, s := range e.Servers {
		switch {
		case s.Class.Step == 0: // has no ids in the new epoch
		case s.New:
			create = append(create, ExpandStep{s.DB, "create the table with its counter at the cut, and set the new step; add both settings to the server's configuration, too", []string{
				s.Class.Statement(),
				strings.Replace(definition, "CREATE TABLE `"+e.Servers[0].Table+"`", "CREATE TABLE IF NOT EXISTS `"+s.Table+"`", 1),
				fmt.Sprintf("ALTER TABLE `%s` AUTO_INCREMENT = %d", s.Table, e.Cut),
			}})
		default:
			arm = append(arm, ExpandStep{s.DB, "set the new step for new connections; add both settings to the server's configuration, too", []string{s.Class.Statement()}})
			rotate = append(rotate, ExpandStep{"", fmt.Sprintf("open connections to %s keep their step: add %s to its DSN and restart every process that writes there, then close the remaining old connections", s.DB, s.Params), nil})
		}
	}
	check := ExpandStep{"", fmt.Sprintf("check that all servers use the new step, long before a counter reaches %d", e.Cut), nil}
	deploy := ExpandStep{"", fmt.Sprintf("deploy the rule %s, with the new targets at the end of the list, to every router; only then may rows be written to the new servers", e.Rule), nil}
	return slices.Concat(arm, rotate, create, []ExpandStep{check, deploy}), nil
}

// definition is the statement that creates the present table, without its counter.
func (c ExpandConfig) definition(ctx context.Context, s ExpandServer) (string, error) {
	var name, text string
	err := c.DBs[s.DB].QueryRowContext(ctx, "SHOW CREATE TABLE "+dialect.MySQL{}.Quote(s.Table)).Scan(&name, &text)
	if err != nil {
		return "", fmt.Errorf("migrate: expand %s: %w", s.Table, err)
	}
	return backend.WithoutCounter(text), nil
}

// Apply sends the SQL of the steps to the servers, in their order. Steps of the application
// remain to be done. Apply may be repeated with a newer plan while no router has the rule
// of an older one.
func (e Expansion) Apply(ctx context.Context, dbs sharding.DBs) error {
	for _, step := range e.Steps {
		for _, statement := range step.SQL {
			if _, err := dbs[step.DB].ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("migrate: expand %s: %s: %s: %w", e.Table, step.DB, statement, err)
			}
		}
	}
	return nil
}

// CheckExpansion checks that the servers of a table number by the last epoch of its rule:
// that each has its step and offset before its counter comes within margin of the epoch,
// that new servers begin there, and that no row from there on has an id of another server,
// which open connections with the old step would make. The error joins one error for each
// server, and wraps [sharding.ErrEpochUnarmed]. CheckExpansion changes nothing; repeat it
// until all pools are rotated. Open connections with another step that have written nothing
// yet are ErrNotReady on MySQL; [UnseenConnections] returns those that it cannot check.
func CheckExpansion(ctx context.Context, dbs sharding.DBs, t sharding.Table, margin int64) error {
	if _, err := sharding.New(dbs, t); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	rule, err := epochsOf(t)
	if err != nil {
		return err
	}
	servers, err := present(ctx, dbs, t)
	if err != nil {
		return fmt.Errorf("migrate: expand %s: %w", t.Name, err)
	}
	last := rule.Epochs()[len(rule.Epochs())-1]
	errs := []error{rule.Check(margin, counters(servers))}
	for i, slot := range last.Slots {
		s := servers[slot]
		c := Class{i + 1, len(last.Slots)}
		found, err := FindStrays(ctx, dbs[s.DB], s.Table, t.Key, max(last.From, 1), c)
		if err == nil && found.Count > 0 {
			err = fmt.Errorf("%w: %d ids from %d to %d are not of its class (%v), so routers look for these rows on another server: give them new ids, and close the connections that made them", sharding.ErrEpochUnarmed, found.Count, found.First, found.Last, c)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("migrate: expand %s: %s/%s: %w", t.Name, s.DB, s.Table, err))
		}
	}
	return errors.Join(errs...)
}

package sharding

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// Table is a sharded table, known to the application by one logical name.
type Table struct {
	// Name is the logical name, the one in models and statements. No physical
	// table may be called so: SQL that slips through then fails instead of
	// reading a forgotten table. Names are compared without regard to case.
	Name string
	// Key is the column that holds the sharding key.
	Key string
	// Rule turns a key into a slot. There is no default.
	Rule Rule
	// Map turns a slot into a target. Tables whose rows belong together (orders
	// and their items) take the same rule and maps of the same shape, so that
	// they lie in the same database.
	Map Map
}

// validate returns everything that is wrong with t taken alone.
func (t Table) validate(dbs DBs) error {
	var errs []error
	add := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("table %q: %s: %w", t.Name, field, err))
		}
	}
	add("Name", dialect.CheckIdent(t.Name))
	add("Key", dialect.CheckIdent(t.Key))
	add("Rule", checkRule(t.Rule))
	if t.Rule != nil && t.Rule.Slots() > 0 {
		add("Map", t.Map.fits(t.Rule.Slots()))
	}
	seen := map[string]bool{}
	for _, target := range t.Map.targets {
		if _, known := dbs[target.DB]; !known && !seen[target.DB] {
			add("Map", fmt.Errorf("target %s: the router has no database %q", target, target.DB))
		}
		seen[target.DB] = true
	}
	return errors.Join(errs...)
}

func checkRule(r Rule) error {
	if r == nil {
		return errors.New("is nil; set Low, Mod or OffsetStep")
	}
	if bad, ok := r.(invalid); ok {
		return errors.New(string(bad))
	}
	if n := r.Slots(); n < 1 || n > MaxSlots {
		return fmt.Errorf("has %d slots; from 1 to %d are possible", n, MaxSlots)
	}
	return nil
}

// Target returns where the row with this sharding key lies. Its errors wrap
// [ErrKeyType] or [ErrNoSlot]; t must be one that [New] accepted.
func (t *Table) Target(key any) (Target, error) {
	s, err := t.Rule.Slot(key)
	if err != nil {
		return Target{}, err
	}
	if int(s) >= t.Rule.Slots() {
		return Target{}, fmt.Errorf("slot %d: %w", s, ErrNoSlot)
	}
	target, ok := t.Map.Target(s)
	if !ok {
		return Target{}, fmt.Errorf("slot %d: %w", s, ErrNoSlot)
	}
	return target, nil
}

// foldTarget returns t as databases that ignore case in table names see it.
func foldTarget(t Target) Target { return Target{t.DB, fold(t.Table)} }

func fold(name string) string { return strings.ToLower(name) }

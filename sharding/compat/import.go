// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/shardid/shardid/sharding"
)

// Config has the fields of go-gorm/sharding's Config that decide where rows lie. The fields
// keep their names, so that a configuration can be copied. DoubleWrite and
// PrimaryKeyGeneratorFn are left out, because they do not decide where rows lie.
type Config struct {
	// ShardingKey is the column of the sharding key. There is no default.
	ShardingKey string
	// TextKey says that the column of the sharding key holds texts. The table then takes
	// texts and refuses integers, which such a column compares in another way. By default
	// the column holds integers or, with a ShardingAlgorithm, times. The table then takes
	// a text only if it is an integer, as the database would convert others ("3e0" to 3).
	TextKey bool
	// NumberOfShards is the number of tables. It may be 0 only with both
	// ShardingAlgorithm and ShardingSuffixs.
	NumberOfShards uint
	// ShardingAlgorithm returns the suffix of a key's table. nil means the plugin's
	// default: the number modulo NumberOfShards, or for a text that is no number its
	// CRC-32 modulo NumberOfShards. The suffix of a time must not depend on the time's
	// zone. A time that is no whole second is refused if the whole seconds next to it
	// have different tables.
	ShardingAlgorithm func(columnValue any) (suffix string, err error)
	// ShardingSuffixs returns all suffixes. nil means those of the keys 0 to
	// NumberOfShards-1, as in the plugin. It must return each suffix that the algorithm
	// can return.
	ShardingSuffixs func() (suffixs []string)
	// PrimaryKeyGenerator says who made the ids; the constants have the plugin's
	// values. With PKSnowflake, an id contains the number of its row's table, so that
	// rows can be found by id too.
	PrimaryKeyGenerator int
	// IDFrom is the smallest id that the plugin's PKSnowflake made. Ids below it have
	// another origin and do not contain the number of a table. It may be set only with
	// PKSnowflake. 0 means that rows are found by the sharding key only, because no id is
	// trusted. Set it to 0 as soon as another generator makes ids.
	IDFrom int64
}

// The plugin's ways to make ids, with the plugin's values.
const (
	PKSnowflake = iota
	PKPGSequence
	PKMySQLSequence
	PKCustom
)

// maxDefaultShards is the largest number of tables for which the plugin has a suffix format.
const maxDefaultShards = 9999

// Import returns the table that go-gorm/sharding calls name. Its physical tables lie in the
// database that DBs calls db. The error names the wrong field.
func Import(name, db string, c Config) (sharding.Table, error) {
	suffixes, err := c.suffixes()
	if err != nil {
		return sharding.Table{}, fmt.Errorf("compat: table %q: %w", name, err)
	}
	targets := make([]sharding.Target, len(suffixes))
	for i, suffix := range suffixes {
		targets[i] = sharding.Target{DB: db, Table: name + suffix}
	}
	layout, err := sharding.MapOf(targets...)
	if err != nil {
		return sharding.Table{}, fmt.Errorf("compat: table %q: ShardingSuffixs: %w", name, err)
	}
	table := sharding.Table{Name: name, Key: c.ShardingKey, Rule: c.rule(suffixes), Map: layout}
	if c.PrimaryKeyGenerator == PKSnowflake && c.IDFrom > 0 {
		table.Also = []sharding.Alt{{Column: "id", Rule: byNode(len(suffixes)), From: c.IDFrom}}
	}
	return table, nil
}

// suffixes returns the suffixes of all tables, in the order of the plugin.
func (c Config) suffixes() ([]string, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	byRule, err := c.computed()
	if c.ShardingSuffixs == nil {
		return byRule, errors.Join(err, checkSuffixes(byRule))
	}
	all := c.ShardingSuffixs()
	if c.ShardingAlgorithm == nil && !slices.Equal(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(byRule))) {
		return nil, fmt.Errorf("ShardingSuffixs: differ from those of the plugin's own algorithm, %s to %s; leave the field out", byRule[0], byRule[len(byRule)-1])
	}
	if c.ShardingAlgorithm == nil {
		all = byRule // slot i is the table of key i
	}
	return all, checkSuffixes(all)
}

// computed returns the suffixes of the keys 0 to NumberOfShards-1.
func (c Config) computed() ([]string, error) {
	var all []string
	for i := range int(c.NumberOfShards) {
		if c.ShardingAlgorithm == nil {
			all = append(all, c.defaultSuffix(i))
			continue
		}
		suffix, err := c.ShardingAlgorithm(i)
		if err != nil {
			return nil, fmt.Errorf("ShardingAlgorithm(%d): %w; set ShardingSuffixs, which the plugin needs in that case, too", i, err)
		}
		all = append(all, suffix)
	}
	return all, nil
}

func (c Config) validate() error {
	switch {
	case c.ShardingKey == "":
		return errors.New("ShardingKey: is empty; set it to the column")
	case c.ShardingAlgorithm == nil && (c.NumberOfShards == 0 || c.NumberOfShards > maxDefaultShards):
		return fmt.Errorf("NumberOfShards: is %d; the plugin's own algorithm has table names for 1 to %d tables", c.NumberOfShards, maxDefaultShards)
	case c.NumberOfShards == 0 && c.ShardingSuffixs == nil:
		return errors.New("ShardingSuffixs: is nil and NumberOfShards is 0; set one of them, so that every table is known")
	case c.NumberOfShards > sharding.MaxSlots:
		return fmt.Errorf("NumberOfShards: is %d; at most %d are possible", c.NumberOfShards, sharding.MaxSlots)
	case c.PrimaryKeyGenerator < PKSnowflake || c.PrimaryKeyGenerator > PKCustom:
		return fmt.Errorf("PrimaryKeyGenerator: %d is none of the plugin's", c.PrimaryKeyGenerator)
	case c.IDFrom < 0 || c.IDFrom > 0 && (c.PrimaryKeyGenerator != PKSnowflake || c.ShardingAlgorithm != nil || c.NumberOfShards > nodes):
		return fmt.Errorf("IDFrom: the plugin finds rows by id with PKSnowflake, its own algorithm and at most %d tables only; leave it 0", nodes)
	}
	return nil
}

// defaultSuffix pads i with zeros to as many digits as the number of shards has.
func (c Config) defaultSuffix(i int) string {
	return fmt.Sprintf("_%0*d", len(strconv.FormatUint(uint64(c.NumberOfShards), 10)), i)
}

func checkSuffixes(all []string) error {
	if len(all) == 0 {
		return errors.New("ShardingSuffixs: returned nothing; return the suffix of every table")
	}
	sorted := slices.Sorted(slices.Values(all))
	for i, suffix := range sorted {
		if suffix == "" {
			return errors.New("ShardingSuffixs: one suffix is empty, so a physical table has the logical name; rename that table")
		}
		if i > 0 && suffix == sorted[i-1] {
			return fmt.Errorf("ShardingSuffixs: %q occurs twice; return each table once", suffix)
		}
	}
	return nil
}

func (c Config) rule(suffixes []string) sharding.Rule {
	switch {
	case c.ShardingAlgorithm != nil:
		return newBySuffix(c.ShardingAlgorithm, suffixes, c.TextKey)
	case c.TextKey:
		return sharding.CompatText(len(suffixes))
	}
	return sharding.Compat(len(suffixes))
}

// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/keycolumn"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/sharding"
)

// keyColumns checks whether the columns that lead to a shard keep and compare keys as their
// rules require, on the source or in a table of a shard.
func (p probe) keyColumns(ctx context.Context, conf openjob.TableConfig) error {
	faults, err := keycolumn.Inspect(ctx, p.Session, p.Database, &conf.Table, p.shape.Name)
	for _, f := range faults {
		code := KeyColumn
		if f.Collation {
			code = Collation
		}
		severity := keySeverities[f.Severity]
		if f.Refuses && severity == Info { // such a row would end a run
			severity = Warn
		}
		p.add(code, severity, f.Message, f.Fix)
	}
	return err
}

var keySeverities = map[keycolumn.Severity]string{keycolumn.Error: Block, keycolumn.Warning: Warn, keycolumn.Notice: Info}

// ownKeyColumns is keyColumns for the source.
func (p tableProbe) ownKeyColumns(ctx context.Context) error { return p.keyColumns(ctx, p.settings()) }

// unplacedValues is how many values of a sharding key are tried, in addition to its lowest
// and highest.
const unplacedValues = 1000

// unplaced tries the rule on values of the sharding key in the form in which a run reads
// them. A key that gets a new id cannot be tried.
func (p tableProbe) unplaced(ctx context.Context, t *openjob.Table) error {
	c, ok := t.Column(t.Conf.Key)
	if !ok || len(t.Above()) > 0 || t.RenumberingOf(c.Name) != nil || placesAll(t.Conf.Rule, c) {
		return nil
	}
	key, name := p.Database.BytesOf(p.Database.Quote(c.Name), c), p.Database.Quote(t.Name)
	values, err := p.List(ctx, fmt.Sprintf("SELECT %s FROM (SELECT MIN(%[2]s) AS v FROM %[3]s UNION SELECT MAX(%[2]s) FROM %[3]s"+
		" UNION SELECT v FROM (SELECT DISTINCT %[2]s AS v FROM %[3]s LIMIT %[4]d) AS few) AS tried WHERE v IS NOT NULL ORDER BY v",
		p.Database.KeyText("v", c), key, name, unplacedValues))
	if err != nil {
		return err
	}
	var refused []error
	for _, value := range values {
		if _, err := t.TargetOf(value); err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) > 0 {
		p.shape.Name = t.Conf.Name
		p.add(Unplaced, Block, fmt.Sprintf("of %d values of %s that were tried, %d have no place; the first: %v", len(values), c.Name, len(refused), refused[0]),
			"give those rows other values, or give the rule a place for them")
	}
	return nil
}

// placesAll reports whether the rule has a place for every value of a column.
func placesAll(rule sharding.Rule, c backend.Column) bool {
	return strings.Contains(strings.ToLower(c.Type), "int") && slices.Contains([]sharding.Kind{
		sharding.KindLow, sharding.KindBits, sharding.KindMod, sharding.KindOffsetStep, sharding.KindHash, sharding.KindRanges,
	}, sharding.Describe(rule).Kind)
}

// keyless warns of children that applications cannot insert after the switch: a row has no
// sharding key, and the id of its parent does not determine the shard.
func (p tableProbe) keyless(t *openjob.Table) {
	above := t.Above()
	if len(above) == 0 || t.RoutesItself() {
		return
	}
	parent, top := above[0], above[len(above)-1]
	p.shape.Name = t.Conf.Name
	p.add(NoShardingKey, Warn,
		fmt.Sprintf("%s of %s is not in it, and %s does not lead to the shard: applications will reach its rows only under the hint OnKey, and cannot insert any", t.KeyColumn(), top.Conf.Name, t.Conf.Via),
		fmt.Sprintf("add such a column, fill it, and shard this table by it without a Via; or place %s by its %s, and this table by %s without a Via",
			parent.Conf.Name, parent.Key, t.Conf.Via))
}

// narrowFix is for the finding that narrowKey describes.
const narrowFix = "widen columns of other tables and types in programs that hold such ids, and this one before the run if generated ids may be too large for it"

func narrowKey(key, typ string) string {
	return fmt.Sprintf("%s is %s; the shards' tables get BIGINT, and a rollback fails on a row with an id that is too large for the source", key, typ)
}

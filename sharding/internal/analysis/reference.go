// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// Role is the kind of a table for the router.
type Role uint8

// The roles of tables.
const (
	Home      Role = iota // a table that only the home database has
	Broadcast             // the same rows in every database
	Sharded
	Derived // a subquery, a CTE or a function; its inner tables have their own references
)

// Reference is one place in a statement that names a table.
type Reference struct {
	Role    Role
	Table   *sharding.Table // for a sharded table
	Name    string          // the qualifier of its columns, in lower case
	Schema  catalog.Table   // the zero Table if the columns were not read
	Known   bool            // the columns were read
	At      *sqlparse.Table // nil for a derived table
	Written bool
	// Returned: it stands for the rows that a data-modifying CTE returns.
	Returned bool
	Lock     string // FOR UPDATE NOWAIT, for example; "" if a query locks none of its rows
	// Nullable is the number of outer joins that add rows without a row of it.
	Nullable int
	Query    *sqlparse.Query // the query of a derived table whose columns are known
	// Renamed: no alias is allowed in its place, so qualifiers with the table's name are renamed
	// with it.
	Renamed bool
	Columns []sqlparse.Ident // the qualifiers of its columns

	leads    []*proof.Lead
	indirect []*proof.Lead     // columns whose values lead to slots through a lookup table or a search
	kin      map[string]string // as sharding.Table.Kin
	led      *Reference        // for a derived table: the table whose columns its leads and its kin are
	given    []proof.Proof     // proofs of inserted rows
	// constants are the columns of a derived table that is a list of values.
	constants map[string]proof.Values
	Proof     proof.Proof // nil if nothing is proved
	// Vague is a column that leads to shards, and that a condition which proves nothing names; "" if there is none. Asked says
	// that the condition is = or IN with a subquery.
	Vague string
	Asked bool
}

// Column is a column of a reference, its name in lower case.
type Column struct {
	Of   *Reference
	Name string
}

// elsewhere reports whether the table's name is qualified with a database, or with another schema
// than that of the shards' tables.
func (r *Reference) elsewhere() bool {
	parts := r.At.Name.Parts
	here := len(parts) == 2 && r.Schema.Namespace != "" && strings.EqualFold(parts[0].Name, r.Schema.Namespace)
	return len(parts) > 1 && !here
}

// Label returns the name of the table, for messages.
func (r *Reference) Label() string { return r.At.Name.Last().Name }

// Qualifier returns the name by which the columns of the table are qualified, as it is written.
func (r *Reference) Qualifier() sqlparse.Ident {
	if r.At.Alias.Name != "" {
		return r.At.Alias
	}
	return r.At.Name.Last()
}

// FormedKey returns a sharding key, of a sharded table, in the form in which its column returns it, false if that is unknown.
func (r *Reference) FormedKey(key any) (form any, known bool) {
	return r.leads[0].Formed(key)
}

// Lead returns the lead of a column, or nil.
func (r *Reference) Lead(name string) *proof.Lead {
	for _, l := range r.leads {
		if l.Column == name {
			return l
		}
	}
	return nil
}

// Has reports whether the reference has a column, and whether that is certain.
func (r *Reference) Has(name string) (has, certain bool) {
	has = r.has(name)
	return has, has || r.Known
}

func (r *Reference) has(name string) bool {
	_, has := r.Schema.Columns[name]
	return has
}

// isKey reports whether the column is the sharding key, and its value in a row of the result is that of a row of the table.
func (c Column) isKey() bool {
	return c.Of.Role == Sharded && c.Of.Nullable == 0 && strings.EqualFold(c.Name, c.Of.Table.Key)
}

// isPrimaryKey reports whether the column is a primary key by itself.
func (c Column) isPrimaryKey() bool {
	t := c.Of.Schema
	return t.Primary && len(t.Unique[0]) == 1 && t.Unique[0][0] == c.Name
}

// takeLeads sets the columns of a sharded table that lead to slots, the sharding key first. If the columns were not read,
// it assumes that they hold what the rule needs.
func (r *Reference) takeLeads() {
	if !r.Known {
		r.Schema.Columns = map[string]catalog.Column{}
	}
	t := r.Table
	r.takeLead(t.Key, t.Rule, true)
	for _, alt := range t.Also {
		r.takeLead(alt.Column, alt.Rule, alt.From == 0)
	}
	r.kin = t.Kin()
	for column := range r.kin {
		if !r.Known && r.Lead(column) == nil {
			r.Schema.Columns[column] = catalog.Column{Holds: catalog.Integers}
		}
	}
	for i := range t.Lookups {
		l := &proof.Lead{Table: t, Column: strings.ToLower(t.Lookups[i].Column), Lookup: &t.Lookups[i]}
		if !r.Known {
			r.Schema.Columns[l.Column] = catalog.Column{}
		}
		if !l.Lookup.Building {
			r.indirect = append(r.indirect, l)
		}
	}
}

// isKept reports whether a unique key is one column whose values a lookup table keeps unique.
func (r *Reference) isKept(key []string) bool {
	return len(key) == 1 && slices.ContainsFunc(r.indirect, func(l *proof.Lead) bool { return l.Lookup != nil && l.Lookup.Unique && l.Column == key[0] })
}

func (r *Reference) takeLead(name string, rule sharding.Rule, always bool) {
	l := &proof.Lead{Table: r.Table, Column: strings.ToLower(name), Rule: rule, Always: always}
	d := sharding.Describe(rule)
	l.Order = d.Kind == sharding.KindRanges
	if rule, ok := rule.(sharding.IntervalRule); ok {
		l.Order, l.Unit = true, rule.Precision()
	}
	if !r.Known {
		needs := map[sharding.Keys]catalog.Holding{sharding.KeysIntegers: catalog.Integers, sharding.KeysTexts: catalog.Bytes, sharding.KeysTimes: catalog.Times}
		r.Schema.Columns[l.Column] = catalog.Column{Holds: needs[d.Keys]}
	}
	c := r.Schema.Columns[l.Column]
	l.Holds, l.Skew = c.Holds, c.Skew
	if c.Formed {
		l.Form = c.Storage.Form
	}
	r.leads = append(r.leads, l)
}

// isOnOneShard reports whether rows with an equal key are on one shard, whatever its values.
func (r *Reference) isOnOneShard(key []string) bool {
	return slices.ContainsFunc(key, func(column string) bool {
		l := r.Lead(column)
		return l != nil && l.Always && l.Holds.EqualByRule()
	})
}

// SlotBy returns the slot of a row by the values of a unique key, every slot if none of its columns
// leads to one.
func (r *Reference) SlotBy(columns []string, key []driver.Value) proof.Slots {
	for i, column := range columns {
		if l := r.Lead(column); l != nil {
			if s := l.SlotOf(key[i]); s.One {
				return s
			}
		}
	}
	return proof.EverySlot
}

// Slots returns the slots of the rows of a reference.
func (r *Reference) Slots(args []any) proof.Slots {
	if r.Proof == nil {
		return proof.EverySlot
	}
	return r.Proof.Slots(args)
}

// IsNumber reports whether the column is known to hold numbers.
func (c Column) IsNumber() bool {
	kept := c.Of.Schema.Columns[c.Name]
	return kept.Holds == catalog.Integers || kept.Value.IsNumeric()
}

// hasParent reports whether rows with one value of the column share their slot with a parent, by sharding.Table.Parents.
func (c Column) hasParent() bool {
	return c.Of.kin[c.Name] != "" && c.Of.Schema.Columns[c.Name].Holds.EqualByText()
}

// isRowOf reports whether equal values of two columns are those of one row: ids are unique over all shards.
func (c Column) isRowOf(other Column) bool {
	return c.Of.Role == Sharded && c.Of.Table == other.Of.Table && c.Name == other.Name && c.isPrimaryKey()
}

// IsOnOneShard reports whether equal values of a column are on one shard.
func (c Column) IsOnOneShard() bool {
	l := c.Of.Lead(c.Name)
	return l != nil && l.Always && l.Holds.EqualByText() || c.hasParent() && c.isPrimaryKey()
}

// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/internal/idmap"
)

// IDs says how the ids of a table change: how the id of a row on the source is turned into
// the one on the shards, and back. The zero value keeps them. [KeepIDs], [Affine], [Keyed]
// and [MapTable] return one. It is safe for concurrent use.
//
// Where ids change, they change in all columns of the job's tables that refer to the row:
// those with a foreign key to the table's primary key, and those that Table.References
// names. Ids are from 1 up on both sides, unless they are kept; 0 stays 0, because in a
// referring column it means that there is no row.
//
// A sharding rule on the primary key, or on a column that refers to one, gets the new id,
// as the application will use it.
type IDs struct{ by idmap.Numbering }

// KeepIDs leaves ids as they are: the default.
//
// Ids from a counter carry no slot. A table whose rows are found by another column, and
// also by an id that carries the slot, has a sharding.Alt whose From is above all kept ids:
// an id below From does not lead to a shard. A row whose id is not below From and leads to
// another slot than its sharding key ends a run, because nobody would find it by its id.
func KeepIDs() IDs { return IDs{idmap.Kept{}} }

// Affine turns an id into old·m + s. With m databases, each with its own s below m, equal
// ids of several databases become distinct ids that show their database. m is at least 1
// and s at least 0. An id whose new id would be above the largest int64 is refused before
// anything is copied.
//
// Only ids with the remainder s modulo m can be written back in a rollback: see [IDs.New].
func Affine(m, s int64) IDs {
	if m == 1 && s == 0 {
		return KeepIDs()
	}
	return IDs{idmap.Affine{Factor: m, Offset: s}}
}

// Keyed hides how ids were counted: it applies keygen.NewScrambler(key, 63), whose results
// look random. It is a permutation, so that any id of 1 and more has an old id in a
// rollback, if that fits the source's column (see [IDs.New]). Keep the key as long as old
// ids have to be resolved.
func Keyed(key [16]byte) IDs {
	return IDs{idmap.NewKeyed(key)}
}

// MapTable gives each row an id of the generator, snowflake or any other whose ids are from
// 1 up, and stores it in the table shardid_ids_<job> of the source, which stays there after
// Finalize. The generator's ids must never equal ids that the application gives: use the
// application's generator, or one with another worker id.
//
// Rows that the application inserts into the shards, with ids of its generator, get ids
// above the highest of the source in a rollback.
func MapTable(generator keygen.Generator[int64]) IDs { return IDs{idmap.Drawn{Generator: generator}} }

// New returns the id on the shards for the id old on the source. It is a pure function: it
// does not check whether the row exists. For [MapTable] it returns an error that wraps
// [ErrNoID]; use [Job.ResolveOld], which reads the table.
//
// An application that must be able to roll back makes its ids with New, from a generator
// that continues above the source's highest id:
//
//	ids := keygen.Map(counter, migrate.Affine(10, 3).New)
//
// Rows with other ids stay on the shards: a Rollback is refused with an error that names
// the id.
func (i IDs) New(old int64) (int64, error) {
	return idmap.New(i.by, old)
}

// Old is the reverse of New. For an id that New never returns, the error wraps [ErrNoID].
func (i IDs) Old(id int64) (int64, error) {
	return idmap.Old(i.by, id)
}

// String describes how ids change, without the key.
func (i IDs) String() string {
	if i.by == nil {
		return idmap.Kept{}.Text()
	}
	return i.by.Text()
}

func (i IDs) check() error {
	if i.by == nil {
		return nil
	}
	return i.by.Check()
}

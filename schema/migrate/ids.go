// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/internal/idmap"
)

// IDs says what becomes of the ids of a table: how the id of a row on the source
// is turned into the one on the shards, and back. The zero value keeps them. It
// is made by [KeepIDs], [Affine], [Keyed] or [MapTable], and safe for concurrent
// use.
//
// Whatever changes ids changes them wherever tables of the job refer to the row:
// in columns with a foreign key to the table's primary key, and in those that
// Table.References names. Ids are from 1 up, on both sides, unless they are
// kept; 0 stays 0, as in a column of references it means that there is none.
//
// A sharding rule on the primary key, or on a column that refers to one, is given
// the new id, as the application will give it.
type IDs struct{ by idmap.Numbering }

// KeepIDs leaves ids as they are: the default.
//
// Ids that were counted up say nothing about a shard. A table whose rows are
// found by another column, and by its id as well where that carries the slot,
// says so with sharding.Alt, whose From is above all kept ids: below it, an id
// alone leads nowhere. A row whose id is not below From and leads to another slot
// than its sharding key ends a run, as nobody would find it by its id.
func KeepIDs() IDs { return IDs{idmap.Kept{}} }

// Affine makes old·m + s of each id: with m databases, each with an s of its own
// below m, ids that collide become ids that tell where they come from. m is from
// 1 up and s from 0 up. An id that would be above the largest int64 is refused
// before anything is copied.
//
// Only ids that leave the remainder of s, divided by m, come back in a rollback:
// see [IDs.New].
func Affine(m, s int64) IDs {
	if m == 1 && s == 0 {
		return KeepIDs()
	}
	return IDs{idmap.Affine{Factor: m, Offset: s}}
}

// Keyed shows nothing of how ids were counted: it makes those of
// keygen.NewScrambler(key, 63) of them, which look random and are each some id's,
// so that any id of 1 and more comes back in a rollback; whether it fits the
// source's column is another question (see [IDs.New]). The key has to be kept for
// as long as old ids are to be resolved.
func Keyed(key [16]byte) IDs {
	return IDs{idmap.NewKeyed(key)}
}

// MapTable gives each row an id of the generator, snowflake or any other whose
// ids are from 1 up, and remembers it in the table shardid_ids_<job> of the
// source, which stays there after Finalize. The generator must be one whose ids
// the application's own never meet: the same one, or another worker's.
//
// What the application inserts into the shards, with ids of its generator,
// gets ids in a rollback that follow the highest of the source.
func MapTable(generator keygen.Generator[int64]) IDs { return IDs{idmap.Drawn{Generator: generator}} }

// New returns the id on the shards of the row that has, or would have, the id old
// on the source. It is pure, and does not ask whether there is such a row. For
// [MapTable] it returns an error that wraps [ErrNoID]: [Job.ResolveOld] asks the
// table.
//
// An application that wants to be able to roll back makes its ids with it, from a
// generator that counts on above the source's highest id:
//
//	ids := keygen.Map(counter, migrate.Affine(10, 3).New)
//
// Rows with other ids stay on the shards: a Rollback is refused, with the id.
func (i IDs) New(old int64) (int64, error) {
	return idmap.New(i.by, old)
}

// Old is the reverse of New. An id that New returns for no other is an error that
// wraps [ErrNoID].
func (i IDs) Old(id int64) (int64, error) {
	return idmap.Old(i.by, id)
}

// String says what becomes of ids, without a key.
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

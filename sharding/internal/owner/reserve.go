// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"slices"
)

// Entry is a row of a lookup table: rows with this value have this sharding key.
type Entry struct {
	Value, Key any
	// Claim is a random number. It changes each time that a writer relies on the entry.
	Claim int64
}

// Table is a lookup table, and the shards that it leads to. In a unique lookup the value
// identifies an entry; in another lookup the value and the key do.
type Table interface {
	// Insert adds entries and leaves out those that exist, no matter who made them. It
	// returns how many it added.
	Insert(ctx context.Context, entries []Entry) (added int64, err error)
	// Claims returns the claims that entries of these values have.
	Claims(ctx context.Context, entries []Entry) ([]int64, error)
	// Find returns the stored entry with the identity of in, and whether it exists.
	Find(ctx context.Context, in Entry) (Entry, bool, error)
	// Replace changes the key and the claim of an entry if the entry is still equal to old.
	Replace(ctx context.Context, old, by Entry) (bool, error)
	// Delete removes an entry if it is still equal to old.
	Delete(ctx context.Context, old Entry) (bool, error)
	// Has reports whether the shard has a row with the entry's value and key. It waits for
	// transactions that may be writing such a row.
	Has(ctx context.Context, e Entry) (bool, error)
	// Together reports whether two keys lead to one slot, and so to one physical table.
	// In one physical table a unique index allows one row for each value.
	Together(a, b any) (bool, error)
	// Duplicate returns the database's own error for an entry whose value is taken. If the
	// value has become free, it adds the entry and returns nil.
	Duplicate(ctx context.Context, e Entry) error
}

// ErrRounded means that a column stores another value than it was given, so that a search for
// the given value does not find the entry.
var ErrRounded = errors.New("the column does not store this value unchanged; pass the value that it stores")

// maxUnseen limits how often in turn an INSERT may find an entry that a SELECT does not find, or
// a SELECT one that an UPDATE does not find: MariaDB compares an argument with more digits than a
// column of times in several ways.
// It is unlikely that others remove and make the entry in between so many times.
const maxUnseen = 20

// maxEntries is the number of entries that one statement adds at most.
const maxEntries = 400

// Reserve enters the values of rows that the caller has written and not yet committed. It
// returns the error of [Table.Duplicate] if another owner has a value. For an upsert, stored reports whether a row has
// the value: a row that existed may have kept its own. It is nil for other writes.
func Reserve(ctx context.Context, t Table, entries []Entry, stored func(Entry) (bool, error)) error {
	_, err := enter(ctx, t, entries, func(e Entry) (bool, error) {
		if stored != nil {
			if is, err := stored(e); err != nil || !is {
				return false, err
			}
		}
		return false, t.Duplicate(ctx, e)
	})
	return err
}

// Fill enters the values of rows that have been committed. It returns the entries whose
// value another row has, too. It leaves out rows that have been deleted meanwhile.
func Fill(ctx context.Context, t Table, entries []Entry) (twice []Entry, err error) {
	return enter(ctx, t, entries, func(e Entry) (bool, error) { return t.Has(ctx, e) })
}

// enter adds entries. It calls taken for each entry whose value belongs to another owner, and
// returns the entries for which taken returned true.
func enter(ctx context.Context, t Table, entries []Entry, taken func(Entry) (bool, error)) (told []Entry, err error) {
	for some := range slices.Chunk(entries, maxEntries) {
		added, err := t.Insert(ctx, some)
		if err != nil {
			return nil, err
		}
		if added == int64(len(some)) {
			continue
		}
		mine, err := t.Claims(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, e := range some {
			if slices.Contains(mine, e.Claim) {
				continue
			}
			tell, err := claim(ctx, t, e, taken)
			if err != nil {
				return nil, err
			}
			if tell {
				told = append(told, e)
			}
		}
	}
	return told, nil
}

// claim makes an existing entry the caller's, unless another row has its value. The loop runs
// again after each change that another writer made meanwhile. If an INSERT meets an entry
// that Find does not find, or Replace misses an entry that nobody has changed, many times in
// turn, the column has changed the caller's value.
func claim(ctx context.Context, t Table, e Entry, taken func(Entry) (bool, error)) (bool, error) {
	last := e
	for unseen := 0; ctx.Err() == nil; {
		old, found, err := t.Find(ctx, e)
		if err != nil {
			return false, err
		}
		if !found {
			added, err := t.Insert(ctx, []Entry{e})
			if err != nil || added == 1 {
				return false, err
			}
			if unseen++; unseen >= maxUnseen {
				return false, ErrRounded
			}
			continue
		}
		if has, err := elsewhere(ctx, t, old, e); err != nil {
			return false, err
		} else if has {
			return taken(e)
		}
		if done, err := t.Replace(ctx, old, e); err != nil || done {
			return false, err
		}
		if old.Claim == last.Claim { // the claim of another writer would be another one
			unseen++
		}
		if last = old; unseen >= maxUnseen {
			return false, ErrRounded
		}
	}
	return false, ctx.Err()
}

// elsewhere reports whether the owner of an entry has its row in another slot than the
// caller's row.
func elsewhere(ctx context.Context, t Table, old, e Entry) (bool, error) {
	together, err := t.Together(old.Key, e.Key)
	if err != nil || together {
		return false, err
	}
	return t.Has(ctx, old)
}

// Release removes the entry of a value that a row had or was to have, unless a row has it. It
// reports whether it removed the entry. Call it when the row's transaction has ended.
func Release(ctx context.Context, t Table, e Entry) (removed bool, err error) {
	old, found, err := t.Find(ctx, e)
	if err != nil || !found {
		return false, err
	}
	has, err := t.Has(ctx, old)
	if err != nil || has {
		return false, err
	}
	return t.Delete(ctx, old) // false: another writer relies on the entry again
}

// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"slices"
)

// Entry is a row of a lookup table: rows with this value lie under this sharding key.
type Entry struct {
	Value, Key any
	// Claim is a random number, another one each time that somebody relies on the entry.
	Claim int64
}

// Table is a lookup table, and the shards that it leads to. Of a unique lookup an entry is
// told by its value, of another one by value and key.
type Table interface {
	// Insert adds entries and leaves out those that are there, by whomever. It returns how
	// many it added.
	Insert(ctx context.Context, entries []Entry) (added int64, err error)
	// Claims returns the claims that entries of these values have.
	Claims(ctx context.Context, entries []Entry) ([]int64, error)
	// Find returns the entry that is there in place of one, and whether there is any.
	Find(ctx context.Context, in Entry) (Entry, bool, error)
	// Replace exchanges the key and the claim of an entry, if it is as it was.
	Replace(ctx context.Context, old, by Entry) (bool, error)
	// Delete removes an entry, if it is as it was.
	Delete(ctx context.Context, old Entry) (bool, error)
	// Has reports whether the shard has a row that the entry is about. It waits for
	// transactions that may be writing one.
	Has(ctx context.Context, e Entry) (bool, error)
	// Together reports whether two keys lead to one slot, and so to one physical table, of
	// which a unique index keeps a value to one row.
	Together(a, b any) (bool, error)
	// Duplicate returns the database's own error for an entry whose value is taken. It
	// adds the entry and returns nil if the value is free meanwhile.
	Duplicate(ctx context.Context, e Entry) error
}

// ErrRounded: a column stores a value otherwise than it was given, so that its entry is not
// found by it.
var ErrRounded = errors.New("the column stores this value otherwise than it is given; give it as it is stored")

// mostUnseen is how often an entry may be there for an INSERT and gone for a SELECT: that
// somebody removes it and somebody else makes it in between, so many times, is not likely.
const mostUnseen = 20

// most is how many entries are added by one statement.
const most = 400

// Reserve enters the values of rows that the caller has written and not committed. Its
// error is that of [Table.Duplicate] where a value belongs to somebody else.
func Reserve(ctx context.Context, t Table, entries []Entry) error {
	_, err := enter(ctx, t, entries, func(e, _ Entry) (bool, error) { return false, t.Duplicate(ctx, e) })
	return err
}

// Fill enters the values of rows that have been committed, and returns those of them that
// another row has, too. A row that is gone meanwhile is none of them.
func Fill(ctx context.Context, t Table, entries []Entry) (twice []Entry, err error) {
	return enter(ctx, t, entries, func(e, _ Entry) (bool, error) { return t.Has(ctx, e) })
}

// enter adds entries, and returns those that taken says are to be told. taken is asked
// about each whose value belongs to somebody else.
func enter(ctx context.Context, t Table, entries []Entry, taken func(e, by Entry) (bool, error)) (told []Entry, err error) {
	for some := range slices.Chunk(entries, most) {
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

// claim makes an entry that is there the caller's, unless another row has its value. Each
// turn is for one change that somebody else has made meanwhile. An entry that is in the way
// and is not found again and again has the value that the column has made of the caller's.
func claim(ctx context.Context, t Table, e Entry, taken func(e, by Entry) (bool, error)) (bool, error) {
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
			if unseen++; unseen == mostUnseen {
				return false, ErrRounded
			}
			continue
		}
		if has, err := elsewhere(ctx, t, old, e); err != nil {
			return false, err
		} else if has {
			return taken(e, old)
		}
		if done, err := t.Replace(ctx, old, e); err != nil || done {
			return false, err
		}
	}
	return false, ctx.Err()
}

// elsewhere reports whether the owner of an entry has its row in another slot than that of
// the caller's.
func elsewhere(ctx context.Context, t Table, old, e Entry) (bool, error) {
	together, err := t.Together(old.Key, e.Key)
	if err != nil || together {
		return false, err
	}
	return t.Has(ctx, old)
}

// Release removes the entry of a value that a row has had, or was to have, unless a row has
// it, and reports whether it did. The transaction of that row has ended.
func Release(ctx context.Context, t Table, e Entry) (removed bool, err error) {
	old, found, err := t.Find(ctx, e)
	if err != nil || !found {
		return false, err
	}
	has, err := t.Has(ctx, old)
	if err != nil || has {
		return false, err
	}
	return t.Delete(ctx, old) // false: somebody relies on it again
}

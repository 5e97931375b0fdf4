package migrate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
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
type IDs struct{ by numbering }

// numbering is a way to number rows anew.
type numbering interface {
	// text says what it does, for people and for the digest of a plan. It tells
	// different numberings apart, and no secret.
	text() string
	check() error
}

// pure is a numbering that needs no database. Both functions are for numbers
// from 1 up.
type pure interface {
	numbering
	forward(old int64) (int64, error)
	backward(id int64) (int64, error)
}

// KeepIDs leaves ids as they are: the default.
//
// Ids that were counted up say nothing about a shard. A table whose rows are
// found by another column, and by its id as well where that carries the slot,
// says so with sharding.Alt, whose From is above all kept ids: below it, an id
// alone leads nowhere. A row whose id is not below From and leads to another slot
// than its sharding key ends a run, as nobody would find it by its id.
func KeepIDs() IDs { return IDs{kept{}} }

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
	return IDs{affine{m, s}}
}

// Keyed shows nothing of how ids were counted: it makes those of
// keygen.NewScrambler(key, 63) of them, which look random and are each some id's,
// so that any id of 1 and more comes back in a rollback; whether it fits the
// source's column is another question (see [IDs.New]). The key has to be kept for
// as long as old ids are to be resolved.
func Keyed(key [16]byte) IDs {
	s, err := keygen.NewScrambler(key, 63)
	return IDs{keyed{s, err}}
}

// MapTable gives each row an id of the generator, snowflake or any other whose
// ids are from 1 up, and remembers it in the table shardid_ids_<job> of the
// source, which stays there after Finalize. The generator must be one whose ids
// the application's own never meet: the same one, or another worker's.
//
// What the application inserts into the shards, with ids of its generator,
// gets ids in a rollback that follow the highest of the source.
func MapTable(generator keygen.Generator[int64]) IDs { return IDs{drawn{generator}} }

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
	return i.turn(old, func(p pure) (int64, error) { return p.forward(old) })
}

// Old is the reverse of New. An id that New returns for no other is an error that
// wraps [ErrNoID].
func (i IDs) Old(id int64) (int64, error) {
	return i.turn(id, func(p pure) (int64, error) { return p.backward(id) })
}

func (i IDs) turn(id int64, f func(pure) (int64, error)) (int64, error) {
	if i.keeps() || id == 0 {
		return id, nil
	}
	p, ok := i.by.(pure)
	switch {
	case !ok:
		return 0, fmt.Errorf("%w: only the map table knows that of %d; ask Job.ResolveOld", ErrNoID, id)
	case id < 0:
		return 0, fmt.Errorf("%w: %d is below zero, and only ids from 1 up are numbered anew", ErrNoID, id)
	}
	return f(p)
}

// String says what becomes of ids, without a key.
func (i IDs) String() string {
	if i.by == nil {
		return kept{}.text()
	}
	return i.by.text()
}

func (i IDs) keeps() bool {
	_, keeps := i.by.(kept)
	return keeps || i.by == nil
}

func (i IDs) check() error {
	if i.by == nil {
		return nil
	}
	return i.by.check()
}

type kept struct{}

func (kept) text() string { return "kept" }
func (kept) check() error { return nil }

type affine struct{ m, s int64 }

func (a affine) text() string { return fmt.Sprintf("old * %d + %d", a.m, a.s) }

func (a affine) check() error {
	if a.m < 1 || a.s < 0 {
		return fmt.Errorf("Affine(%d, %d): the factor must be from 1 up, and what is added from 0 up", a.m, a.s)
	}
	return nil
}

func (a affine) forward(old int64) (int64, error) {
	if old > (math.MaxInt64-a.s)/a.m {
		return 0, fmt.Errorf("%w: %d * %d + %d is above the largest BIGINT", ErrNoID, old, a.m, a.s)
	}
	return old*a.m + a.s, nil
}

func (a affine) backward(id int64) (int64, error) {
	if id <= a.s || (id-a.s)%a.m != 0 {
		return 0, fmt.Errorf("%w: %d is no old id * %d + %d", ErrNoID, id, a.m, a.s)
	}
	return (id - a.s) / a.m, nil
}

type keyed struct {
	scrambler *keygen.Scrambler
	err       error
}

// text shows which key it is by what it does.
func (k keyed) text() string {
	one, err := k.forward(1)
	if err != nil {
		return "keyed"
	}
	return fmt.Sprintf("keyed, 1 becomes %d", one)
}

func (k keyed) check() error { return k.err }

func (k keyed) forward(old int64) (int64, error) {
	if k.err != nil {
		return 0, k.err
	}
	return k.scrambler.Scramble(old)
}

func (k keyed) backward(id int64) (int64, error) {
	if k.err != nil {
		return 0, k.err
	}
	return k.scrambler.Unscramble(id)
}

// drawn is a numbering by a generator, with a map table.
type drawn struct{ generator keygen.Generator[int64] }

func (drawn) text() string { return "map table" }

func (d drawn) check() error {
	if nilness.Is(d.generator) {
		return errors.New("MapTable: the generator is nil")
	}
	return nil
}

// draw returns n new ids.
func (d drawn) draw(ctx context.Context, n int) ([]int64, error) {
	ids := make([]int64, n)
	if err := keygen.Fill(ctx, d.generator, ids); err != nil {
		return nil, fmt.Errorf("draw ids: %w", err)
	}
	for _, id := range ids {
		if id < 1 {
			return nil, fmt.Errorf("%w: the generator made %d; ids are from 1 up", ErrConfig, id)
		}
	}
	return ids, nil
}

var (
	_ numbering = kept{}
	_ pure      = affine{}
	_ pure      = keyed{}
	_ numbering = drawn{}
)

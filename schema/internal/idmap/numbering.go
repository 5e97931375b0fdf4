// SPDX-License-Identifier: Apache-2.0

package idmap

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/internal/backend"
)

// ErrNoID: an id has no counterpart on the other side.
var ErrNoID = errors.New("migrate: the id has no counterpart")

// Numbering gives rows new ids.
type Numbering interface {
	// Text describes the numbering for people and for the digest of a plan. It differs for
	// different numberings and contains no secret.
	Text() string
	// Check fails when the numbering cannot be used.
	Check() error
}

// pure is a numbering that needs no database. Both functions take numbers from 1 up.
type pure interface {
	Numbering
	forward(old int64) (int64, error)
	backward(id int64) (int64, error)
}

// New is the id on the shards of the row with the id old on the source.
func New(by Numbering, old int64) (int64, error) {
	return turn(by, old, func(p pure) (int64, error) { return p.forward(old) })
}

// Old is the reverse of New.
func Old(by Numbering, id int64) (int64, error) {
	return turn(by, id, func(p pure) (int64, error) { return p.backward(id) })
}

func turn(by Numbering, id int64, f func(pure) (int64, error)) (int64, error) {
	if Keeps(by) || id == 0 {
		return id, nil
	}
	p, ok := by.(pure)
	switch {
	case !ok:
		return 0, fmt.Errorf("%w: only the map table has the counterpart of %d; use Job.ResolveOld", ErrNoID, id)
	case id < 0:
		return 0, fmt.Errorf("%w: %d is below zero, and only ids from 1 up are numbered anew", ErrNoID, id)
	}
	return f(p)
}

// Keeps reports whether ids stay as they are; nil keeps them.
func Keeps(by Numbering) bool {
	_, keeps := by.(Kept)
	return keeps || by == nil
}

// Kept leaves ids as they are.
type Kept struct{}

// Text returns "kept".
func (Kept) Text() string { return "kept" }

// Check returns nil.
func (Kept) Check() error { return nil }

// Affine turns an id into id·Factor + Offset.
type Affine struct{ Factor, Offset int64 }

// Text is the formula.
func (a Affine) Text() string { return fmt.Sprintf("old * %d + %d", a.Factor, a.Offset) }

// Check fails when the new ids could be below 1.
func (a Affine) Check() error {
	if a.Factor < 1 || a.Offset < 0 {
		return fmt.Errorf("Affine(%d, %d): the factor must be at least 1, and the offset at least 0", a.Factor, a.Offset)
	}
	return nil
}

func (a Affine) forward(old int64) (int64, error) {
	if old > (math.MaxInt64-a.Offset)/a.Factor {
		return 0, fmt.Errorf("%w: %d * %d + %d is above the largest BIGINT", ErrNoID, old, a.Factor, a.Offset)
	}
	return old*a.Factor + a.Offset, nil
}

func (a Affine) backward(id int64) (int64, error) {
	if id <= a.Offset || (id-a.Offset)%a.Factor != 0 {
		return 0, fmt.Errorf("%w: %d is no old id * %d + %d", ErrNoID, id, a.Factor, a.Offset)
	}
	return (id - a.Offset) / a.Factor, nil
}

// keyed scrambles ids by a key.
type keyed struct {
	scrambler *keygen.Scrambler
	err       error
}

// NewKeyed returns a numbering by the key. An error in making it is returned by Check.
func NewKeyed(key [16]byte) Numbering {
	s, err := keygen.NewScrambler(key, 63)
	return keyed{s, err}
}

// Text identifies the key by the new id of 1, without disclosing the key.
func (k keyed) Text() string {
	one, err := k.forward(1)
	if err != nil {
		return "keyed"
	}
	return fmt.Sprintf("keyed, 1 becomes %d", one)
}

func (k keyed) Check() error { return k.err }

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

// Drawn takes new ids from a generator and keeps them in a map table.
type Drawn struct{ Generator keygen.Generator[int64] }

// Text returns "map table".
func (Drawn) Text() string { return "map table" }

// Check fails without a generator.
func (d Drawn) Check() error {
	if nilness.Is(d.Generator) {
		return errors.New("MapTable: the generator is nil")
	}
	return nil
}

// draw returns n new ids.
func (d Drawn) draw(ctx context.Context, n int) ([]int64, error) {
	ids := make([]int64, n)
	if err := keygen.Fill(ctx, d.Generator, ids); err != nil {
		return nil, fmt.Errorf("draw ids: %w", err)
	}
	for _, id := range ids {
		if id < 1 {
			return nil, fmt.Errorf("%w: the generator made %d; ids are from 1 up", backend.ErrConfig, id)
		}
	}
	return ids, nil
}

var (
	_ Numbering = Kept{}
	_ pure      = Affine{}
	_ pure      = keyed{}
	_ Numbering = Drawn{}
)

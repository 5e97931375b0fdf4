// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// TinyID is the source of one biz_type of tinyid's table tiny_id_info. It is safe for
// concurrent use, and tinyid's servers may reserve from the row, too. The ranges have tinyid's
// form, (old max_id, new max_id], and each reservation raises the row's version, so that a
// tinyid server which read the row before detects the change and retries.
//
// tinyid distributes a biz_type over several databases, which count with the same delta and one
// remainder each. Each database is then a TinyID, and package ticket draws from them in turn: a
// TinyID is a ticket.Server.
//
//	odd, err := storeA.TinyID("order", 2, 1)
//	even, err := storeB.TinyID("order", 2, 0)
//	ids, err := ticket.New(ctx, ticket.Config{Servers: []ticket.Server{odd, even}})
//
// One database alone is a source of package segment: TinyID("order", 1, 0).
//
// A database that lost its newest rows, such as a replica that lagged or a restored backup,
// reserves ranges again. No guard like that of a GuardedTag detects it, because tinyid's own
// servers would reserve from the row before a process of shardid raises it. Raise max_id before
// any process goes on.
type TinyID struct{ tag *tag }

var (
	_ keygen.Source  = (*TinyID)(nil)
	_ keygen.Stepper = (*TinyID)(nil)
)

var tinyIDInfo = &counterTable{
	kind: tinyIDKind, name: "tiny_id_info", key: "biz_type", value: "max_id", next: 1,
	also: map[string]string{mysqlName: raiseVersion, postgresName: raiseVersion, sqliteName: raiseVersion},
	seed: "insert it, as tinyid's documentation says",
}

const raiseVersion = `, "update_time" = CURRENT_TIMESTAMP, "version" = "version" + 1`

// TinyID returns the source of a biz_type whose ids have this remainder modulo delta. Delta is
// the number of databases, at least 1, and remainder is from 0 to delta-1. The row must exist
// and have the same delta and remainder. Each reservation compares them, and a difference is a
// [keygen.SetupError]. An invalid delta or remainder is an error of TinyID, which wraps
// nothing.
func (s *Store) TinyID(bizType string, delta, remainder int64) (*TinyID, error) {
	if delta < 1 || remainder < 0 || remainder >= delta {
		return nil, fmt.Errorf("sqlstore: tiny_id_info %.128q: delta %d and remainder %d are invalid; the delta is the number of databases, and the remainder is from 0 to delta-1, a different one in each", bizType, delta, remainder)
	}
	t := newTag(s, tinyIDInfo, bizType)
	t.delta, t.remainder, t.fixed = delta, remainder, true
	return &TinyID{t}, nil
}

// Reserve reserves n ids, n at least 1, which are delta apart.
func (t *TinyID) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if t.tag == nil {
		return keygen.Span{}, errNoDB
	}
	return t.tag.Reserve(ctx, n)
}

// Step returns the number of ids per step of the row. The row's step is the length of a range,
// of which one number in delta is an id.
func (t *TinyID) Step(ctx context.Context) (int64, error) {
	if t.tag == nil {
		return 0, errNoDB
	}
	step, err := t.tag.Step(ctx)
	if err != nil || step < 1 {
		return step, err
	}
	return (step + t.tag.delta - 1) / t.tag.delta, nil
}

// Numbering returns the lowest possible id and delta, for package ticket.
func (t *TinyID) Numbering() (offset, increment int64) {
	switch {
	case t.tag == nil:
		return 0, 0
	case t.tag.remainder == 0:
		return t.tag.delta, t.tag.delta
	}
	return t.tag.remainder, t.tag.delta
}

// sameFamily compares delta and remainder with the row's.
func (t *tag) sameFamily(ctx context.Context, s session) error {
	delta, err := t.look(ctx, s, "delta")
	if err != nil {
		return err
	}
	remainder, err := t.look(ctx, s, "remainder")
	if err != nil || delta == t.delta && remainder == t.remainder {
		return err
	}
	return &keygen.SetupError{
		Err:  fmt.Errorf("the row has delta %d and remainder %d, but this process is configured with %d and %d: it could issue ids of another database", delta, remainder, t.delta, t.remainder),
		Cure: "configure the process like the row or, if the row is wrong, correct the row",
	}
}

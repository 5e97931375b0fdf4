package sqlstore

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// TinyID is the source of one biz_type of tinyid's table tiny_id_info, as it is. It
// is safe for concurrent use, by tinyid's servers too: ranges are tinyid's,
// (old max_id, new max_id], and the row's version rises with each, so that a tinyid
// which read the row before takes notice and tries again.
//
// tinyid spreads a biz_type over several databases, which count with the same delta
// and a remainder of their own each. Each database is a TinyID then, and package
// ticket goes round them: a TinyID is a ticket.Server.
//
//	odd, err := storeA.TinyID("order", 2, 1)
//	even, err := storeB.TinyID("order", 2, 0)
//	ids, err := ticket.New(ctx, ticket.Config{Servers: []ticket.Server{odd, even}})
//
// One database alone is a source of package segment: TinyID("order", 1, 0).
//
// A database that forgot its newest rows, a replica that was behind or a backup, gives
// ranges again, and no guard notices it as that of a GuardedTag does: tinyid's own
// servers would reserve from the row before a process of ours raises it. Raise max_id
// then, before any of them goes on.
type TinyID struct{ tag *tag }

var (
	_ keygen.Source  = (*TinyID)(nil)
	_ keygen.Stepper = (*TinyID)(nil)
)

var tinyIDInfo = &counterTable{
	kind: tinyIDKind, name: "tiny_id_info", key: "biz_type", value: "max_id", next: 1,
	also: map[string]string{mysqlName: bumped, postgresName: bumped, sqliteName: bumped},
	seed: "insert it, as tinyid's documentation says",
}

const bumped = `, "update_time" = CURRENT_TIMESTAMP, "version" = "version" + 1`

// TinyID returns the source of a biz_type whose ids leave remainder when divided by
// delta. Delta is the number of databases, 1 or more, and remainder from 0 to delta-1.
// The row must exist and say the same: each reservation compares, and a row that says
// something else is a [keygen.SetupError]. A delta or remainder that cannot be is an
// error here, which wraps nothing.
func (s *Store) TinyID(bizType string, delta, remainder int64) (*TinyID, error) {
	if delta < 1 || remainder < 0 || remainder >= delta {
		return nil, fmt.Errorf("sqlstore: tiny_id_info %.128q: a delta of %d and a remainder of %d; the delta is the number of databases, and the remainder is from 0 to one less, another one in each", bizType, delta, remainder)
	}
	t := newTag(s, tinyIDInfo, bizType)
	t.delta, t.remainder, t.fixed = delta, remainder, true
	return &TinyID{t}, nil
}

// Reserve takes n ids, n at least 1, which are delta apart.
func (t *TinyID) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if t.tag == nil {
		return keygen.Span{}, errNoDB
	}
	return t.tag.Reserve(ctx, n)
}

// Step returns how many ids the row's step holds: it is the length of a range, of
// which one number in delta is an id.
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

// Numbering returns the lowest id there can be and delta, for package ticket.
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
		Err:  fmt.Errorf("the row has delta %d and remainder %d, and this process has %d and %d: ids could be those of another database", delta, remainder, t.delta, t.remainder),
		Cure: "give the process what the row says or, if that is wrong, correct the row",
	}
}

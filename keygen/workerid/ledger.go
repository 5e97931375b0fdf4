// SPDX-License-Identifier: Apache-2.0

package workerid

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Ledger stores leases; a store's Leases is one. All its arithmetic uses one clock, the
// database's, in ticks of the claim's layout. Implementations are safe for concurrent use.
//
// A Ledger stores, for each worker id of a namespace, its holder and the ceiling up to which
// the holder may issue ids. It must not lose anything that it acknowledged, with one exception:
// a database that fails over to a replica that lagged. Such a ledger must have a new identity
// afterwards. It must then treat every worker id as held by an unknown process until two terms
// from now. No ceiling can have been higher: it was one term above the lost server's clock, and
// that clock may have been ahead of the new server's by another term.
type Ledger interface {
	// Take gives a worker id from 0 to c.Most to c.Owner, in this order: one that c.Owner
	// already holds (the reply to an earlier Take was lost); the one whose ceiling was passed
	// longest ago; one that was never used. Otherwise the error wraps keygen.ErrNoWorker and
	// says how many are held and by whom. The entry's NotBefore is at or above every ceiling
	// ever written for the worker id. Its Ceiling is the ledger's present plus the term, or
	// NotBefore if that is higher: then nothing can be issued before a renewal raises it.
	//
	// With c.Sticky the order after c.Owner's own is: the worker id that a claim with the same
	// Holder took last, even if its ceiling was not passed yet, in which case the present
	// holder loses it; one that was never used; the one whose ceiling was passed longest ago.
	//
	// The ledger stores c.Layout for a namespace and compares Fingerprints. If another layout
	// is stored, the error wraps keygen.ErrLayout, because different worker ids could make
	// equal ids. Claim.Relation says when c.Layout replaces the stored one. All earlier leases
	// are then lost, and new ones begin above all of their ceilings.
	Take(ctx context.Context, c Claim) (Entry, error)

	// Renew raises the ceiling of e to the ledger's present plus the term, never lowers it, and
	// returns it. When c.Owner does not hold e any more, in its generation and under the
	// ledger's identity of that time, the error wraps keygen.ErrWorkerLost.
	Renew(ctx context.Context, c Claim, e Entry) (ceiling int64, err error)

	// Return sets the ceiling of e to end, which may be lower, and removes the owner. It
	// changes nothing when another process holds the worker id.
	Return(ctx context.Context, c Claim, e Entry, end int64) error
}

// Claim is a process's request to a Ledger.
type Claim struct {
	Namespace string // the worker ids of one namespace are distinct; 1 to 64 characters
	Owner     string // random, for this lease alone
	Holder    string // a name for people, at most 128 characters
	Sticky    bool   // Holder is the same at each start, and has one lease at a time
	Most      int64  // the highest worker id
	Layout    keygen.Layout
	Former    keygen.Layout // LeasedConfig.Former
	Term      time.Duration // a ceiling minus the ledger's present
}

// LayoutRelation is the relation of a namespace's stored layout to a claim.
type LayoutRelation int

const (
	// Foreign is the relation of a layout that is another one. The claim is refused ([Claim.Refuse]).
	Foreign LayoutRelation = iota
	// Own is the relation of the claim's own layout.
	Own
	// Stated means that no layout is stored, and LeasedConfig.Former says that the layout in use is the
	// claim's. The ledger stores it.
	Stated
	// Past means that the stored layout is the claim's former one, or that none is stored. The claim's layout
	// replaces it when no lease is in force, at the time that [Claim.Begin] returns; until then
	// the claim is refused ([Claim.Hold]).
	Past
)

// Relation returns the relation of a stored fingerprint to the claim; "" means that none is
// stored.
func (c Claim) Relation(noted string) LayoutRelation {
	own, former := c.Layout.Fingerprint(), ""
	if c.Former.Unit != 0 {
		former = c.Former.Fingerprint()
	}
	switch {
	case noted == own:
		return Own
	case noted == "" && former == own:
		return Stated
	case noted == "" || noted == former:
		return Past
	}
	return Foreign
}

// Refuse returns the error of a claim in a namespace with another layout.
func (c Claim) Refuse(noted string) error {
	return fmt.Errorf("%w: the layout of namespace %q is %q, but that of this process is %q, and ids of the two can be equal, also in different namespaces; package workerid says how to change layouts",
		keygen.ErrLayout, c.Namespace, noted, c.Layout.Fingerprint())
}

// Hold returns the error of a claim that must wait for the leases of another layout. The
// arguments are their number, one holder, and the end of the last of them.
func (c Claim) Hold(noted string, leases int64, holder string, end time.Time) error {
	if noted == "" {
		return fmt.Errorf("%w: namespace %q has leases in force whose layout is not stored (%d, one of them held by %s, the last until %v): end these processes, or, if you know that their layout is %q, set Former to it",
			keygen.ErrLayout, c.Namespace, leases, holder, end.UTC(), c.Layout.Fingerprint())
	}
	return fmt.Errorf("%w: namespace %q has leases in force with the layout %q (%d, one of them held by %s, the last until %v); end these processes first, or see package workerid for a change of layouts without a pause",
		keygen.ErrLayout, c.Namespace, noted, leases, holder, end.UTC())
}

// Begin returns the time at which leases of the claim's layout begin, when all leases of the
// former layout have ended at end: the start of the next tick. If ids made from then on could
// equal earlier ones, the error wraps keygen.ErrLayout.
func (c Claim) Begin(end time.Time) (time.Time, error) {
	from := c.Layout.At(c.Layout.Tick(end) + 1)
	if c.Former.Unit == 0 || c.Former.Fingerprint() == c.Layout.Fingerprint() {
		return from, nil
	}
	until, err := c.Layout.Above(c.Former, from)
	if err == nil && until.Before(c.Former.At(c.Former.Tick(end))) {
		err = fmt.Errorf("%w: ids of %q are below those that %q has made since %v; choose an epoch with which Layout.Above returns a later time",
			keygen.ErrLayout, c.Layout.Fingerprint(), c.Former.Fingerprint(), until)
	}
	return from, err
}

// Entry is a lease on a worker id as a Ledger granted it. The owner may use the ticks from
// NotBefore up to, not including, Ceiling.
type Entry struct {
	Worker     int64
	Generation int64 // rises each time the worker id is taken
	NotBefore  int64
	Ceiling    int64
}

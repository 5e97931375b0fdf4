package workerid

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Ledger is where leases are written down; a store's Leases is one. All its
// arithmetic uses one clock, the database's, in ticks of the claim's layout. It
// is safe for concurrent use.
//
// A Ledger keeps, for each worker id of a namespace, the ceiling up to which
// its holder may issue ids, and who that is. It must lose nothing that it
// acknowledged, with one exception: a ledger that may have (a database that
// failed over to a replica that was behind) has another Identity than before,
// and then treats every worker id as held by somebody it does not know until
// two terms from now: no ceiling can have been written above one term from the
// lost server's present, which may be ahead of the new one's by another.
type Ledger interface {
	// Take gives a worker id from 0 to c.Most to c.Owner: one that c.Owner holds
	// already (the reply to an earlier Take was lost), else the one whose ceiling
	// was passed longest ago, else one that nobody ever had, else an error that
	// wraps keygen.ErrNoWorker and says how many are held and by whom. The
	// entry's NotBefore is at or above every ceiling ever written for the worker
	// id, and its Ceiling is the ledger's present plus the term, or NotBefore where
	// that is above: then nothing can be issued before a renewal raises it.
	//
	// With c.Sticky the worker id that a claim with the same Holder took last comes
	// after those of c.Owner, also when its ceiling was not passed yet: whoever has it
	// loses it. Then comes one that nobody ever had, and last the one whose ceiling
	// was passed longest ago.
	//
	// The ledger notes c.Layout for a namespace. Another layout than the one noted,
	// by its Fingerprint, is an error that wraps keygen.ErrLayout: equal ids could be
	// made of different worker ids. Claim.Standing says when it replaces the one
	// noted. All leases taken before are then lost, and those that follow begin
	// above all of their ceilings.
	Take(ctx context.Context, c Claim) (Entry, error)

	// Renew raises the ceiling of e to the ledger's present plus the term, never
	// lowers it, and returns it. When e is not the entry of c.Owner any more, in
	// its generation and under the identity that it was taken under, the error
	// wraps keygen.ErrWorkerLost.
	Renew(ctx context.Context, c Claim, e Entry) (ceiling int64, err error)

	// Return sets the ceiling of e to end, which may be lower, and takes the
	// owner away. It changes nothing when e is another's by now.
	Return(ctx context.Context, c Claim, e Entry, end int64) error
}

// Claim is what a process asks a Ledger for.
type Claim struct {
	Namespace string // the worker ids of one namespace are distinct; 1 to 64 characters
	Owner     string // random, of this lease alone
	Holder    string // for people: who it is, at most 128 characters
	Sticky    bool   // Holder is the same at each start, and of one lease at a time
	Most      int64  // the highest worker id
	Layout    keygen.Layout
	Former    keygen.Layout // LeasedConfig.Former
	Term      time.Duration // how far above the ledger's present a ceiling is
}

// Standing is what the layout that a ledger has noted for a namespace means for a
// claim.
type Standing int

const (
	// Foreign is another layout. The claim is refused ([Claim.Refuse]).
	Foreign Standing = iota
	// Own is the claim's layout.
	Own
	// Stated is none, where what is in use is the claim's layout by the word of
	// LeasedConfig.Former. The ledger notes it.
	Stated
	// Past is the layout before, or none, of versions that noted none. It is replaced
	// when no lease is in force, at what [Claim.Begin] returns; until then the claim
	// is refused ([Claim.Hold]).
	Past
)

// Standing returns what a fingerprint that is noted means for c, "" that none is.
func (c Claim) Standing(noted string) Standing {
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

// Refuse returns the error of a claim in a namespace that has another layout.
func (c Claim) Refuse(noted string) error {
	return fmt.Errorf("%w: namespace %q has ids of %q, and this process makes those of %q, which can be the same; a namespace of its own does not keep them apart: package workerid says how to change layouts",
		keygen.ErrLayout, c.Namespace, noted, c.Layout.Fingerprint())
}

// Hold returns the error of a claim that waits for the end of the leases of another
// layout: the number of them, one holder, and when the last of them ends.
func (c Claim) Hold(noted string, leases int64, holder string, end time.Time) error {
	if noted == "" {
		return fmt.Errorf("%w: namespace %q has leases in force whose layout is not noted (%d, one is of %s, up to %v): end these processes, or set Former to their layout if you know that it is this one's, %q",
			keygen.ErrLayout, c.Namespace, leases, holder, end.UTC(), c.Layout.Fingerprint())
	}
	return fmt.Errorf("%w: namespace %q has leases in force with the layout %q (%d, one is of %s, up to %v); end these processes first, or see package workerid for a change of layouts without a pause",
		keygen.ErrLayout, c.Namespace, noted, leases, holder, end.UTC())
}

// Begin returns the time at which leases begin, all those of the layout before
// having ended at end: the start of the first tick after it. The error wraps
// keygen.ErrLayout where ids made from then on could equal some of those before.
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

// Entry is a worker id as a Ledger gave it to an owner. Ticks below NotBefore
// and from Ceiling on are not the owner's.
type Entry struct {
	Worker     int64
	Generation int64 // rises each time the worker id is taken
	NotBefore  int64
	Ceiling    int64
}

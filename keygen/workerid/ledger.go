package workerid

import (
	"context"
	"time"
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
	// A namespace whose ticks are counted otherwise (c.Clock differs) is an error
	// that wraps keygen.ErrLayout: its ceilings would mean other times.
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
	Most      int64  // the highest worker id
	Clock     Clock
	Term      time.Duration // how far above the ledger's present a ceiling is
}

// Clock says how a ledger counts ticks.
type Clock struct {
	Epoch time.Time
	Unit  time.Duration
}

// Entry is a worker id as a Ledger gave it to an owner. Ticks below NotBefore
// and from Ceiling on are not the owner's.
type Entry struct {
	Worker     int64
	Generation int64 // rises each time the worker id is taken
	NotBefore  int64
	Ceiling    int64
}

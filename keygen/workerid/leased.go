package workerid

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/shardid/shardid/keygen"
)

// LeasedConfig configures [NewLeased].
type LeasedConfig struct {
	// Ledger is where leases are written down, a store's Leases say. It is
	// required.
	Ledger Ledger

	// Namespace separates the worker ids of services whose ids may be equal.
	// Processes whose ids must differ share one. It is required, 1 to 64
	// characters.
	Namespace string

	// Term is how far into the future a lease reaches, at least a second and at
	// least 3 units of the layout. A generator renews three times within it, goes
	// on for so long without the database, and a worker id rests for so long
	// after a crash. Defaults to 30 seconds. All processes of a namespace use the
	// same one.
	Term time.Duration
}

const (
	defaultTerm  = 30 * time.Second
	minTerm      = time.Second
	maxNamespace = 64
	maxHolder    = 128
)

// Leased gives worker ids that are leased in a [Ledger] for a stretch of time
// that is written down before it is used. Two processes never issue ids with
// the same worker id in the same tick, whatever happens to their clocks, to the
// processes or to the connection, and worker ids are used again: the one that
// rested longest first.
type Leased struct {
	cfg    LeasedConfig
	holder string
}

var _ keygen.Assigner = (*Leased)(nil)

// NewLeased returns an assigner, or an error that names the setting that is
// wrong.
func NewLeased(cfg LeasedConfig) (*Leased, error) {
	if cfg.Term == 0 {
		cfg.Term = defaultTerm
	}
	switch {
	case cfg.Ledger == nil:
		return nil, errors.New("workerid: LeasedConfig.Ledger is nil; give a store's Leases")
	case cfg.Namespace == "" || len(cfg.Namespace) > maxNamespace:
		return nil, fmt.Errorf("workerid: LeasedConfig.Namespace %q must have 1 to %d characters", cfg.Namespace, maxNamespace)
	case cfg.Term < minTerm:
		return nil, fmt.Errorf("workerid: LeasedConfig.Term is %v; the shortest is %v", cfg.Term, minTerm)
	}
	return &Leased{cfg, holder()}, nil
}

// holder says who this process is, for people.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	name := fmt.Sprintf("%s/%d", host, os.Getpid())
	return name[max(len(name)-maxHolder, 0):]
}

// Acquire leases a worker id. Errors of the ledger are returned wrapped; when
// the reply was lost the worker id rests for a term.
func (l *Leased) Acquire(ctx context.Context, layout keygen.Layout) (keygen.Lease, error) {
	if least := 3 * layout.Unit; l.cfg.Term < least {
		return nil, fmt.Errorf("workerid: LeasedConfig.Term is %v; a layout of %v units needs at least %v", l.cfg.Term, layout.Unit, least)
	}
	claim := Claim{
		Namespace: l.cfg.Namespace,
		Owner:     rand.Text(),
		Holder:    l.holder,
		Most:      int64(1)<<layout.WorkerBits() - 1,
		Clock:     Clock{layout.Epoch, layout.Unit},
		Term:      l.cfg.Term,
	}
	entry, err := l.cfg.Ledger.Take(ctx, claim)
	if err != nil {
		return nil, fmt.Errorf("workerid: lease a worker id in namespace %q: %w", claim.Namespace, err)
	}
	return &window{ledger: l.cfg.Ledger, claim: claim, entry: entry, ceiling: entry.Ceiling}, nil
}

// window is a lease in a ledger. Its generator calls one method at a time.
type window struct {
	ledger  Ledger
	claim   Claim
	entry   Entry
	ceiling int64
}

var _ keygen.Window = (*window)(nil)

func (w *window) ID() int64           { return w.entry.Worker }
func (w *window) NotBefore() int64    { return w.entry.NotBefore }
func (w *window) Ceiling() int64      { return w.ceiling }
func (w *window) Term() time.Duration { return w.claim.Term }

func (w *window) Renew(ctx context.Context) (int64, error) {
	ceiling, err := w.ledger.Renew(ctx, w.claim, w.entry)
	if err != nil {
		return 0, fmt.Errorf("workerid: renew the lease on worker id %d: %w", w.entry.Worker, err)
	}
	w.ceiling = max(w.ceiling, ceiling)
	return w.ceiling, nil
}

func (w *window) Release(ctx context.Context, end int64) error {
	return w.ledger.Return(ctx, w.claim, w.entry, max(end, w.entry.NotBefore))
}

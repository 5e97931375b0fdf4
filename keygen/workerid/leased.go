package workerid

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"
	"unicode/utf8"

	"github.com/shardid/shardid/internal/nilness"
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
	// after a crash. Defaults to 30 seconds. It may be changed, and differ between
	// processes meanwhile: each lease has its own, and after a fail-over the longest
	// that there ever was counts.
	Term time.Duration

	// File remembers the lease on this machine, so that a process which is
	// restarted while the database is down goes on with what is left of it: for a
	// Term at most, and never with a tick that was in use before. One process at a
	// time holds the file, named with .lock added; its directory must be on a local
	// disk. It is written and synced nine times in a Term, of which it needs at
	// least 9 units of the layout then (of a cached generator: 9 times what its ring
	// reaches into the future), and works on Linux. What it does not protect from
	// stands in the package's comment. Defaults to none: a start needs the database.
	File string

	// Instance names this process for as long as it exists, through all of its starts:
	// "10.0.0.7:8080", or a pod's name of a StatefulSet. It gets the worker id that it
	// had last, as long as there are enough of them, also when it was killed a moment
	// ago: its ids then begin where the lease of before could have ended, a Term ahead
	// of the clock at most. At most 128 characters. Two generators with one Instance
	// in one namespace take the worker id from each other; no id comes twice, but they
	// wait. Defaults to none: worker ids are taken in turn.
	Instance string

	// Former is the layout that the namespace had before, for a change of layouts in
	// it: leases are refused as long as one of a process with Former is in force, and
	// then begin above all of them. Processes with Former are refused from then on.
	// See the package's comment.
	//
	// Versions that noted no layout leave leases of which nobody knows it; no others
	// are given beside them. Where all processes that hold them have the generator's
	// own layout, setting Former to it says so, and they may stay.
	//
	// Defaults to none.
	Former keygen.Layout
}

const (
	defaultTerm  = 30 * time.Second
	minTerm      = time.Second
	maxNamespace = 64
	maxHolder    = 128

	// stallLimit is how long a ceiling may stay where it is because renewals
	// follow each other closely, or the database's clock is being slewed.
	stallLimit = time.Second
)

// Leased gives worker ids that are leased in a [Ledger] for a stretch of time
// that is written down before it is used. Two processes never issue ids with
// the same worker id in the same tick, whatever happens to their clocks, to the
// processes or to the connection, and worker ids are used again: the one that
// rested longest first.
type Leased struct {
	cfg    LeasedConfig
	holder string
	memory *memory // nil without a File
}

var _ keygen.Assigner = (*Leased)(nil)

// NewLeased returns an assigner, or an error that names the setting that is
// wrong.
func NewLeased(cfg LeasedConfig) (*Leased, error) {
	if cfg.Term == 0 {
		cfg.Term = defaultTerm
	}
	switch length := utf8.RuneCountInString(cfg.Namespace); {
	case nilness.Is(cfg.Ledger):
		return nil, errNoLedger
	case length == 0 || length > maxNamespace:
		return nil, fmt.Errorf("workerid: LeasedConfig.Namespace has %d characters; it must have 1 to %d", length, maxNamespace)
	case utf8.RuneCountInString(cfg.Instance) > maxHolder || !utf8.ValidString(cfg.Instance):
		return nil, fmt.Errorf("workerid: LeasedConfig.Instance is %q; it must be UTF-8 text of at most %d characters", cfg.Instance, maxHolder)
	case cfg.Term < minTerm:
		return nil, fmt.Errorf("workerid: LeasedConfig.Term is %v; the shortest is %v", cfg.Term, minTerm)
	}
	if cfg.Former.Unit != 0 || cfg.Former.Fields != nil {
		if err := cfg.Former.Validate(); err != nil {
			return nil, fmt.Errorf("workerid: LeasedConfig.Former: %w", err)
		}
	}
	l := &Leased{cfg: cfg, holder: cfg.Instance}
	if l.holder == "" {
		l.holder = holder()
	}
	if cfg.File != "" {
		l.memory = &memory{file: cfg.File, now: time.Now}
	}
	return l, nil
}

var errNoLedger = errors.New("workerid: LeasedConfig.Ledger is nil; give a store's Leases")

// Namespace returns the namespace of the worker ids.
func (l *Leased) Namespace() string { return l.cfg.Namespace }

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
	if l.cfg.Ledger == nil {
		return nil, errNoLedger
	}
	least := 3 * layout.Unit
	if l.memory != nil {
		least *= pieces
	}
	if l.cfg.Term < least {
		return nil, fmt.Errorf("workerid: LeasedConfig.Term is %v; a layout of %v units needs at least %v", l.cfg.Term, layout.Unit, least)
	}
	claim := Claim{
		Namespace: l.cfg.Namespace,
		Owner:     rand.Text(),
		Holder:    l.holder,
		Sticky:    l.cfg.Instance != "",
		Most:      int64(1)<<layout.WorkerBits() - 1,
		Layout:    layout,
		Former:    l.cfg.Former,
		Term:      l.cfg.Term,
	}
	lease, err := l.take(ctx, claim)
	if err != nil {
		return nil, fmt.Errorf("workerid: lease a worker id in namespace %q: %w", claim.Namespace, err)
	}
	return lease, nil
}

func (l *Leased) take(ctx context.Context, c Claim) (keygen.Lease, error) {
	if l.memory != nil {
		return l.memory.acquire(ctx, l.cfg.Ledger, c)
	}
	entry, err := l.cfg.Ledger.Take(ctx, c)
	if err != nil {
		return nil, err
	}
	return &window{ledger: l.cfg.Ledger, claim: c, now: time.Now, entry: entry, ceiling: entry.Ceiling, raised: time.Now()}, nil
}

// window is a lease in a ledger. Its generator calls one method at a time.
type window struct {
	ledger  Ledger
	claim   Claim
	now     func() time.Time
	entry   Entry
	ceiling int64
	raised  time.Time // when ceiling rose
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
	if ceiling > w.ceiling {
		w.ceiling, w.raised = ceiling, w.now()
	}
	return w.ceiling, w.stalled(w.now().Sub(w.raised))
}

// stalled says why nothing can be issued yet, or the ceiling has not risen for so
// long; nil when that is not long.
func (w *window) stalled(since time.Duration) error {
	layout := w.claim.Layout
	switch {
	case w.ceiling <= w.entry.NotBefore:
		return fmt.Errorf("workerid: worker id %d can be used from %v on, as it may have been in use up to then: by this instance before it was started anew, or on a lease that was lost when the database failed over "+
			"(a Redis on which nobody has called Create counts as one that did); wait until the ledger's clock is a term of %v below",
			w.entry.Worker, layout.At(w.entry.NotBefore), w.claim.Term)
	case since > 2*layout.Unit+stallLimit:
		return fmt.Errorf("workerid: %w: the ledger's. The lease on worker id %d has reached to %v for %v now: the clock of the database's server is behind, or was ahead before; correct it, or wait until it has caught up",
			keygen.ErrClockRollback, w.entry.Worker, layout.At(w.ceiling), since.Round(time.Second))
	}
	return nil
}

func (w *window) Release(ctx context.Context, end int64) error {
	return w.ledger.Return(ctx, w.claim, w.entry, max(end, w.entry.NotBefore))
}

// SPDX-License-Identifier: Apache-2.0

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
	// Ledger stores the leases: a store's Leases, say. It is required.
	Ledger Ledger

	// Namespace separates the worker ids of services whose ids may be equal. Processes whose
	// ids must differ use the same one. It is required, 1 to 64 characters.
	Namespace string

	// Term is how far a lease reaches into the future, at least a second and at least 3 units
	// of the layout. A generator renews its lease three times within it, and can go on without
	// the database for what is left of it, two thirds at least; after a crash the worker id is
	// blocked for a Term at most. Defaults to 30 seconds. It may be changed, and differ between processes during the change, because
	// each lease has its own term; after a fail-over the longest term counts that the ledger
	// still knows. A ledger that lost all of its data, as a Redis without a file at a restart,
	// only knows the term of the process that asks first.
	Term time.Duration

	// File is a file on this machine that stores the lease, so that a process which is
	// restarted while the database is down continues with what is left of it: for a Term at
	// most, and never with a tick that was used before. One process at a time holds the file by
	// a lock on the file's name with .lock added. The directory must be on a local disk. The
	// file is written and synced nine times in a Term, so a Term must be at least 9 units of
	// the layout (for a cached generator: 9 times the length of its ring). It works on Linux
	// only. The package's comment says which copies it does not detect. Defaults to "": a start
	// needs the database.
	File string

	// Instance identifies this process through all of its starts: "10.0.0.7:8080", or the name
	// of a StatefulSet's pod. The process gets the worker id that it had last, as long as there
	// are enough of them, even if it was killed a moment ago. Its ids then begin where the
	// former lease could have ended, a Term ahead of the clock at most. At most 128 characters.
	// Two generators with one Instance in one namespace take the worker id from each other: no
	// id repeats, but they wait. Defaults to "": worker ids are assigned in turn.
	Instance string

	// Former is the namespace's previous layout, for a change of layouts. Leases are refused
	// while a lease of a process with Former is in force, and begin above all of those
	// afterwards. Processes with Former are refused from then on. See the package's comment.
	//
	// Versions that stored no layout leave leases of unknown layout, which block all new ones.
	// If all processes that hold them have the generator's own layout, set Former to it; the
	// leases then stay valid.
	//
	// Defaults to none.
	Former keygen.Layout
}

const (
	defaultTerm  = 30 * time.Second
	minTerm      = time.Second
	maxNamespace = 64
	maxHolder    = 128

	// maxStall is how long a ceiling may stay the same before Renew reports it. A short time is
	// normal when renewals follow each other closely, or the database's clock is being slewed.
	maxStall = time.Second
)

// Leased gives worker ids that are leased in a [Ledger] for a period that is stored before it
// is used. Two processes never issue ids with the same worker id in the same tick, whatever
// happens to their clocks, to the processes or to the connection. Worker ids are used again,
// the one that has been free longest first.
type Leased struct {
	cfg       LeasedConfig
	holder    string
	leaseFile *leaseFile // nil without LeasedConfig.File
}

var _ keygen.Assigner = (*Leased)(nil)

// NewLeased returns an assigner. Its error names the setting that is wrong.
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
		return nil, fmt.Errorf("workerid: LeasedConfig.Term is %v; it must be at least %v", cfg.Term, minTerm)
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
		l.leaseFile = &leaseFile{file: cfg.File, now: time.Now}
	}
	return l, nil
}

var errNoLedger = errors.New("workerid: LeasedConfig.Ledger is nil; set it to a store's Leases")

// Namespace returns the namespace of the worker ids.
func (l *Leased) Namespace() string { return l.cfg.Namespace }

// holder returns a name of this process, for people.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	name := fmt.Sprintf("%s/%d", host, os.Getpid())
	return name[max(len(name)-maxHolder, 0):]
}

// Acquire leases a worker id. Errors of the ledger are returned wrapped. If the ledger's reply
// was lost, the worker id is blocked for a term.
func (l *Leased) Acquire(ctx context.Context, layout keygen.Layout) (keygen.Lease, error) {
	if l.cfg.Ledger == nil {
		return nil, errNoLedger
	}
	shortest := 3 * layout.Unit
	if l.leaseFile != nil {
		shortest *= piecesPerTerm
	}
	if l.cfg.Term < shortest {
		return nil, fmt.Errorf("workerid: LeasedConfig.Term is %v; a layout of %v units needs at least %v", l.cfg.Term, layout.Unit, shortest)
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
	if l.leaseFile != nil {
		return l.leaseFile.acquire(ctx, l.cfg.Ledger, c)
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
	raised  time.Time // when the ceiling rose last
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
	return w.ceiling, w.notRaised(w.now().Sub(w.raised))
}

// notRaised returns an error when the lease cannot be used yet, or when its ceiling has not
// risen for a long time; nil otherwise.
func (w *window) notRaised(since time.Duration) error {
	layout := w.claim.Layout
	switch {
	case w.ceiling <= w.entry.NotBefore:
		return fmt.Errorf("workerid: worker id %d can be used only from %v on, because it may have been in use up to then: by this instance before its restart, or under a lease that was lost when the database failed over "+
			"(a Redis on which Create was never called counts as failed over); wait until the ledger's clock has come within a term (%v) of it",
			w.entry.Worker, layout.At(w.entry.NotBefore), w.claim.Term)
	case since > 2*layout.Unit+maxStall:
		return fmt.Errorf("workerid: %w: the ledger's clock. The ceiling of the lease on worker id %d, %v, has not risen for %v: the clock of the database's server is behind, or was ahead before; correct it, or wait until it has caught up",
			keygen.ErrClockRollback, w.entry.Worker, layout.At(w.ceiling), since.Round(time.Second))
	}
	return nil
}

func (w *window) Release(ctx context.Context, end int64) error {
	return w.ledger.Return(ctx, w.claim, w.entry, max(end, w.entry.NotBefore))
}

package workerid

import (
	"context"
	"fmt"
	"sync"

	"github.com/shardid/shardid/keygen"
)

// Backup returns an assigner of worker ids that all belong to this process, for
// Config.Worker and the SwitchWorker policy of one snowflake generator: with the
// ids w and w+512 of a layout with ten worker bits, say, or with w and the three
// values of two extension bits above it. It gives those first that were not used
// yet, in this order, and then the one that stopped longest ago; what each was
// used up to is remembered as long as the process lives, and not at its next start
// (see [Static]). When even that one is
// ahead of the clock the generator's error says so.
func Backup(ids ...int64) keygen.Assigner {
	b := &backup{}
	for _, id := range ids {
		b.spare = append(b.spare, spare{id, keygen.UnknownHistory})
	}
	return b
}

type backup struct {
	mu     sync.Mutex
	spare  []spare // those not in use
	layout string  // of the generator, "" before it has asked
}

// spare is a worker id, used up to end.
type spare struct{ id, end int64 }

// Acquire returns a lease, or an error that wraps keygen.ErrNoWorker when all
// worker ids are in use or the layout has no room for the one, and keygen.ErrLayout
// when a former lease was for another layout, whose ticks are others.
func (b *backup) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.layout != "" && b.layout != l.Fingerprint() {
		return nil, fmt.Errorf("workerid: %w: these backup worker ids are of a generator with %q, not with %q; give each generator its own Backup", keygen.ErrLayout, b.layout, l.Fingerprint())
	}
	best := -1
	for i, s := range b.spare {
		if best < 0 || s.end < b.spare[best].end {
			best = i
		}
	}
	if best < 0 {
		return nil, fmt.Errorf("workerid: %w: all backup worker ids are in use", keygen.ErrNoWorker)
	}
	s := b.spare[best]
	if _, err := Static(s.id).Acquire(ctx, l); err != nil {
		return nil, err
	}
	b.layout = l.Fingerprint()
	b.spare = append(b.spare[:best], b.spare[best+1:]...)
	return &lent{from: b, spare: s}, nil
}

// lent is a backup worker id in use.
type lent struct {
	spare

	from *backup
	once sync.Once
}

var _ keygen.Returnable = (*lent)(nil)

func (l *lent) ID() int64        { return l.id }
func (l *lent) NotBefore() int64 { return l.end }

func (l *lent) Release(_ context.Context, end int64) error {
	l.once.Do(func() {
		l.from.mu.Lock()
		defer l.from.mu.Unlock()
		l.from.spare = append(l.from.spare, spare{l.id, max(end, l.end)})
	})
	return nil
}

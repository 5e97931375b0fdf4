// SPDX-License-Identifier: Apache-2.0

package workerid

import (
	"context"
	"fmt"
	"sync"

	"github.com/shardid/shardid/keygen"
)

// Backup returns an assigner of worker ids that all belong to this process, for Config.Worker
// and the SwitchWorker policy of one snowflake generator. The ids may be w and w+512 in a
// layout with ten worker bits, say, or w and the three values of two extension bits above it.
// It first gives the ids that were not used yet, in this order, and then the one that stopped
// longest ago. It stores up to which tick each was used in memory only, so a restart loses that
// (see [Static]). When even the best one is ahead of the clock, the generator's error says so.
func Backup(ids ...int64) keygen.Assigner {
	b := &backup{}
	for _, id := range ids {
		b.spare = append(b.spare, spare{id, keygen.UnknownHistory})
	}
	return b
}

type backup struct {
	mu     sync.Mutex
	spare  []spare // the worker ids not in use
	layout string  // the generator's, "" before its first Acquire
}

// spare is a worker id that was used up to, not including, the tick end.
type spare struct{ id, end int64 }

// Acquire returns a lease. The error wraps keygen.ErrNoWorker when all worker ids are in use or
// the id does not fit the layout, and keygen.ErrLayout when a former lease was for another
// layout, whose ticks differ.
func (b *backup) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.layout != "" && b.layout != l.Fingerprint() {
		return nil, fmt.Errorf("workerid: %w: these backup worker ids belong to a generator with the layout %q, not %q; give each generator its own Backup", keygen.ErrLayout, b.layout, l.Fingerprint())
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
	return &backupLease{from: b, spare: s}, nil
}

// backupLease is a backup worker id in use.
type backupLease struct {
	spare

	from *backup
	once sync.Once
}

var _ keygen.Returnable = (*backupLease)(nil)

func (l *backupLease) ID() int64        { return l.id }
func (l *backupLease) NotBefore() int64 { return l.end }

func (l *backupLease) Release(_ context.Context, end int64) error {
	l.once.Do(func() {
		l.from.mu.Lock()
		defer l.from.mu.Unlock()
		l.from.spare = append(l.from.spare, spare{l.id, max(end, l.end)})
	})
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/schema/internal/backend"
)

const (
	beatEvery   = 500 * time.Millisecond
	keptBeats   = int(mostLag/beatEvery) + 1
	keptCommits = 5
)

// heartbeat is a row of the source that changes regularly. Only the goroutine that has the
// turn of the Throttle uses it.
type heartbeat struct {
	source *source
	name   string

	made    bool
	first   int64           // the first number of this process
	beats   []beat          // the latest beats, in order
	commits []time.Duration // commit durations of the latest beats
}

type beat struct {
	number int64
	at     time.Time // the time after its commit
}

// last is the newest beat. There is one after keep.
func (h *heartbeat) last() beat { return h.beats[len(h.beats)-1] }

// keep writes a beat when the last one is old enough.
func (h *heartbeat) keep(ctx context.Context) error {
	if len(h.beats) > 0 && time.Since(h.last().at) < beatEvery {
		return nil
	}
	if err := h.write(ctx); err != nil {
		h.made = false // somebody may have removed it
		return fmt.Errorf("heartbeat in %s: %w", backend.BeatTable, err)
	}
	return nil
}

func (h *heartbeat) write(ctx context.Context) error {
	if !h.made {
		if err := h.make(ctx); err != nil {
			return err
		}
		h.made = true
	}
	d, err := h.source.speaks(ctx)
	if err != nil {
		return err
	}
	var number int64
	var began time.Time
	err = sqlrun.Retry(ctx, nil, func() error {
		return sqlrun.InTx(ctx, h.source.DB, nil, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, dialect.Text(d, "UPDATE "+backend.BeatTable+" SET beat = beat + 1 WHERE job = ?"), h.name); err != nil {
				return err
			}
			err := tx.QueryRowContext(ctx, dialect.Text(d, "SELECT beat FROM "+backend.BeatTable+" WHERE job = ?"), h.name).Scan(&number)
			began = time.Now()
			return err
		})
	})
	if err != nil {
		return err
	}
	if len(h.beats) == 0 {
		h.first = number
	}
	now := time.Now()
	h.beats = lastOf(keptBeats, append(h.beats, beat{number, now}))
	h.commits = lastOf(keptCommits, append(h.commits, now.Sub(began)))
	return nil
}

// make inserts the row, which another runner may insert at the same time.
func (h *heartbeat) make(ctx context.Context) error {
	const create = "CREATE TABLE IF NOT EXISTS " + backend.BeatTable + " (job VARCHAR(64) NOT NULL PRIMARY KEY, beat BIGINT NOT NULL)"
	if _, err := h.source.ExecContext(ctx, create); err != nil {
		return err
	}
	d, err := h.source.speaks(ctx)
	if err != nil {
		return err
	}
	return sqlrun.Retry(ctx, nil, func() error {
		return sqlrun.InTx(ctx, h.source.DB, nil, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, dialect.Text(d, "INSERT INTO "+backend.BeatTable+" (job, beat) SELECT ?, 0 FROM (SELECT 1 AS one) AS single"+
				" WHERE NOT EXISTS (SELECT 1 FROM "+backend.BeatTable+" WHERE job = ?)"), h.name, h.name)
			return err
		})
	})
}

// after returns this process's first beat with a number above the given one.
func (h *heartbeat) after(number int64) (b beat, there bool) {
	i := slices.IndexFunc(h.beats, func(b beat) bool { return b.number > number })
	if i < 0 {
		return b, false
	}
	return h.beats[i], true
}

func lastOf[T any](n int, all []T) []T { return all[max(0, len(all)-n):] }

// latency is the cause that commits of the heartbeat take long.
type latency struct {
	beat *heartbeat
	most time.Duration
}

func (l latency) why(ctx context.Context) (string, error) {
	if err := l.beat.keep(ctx); err != nil {
		return "", err
	}
	sorted := slices.Sorted(slices.Values(l.beat.commits))
	if took := sorted[len(sorted)/2]; took > l.most {
		return fmt.Sprintf("a commit on the source takes %s, at most %s", took.Round(time.Millisecond), l.most), nil
	}
	return "", nil
}

// read returns the number that a replica has, 0 when it has none yet.
func (h *heartbeat) read(ctx context.Context, replica *sql.DB) (number int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	d, err := h.source.speaks(ctx)
	if err != nil {
		return 0, err
	}
	err = replica.QueryRowContext(ctx, dialect.Text(d, "SELECT beat FROM "+backend.BeatTable+" WHERE job = ?"), h.name).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) || err != nil && dialect.FaultOf(err) == dialect.NoTable {
		err = nil
	}
	return number, err
}

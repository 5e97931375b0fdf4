// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/cutover"
)

// switchTable is where each attempt to switch stores, on the source, how long writers
// waited. The first attempt creates it.
const switchTable = "shardid_switch"

const (
	noteWithin   = 2 * time.Second // how long a switch tries to store its result
	mostSwitches = 20              // how many of them Status lists
)

// PastSwitch is the result of a Cutover or a Rollback, or of an attempt that was given up
// after writers had waited.
type PastSwitch struct {
	Way     string    `json:"way"`   // "cutover" or "rollback"
	Ended   time.Time `json:"ended"` // by the clock of the source, to the second, in UTC
	Made    bool      `json:"made"`  // false when it was given up
	PauseMS float64   `json:"pause_ms"`
	OverMS  float64   `json:"over_ms"` // by how much the pause was longer than allowed
	Drained int64     `json:"drained"`
	Epoch   int64     `json:"epoch"` // in which the switch was made or given up; Status.Runner has it while nobody has led since
}

// note stores a pause. Its errors are ignored, because the result of the switch does not
// depend on it.
func (l *leader) note(ctx context.Context, way string, r cutover.Result, err error) {
	if r.Pause == 0 {
		return // no writer waited
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), noteWithin)
	defer done()
	_ = l.Source.Once(ctx, func(s *backend.Session) error {
		const columns = " (job VARCHAR(64) NOT NULL, epoch BIGINT NOT NULL, ended BIGINT NOT NULL, way VARCHAR(8) NOT NULL, made INTEGER NOT NULL," +
			" pause_us BIGINT NOT NULL, over_us BIGINT NOT NULL, drained BIGINT NOT NULL, PRIMARY KEY (job, epoch))"
		if err := s.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+switchTable+columns); err != nil {
			return err
		}
		made := 0
		if err == nil {
			made = 1
		}
		return s.Exec(ctx, withClock(s.Database, "INSERT INTO "+switchTable+" (job, epoch, ended, way, made, pause_us, over_us, drained) VALUES (?, ?, "+now+", ?, ?, ?, ?, ?)"),
			l.Name, l.Epoch(), way, made, r.Pause.Microseconds(), r.Over.Microseconds(), r.Drained)
	})
}

// pastSwitches reads the newest switches, the last one first.
func pastSwitches(ctx context.Context, s *backend.Session, job string) (all []PastSwitch, err error) {
	there, err := s.Database.Exists(ctx, s, switchTable)
	if err != nil || !there {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, fmt.Sprintf("SELECT way, ended, made <> 0, pause_us, over_us, drained, epoch FROM %s WHERE job = ? ORDER BY epoch DESC LIMIT %d", switchTable, mostSwitches), job)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var p PastSwitch
		var ended, pause, over int64
		if err := rows.Scan(&p.Way, &ended, &p.Made, &pause, &over, &p.Drained, &p.Epoch); err != nil {
			return nil, err
		}
		p.Ended, p.PauseMS, p.OverMS = time.Unix(ended, 0).UTC(), float64(pause)/1e3, float64(over)/1e3
		all = append(all, p)
	}
	return all, rows.Err()
}

// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// RunnerTable is where the leading runner of each job stores, on the source, who it is and
// what it does; doing is NULL when it has ended. The first runner creates it.
const RunnerTable = "shardid_runner"

const (
	// PulseEvery is how often a leader writes its row, and noteWithin how long it tries to.
	PulseEvery = 2 * time.Second
	noteWithin = 2 * time.Second

	rateOver = time.Minute // see Pulse.rates
)

// Pulse writes the state of a leader. Its errors are ignored: whoever needs the source
// reports that it is unreachable.
type Pulse struct {
	job   *openjob.Job
	term  *term
	host  string
	does  atomic.Pointer[string]
	cause func() string

	began   string // the source's time at the first write, as a number
	samples []sample
	back    bool // the shards serve, by the phase at the last write
	logs    map[*backend.Database]*logAge
}

// sample is how many rows were written up to a moment.
type sample struct {
	at               time.Time
	copied, followed int64
}

func newPulse(j *openjob.Job, t *term, cause func() string) *Pulse {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if cause == nil {
		cause = func() string { return "" }
	}
	p := &Pulse{job: j, term: t, host: host, cause: cause, samples: []sample{{at: time.Now()}}}
	p.Does("begins")
	return p
}

// Does sets the leader's present activity.
func (p *Pulse) Does(what string) { p.does.Store(&what) }

// speaks writes the row regularly until ctx ends.
func (p *Pulse) speaks(ctx context.Context) {
	for backend.Wait(ctx, PulseEvery) == nil {
		p.speak(ctx, true)
	}
}

// speak writes the row once. A switch locks the log, so that the first write, for which the
// leader waits, does not read the log.
func (p *Pulse) speak(ctx context.Context, lag bool) {
	ctx, done := context.WithTimeout(ctx, noteWithin)
	defer done()
	_ = p.job.Source.Once(ctx, func(s *backend.Session) error { return p.note(ctx, s, lag) })
}

// note writes the row, unless a newer runner has written it.
func (p *Pulse) note(ctx context.Context, s *backend.Session, lag bool) error {
	if p.began == "" { // texts are stored as bytes, independent of the database's character set
		bytes := s.Database.BytesType()
		if err := s.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+RunnerTable+" (job VARCHAR(64) NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL DEFAULT 0,"+
			" host "+bytes+", pid BIGINT NOT NULL DEFAULT 0, doing "+bytes+", cause "+bytes+", began BIGINT NOT NULL DEFAULT 0, heard BIGINT NOT NULL DEFAULT 0,"+
			" copied BIGINT NOT NULL DEFAULT 0, followed BIGINT NOT NULL DEFAULT 0, caught BIGINT NOT NULL DEFAULT 0)"); err != nil {
			return err
		}
		if err := s.Ensure(ctx, RunnerTable, "job", p.job.Name); err != nil {
			return err
		}
	}
	now, err := s.Number(ctx, "SELECT "+s.Database.Clock())
	if err != nil {
		return err
	}
	var caught int64
	if lag {
		if caught, err = p.lag(ctx, s, now); err != nil {
			return err
		}
	}
	if p.began == "" {
		p.began = strconv.FormatInt(now, 10)
	}
	copied, followed := p.rates()
	return s.Exec(ctx, "UPDATE "+RunnerTable+" SET caught = CASE WHEN ? = 0 THEN caught ELSE ? END, epoch = ?, host = ?, pid = ?, doing = ?, cause = ?,"+
		" began = "+p.began+", heard = "+s.Database.Clock()+", copied = ?, followed = ? WHERE job = ? AND epoch <= ?",
		caught, caught, p.term.epoch, []byte(p.host), os.Getpid(), []byte(*p.does.Load()), []byte(p.cause()), copied, followed, p.job.Name, p.term.epoch)
}

// end stores that this runner leads no longer. The cause of a throttle ends with it.
func (p *Pulse) end() {
	ctx, done := context.WithTimeout(context.Background(), noteWithin)
	defer done()
	_ = p.job.Source.Once(ctx, func(s *backend.Session) error {
		return s.Exec(ctx, "UPDATE "+RunnerTable+" SET doing = NULL, cause = NULL, heard = "+s.Database.Clock()+" WHERE job = ? AND epoch = ?", p.job.Name, p.term.epoch)
	})
}

// rates are how many rows were copied per second, and how many changes applied, over the
// last minute, or since the runner leads if that is shorter.
func (p *Pulse) rates() (copied, followed int64) {
	is := sample{time.Now(), p.job.Copied.Load(), p.job.Followed.Load()}
	p.samples = append(p.samples, is)
	for len(p.samples) > 2 && is.at.Sub(p.samples[1].at) >= rateOver {
		p.samples = p.samples[1:]
	}
	was := p.samples[0]
	seconds := max(1, is.at.Sub(was.at).Seconds())
	return int64(float64(is.copied-was.copied) / seconds), int64(float64(is.followed-was.followed) / seconds)
}

// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
)

// Config configures a [Generator].
type Config struct {
	// Servers are the servers to draw from. At least one is required, and no two may issue the
	// same ids. Servers of the family that are not listed are not used.
	Servers []Server

	// Step is the number of ids to reserve at a time from each server. With 1 every id costs a
	// round trip, as at Flickr. Defaults to 0: the number follows the demand, as in package
	// segment, and begins with the step of a server that is a [keygen.Stepper].
	Step int64
}

func (c Config) validate() error {
	if len(c.Servers) == 0 {
		return errors.New("ticket: Config.Servers is empty; list a Table for each ticket server")
	}
	if c.Step < 0 {
		return fmt.Errorf("ticket: Config.Step is %d; it must be at least 1, or 0 to let it follow the demand", c.Step)
	}
	return validateServers(c.Servers)
}

func validateServers(servers []Server) error {
	known := make([]Numbering, 0, len(servers))
	for i, s := range servers {
		if nilness.Is(s) {
			return fmt.Errorf("ticket: Config.Servers[%d] is nil", i)
		}
		n := numberingOf(s)
		if err := n.validate(); err != nil {
			return fmt.Errorf("ticket: Config.Servers[%d]: %w", i, err)
		}
		for j, other := range known {
			if n.overlaps(other) {
				return fmt.Errorf("ticket: Config.Servers[%d] counts %v and [%d] counts %v: they would issue the same ids; give each its own offset", j, other, i, n)
			}
		}
		known = append(known, n)
	}
	return nil
}

func numberingOf(s Server) Numbering {
	offset, increment := s.Numbering()
	return Numbering{offset, increment}
}

const (
	startTimeout = 3 * time.Second  // bounds the wait of New for silent servers, once another has answered
	maxWait      = 10 * time.Second // bounds the wait of one call

	// pollInterval is how long a call waits for one server before it tries the others.
	pollInterval = 50 * time.Millisecond
)

// Generator draws ids from the ticket servers in turn. It is safe for concurrent use.
type Generator struct {
	members     []*member
	turn        atomic.Uint64
	canceledCtx context.Context //nolint:containedctx // always canceled: with it a server returns only ids in memory

	waits, failures atomic.Int64

	ctx     context.Context //nolint:containedctx // canceled by Close; only the openers use it
	cancel  context.CancelFunc
	openers sync.WaitGroup
	changed chan struct{}
}

var (
	_ keygen.Generator[int64] = (*Generator)(nil)
	_ keygen.Reporter         = (*Generator)(nil)
)

// New returns a generator once it has ids of every server, or once it has ids of some and the
// others have failed or not answered within three seconds; those join later. New returns an
// error when no server has ids after ten seconds, or when one counts otherwise than configured.
// The caller must close the generator.
func New(ctx context.Context, cfg Config) (*Generator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Generator{changed: make(chan struct{}, 1)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	var cancel context.CancelFunc
	g.canceledCtx, cancel = context.WithCancel(context.Background())
	cancel()
	g.join(cfg)
	if err := g.ready(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// join starts a goroutine per server that gets the server's first span.
func (g *Generator) join(cfg Config) {
	begin := time.Now()
	for i, s := range cfg.Servers {
		n := numberingOf(s)
		g.members = append(g.members, &member{
			server:    s,
			numbering: n,
			name:      fmt.Sprintf("server %d of %d (%v)", i+1, len(cfg.Servers), n),
			clock:     func() time.Duration { return time.Since(begin) },
			changed:   g.changed,
		})
	}
	for _, m := range g.members {
		g.openers.Go(func() { m.open(g.ctx, cfg.Step) })
	}
}

// ready waits until the generator can issue ids.
func (g *Generator) ready(ctx context.Context) error {
	start, end := time.NewTimer(startTimeout), time.NewTimer(maxWait)
	defer start.Stop()
	defer end.Stop()
	late := false
	for {
		if done, err := g.canStart(late); done || err != nil {
			return err
		}
		select {
		case <-g.changed:
		case <-start.C:
			late = true
		case <-end.C:
			return g.starved(fmt.Errorf("waited %v", maxWait))
		case <-ctx.Done():
			return g.starved(ctx.Err())
		}
	}
}

// canStart returns true when the generator can issue ids, or an error when it never will.
func (g *Generator) canStart(late bool) (bool, error) {
	opened, tried, broken := 0, 0, 0
	for _, m := range g.members {
		var wrong *NumberingError
		if err := m.failure(); errors.As(err, &wrong) {
			return false, fmt.Errorf("ticket: %w", err)
		}
		opened += count(m.segments.Load() != nil)
		tried += count(m.tried())
		broken += count(m.broken())
	}
	if broken == len(g.members) {
		return false, g.allBroken()
	}
	return opened > 0 && (late || tried == len(g.members)), nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// errNotMade is the error of a Generator that New did not make.
var errNotMade = fmt.Errorf("ticket: %w: it was not made by New", keygen.ErrUnknownGenerator)

// Next returns an id of the server whose turn it is, or of another one that has ids in memory.
// It waits when no server has.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	if g.ctx == nil {
		return 0, errNotMade
	}
	turn := g.turn.Add(1)
	if id := g.inMemory(turn); id != 0 {
		return id, nil
	}
	g.waits.Add(1)
	id, err := g.wait(ctx, turn)
	if err != nil {
		g.failures.Add(1)
	}
	return id, err
}

// inMemory returns an id without waiting, 0 when no server has one in memory. It asks servers
// that failed recently last.
func (g *Generator) inMemory(turn uint64) int64 {
	anyPassedOver := false
	for i := range g.members {
		m := g.member(turn, i)
		if m.passedOver() {
			anyPassedOver = true
		} else if id, err := m.next(g.canceledCtx); err == nil {
			return id
		}
	}
	for i := 0; anyPassedOver && i < len(g.members); i++ {
		m := g.member(turn, i)
		if m.used() {
			continue // a call would only start a reservation
		}
		if id, err := m.next(g.canceledCtx); err == nil {
			return id
		}
	}
	return 0
}

// member returns the i-th server in the order of a turn.
func (g *Generator) member(turn uint64, i int) *member {
	n := uint64(len(g.members))
	return g.members[(turn+uint64(i))%n]
}

// wait returns the first id that any server gets.
func (g *Generator) wait(ctx context.Context, turn uint64) (int64, error) {
	limited, cancel := context.WithTimeoutCause(ctx, maxWait, fmt.Errorf("waited %v", maxWait))
	defer cancel()
	for limited.Err() == nil {
		if g.ctx.Err() != nil {
			return 0, fmt.Errorf("ticket: %w", keygen.ErrClosed)
		}
		candidates := g.candidates(turn)
		if len(candidates) == 0 {
			return 0, g.allBroken()
		}
		for _, m := range candidates {
			if id := g.waitFor(limited, m, turn); id != 0 {
				return id, nil
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return 0, g.starved(err)
	}
	return 0, g.starved(context.Cause(limited))
}

// waitFor waits for one server for a moment, and then asks all of them. It returns 0 when there
// is no id yet.
func (g *Generator) waitFor(ctx context.Context, m *member, turn uint64) int64 {
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	if id, err := m.next(ctx); err == nil {
		return id
	}
	return g.inMemory(turn)
}

// candidates returns the servers that are worth waiting for: those that did not fail recently.
// If all did, it returns those whose error a retry may cure.
func (g *Generator) candidates(turn uint64) []*member {
	var up, down []*member
	for i := range g.members {
		switch m := g.member(turn, i); {
		case !m.passedOver():
			up = append(up, m)
		case !m.broken():
			down = append(down, m)
		}
	}
	if len(up) == 0 {
		return down
	}
	return up
}

func (g *Generator) failing() error {
	errs := make([]error, 0, len(g.members))
	for _, m := range g.members {
		errs = append(errs, m.failure())
	}
	return errors.Join(errs...)
}

func (g *Generator) allBroken() error {
	return fmt.Errorf("ticket: no server can give ids: %w", g.failing())
}

func (g *Generator) starved(why error) error {
	if err := g.failing(); err != nil {
		return fmt.Errorf("ticket: %w: %w; %w", keygen.ErrStarved, why, err)
	}
	return fmt.Errorf("ticket: %w: %w", keygen.ErrStarved, why)
}

// Stats returns a snapshot of all servers together. LastError names each server that is out of
// service, and is nil when none is.
func (g *Generator) Stats() keygen.Stats {
	if g.ctx == nil {
		return keygen.Stats{LastError: errNotMade}
	}
	sum := keygen.Stats{Waits: g.waits.Load(), Failures: g.failures.Load(), LastError: g.failing()}
	for _, m := range g.members {
		segments := m.segments.Load()
		if segments == nil {
			continue
		}
		s := segments.Stats()
		sum.Issued += s.Issued
		sum.Rate += s.Rate
		sum.Remaining += s.Remaining
		sum.Reservations += s.Reservations
		sum.FailedReserves += s.FailedReserves
		sum.LastReservation = max(sum.LastReservation, s.LastReservation)
	}
	return sum
}

// Close stops the generator and waits for the reservations under way. Calls that wait, and
// later calls, return [keygen.ErrClosed]. Close may be called twice.
func (g *Generator) Close() error {
	if g.ctx == nil {
		return nil
	}
	g.cancel()
	g.openers.Wait()
	var err error
	for _, m := range g.members {
		if segments := m.segments.Load(); segments != nil {
			err = errors.Join(err, segments.Close())
		}
	}
	return err
}

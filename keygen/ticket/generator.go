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
	// Servers are the servers to go round, no two of which may count the same ids.
	// At least one is required; of the others of the family nothing is asked.
	Servers []Server

	// Step is how many ids to reserve at a time from each server. With 1 every id
	// is asked for by itself, as Flickr does. Defaults to 0, which means that the
	// number follows the demand, as in package segment, beginning with what a server
	// says that is a [keygen.Stepper].
	Step int64
}

func (c Config) validate() error {
	if len(c.Servers) == 0 {
		return errors.New("ticket: Config.Servers is empty; give a Table for each ticket server")
	}
	if c.Step < 0 {
		return fmt.Errorf("ticket: Config.Step is %d; the smallest is 1, and 0 lets it follow the demand", c.Step)
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
			if n.meets(other) {
				return fmt.Errorf("ticket: Config.Servers[%d] counts %v and [%d] counts %v: they would issue the same ids; give each an offset of its own", j, other, i, n)
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
	startLimit = 3 * time.Second  // for servers that do not answer, when others do
	patience   = 10 * time.Second // of a call whose context allows more

	// slice is how long a call waits for one server before it looks at the others.
	slice = 50 * time.Millisecond
)

// Generator goes round the ticket servers. It is safe for concurrent use.
type Generator struct {
	members []*member
	turn    atomic.Uint64
	hurry   context.Context //nolint:containedctx // has ended: with it a server gives what is in memory

	waits, failures atomic.Int64

	ctx     context.Context //nolint:containedctx // ends with Close; only the openers use it
	cancel  context.CancelFunc
	openers sync.WaitGroup
	news    chan struct{}
}

var (
	_ keygen.Generator[int64] = (*Generator)(nil)
	_ keygen.Reporter         = (*Generator)(nil)
)

// New returns a generator once it has ids of every server, or of some and the
// others have failed or were silent for three seconds: they join in later. When
// none has ids after ten seconds, or one counts otherwise than configured, that
// is an error. The generator has to be closed.
func New(ctx context.Context, cfg Config) (*Generator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Generator{news: make(chan struct{}, 1)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	var cancel context.CancelFunc
	g.hurry, cancel = context.WithCancel(context.Background())
	cancel()
	g.join(cfg)
	if err := g.ready(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// join starts to get the first span of each server.
func (g *Generator) join(cfg Config) {
	begin := time.Now()
	for i, s := range cfg.Servers {
		n := numberingOf(s)
		g.members = append(g.members, &member{
			server:    s,
			numbering: n,
			name:      fmt.Sprintf("server %d of %d (%v)", i+1, len(cfg.Servers), n),
			clock:     func() time.Duration { return time.Since(begin) },
			news:      g.news,
		})
	}
	for _, m := range g.members {
		g.openers.Go(func() { m.open(g.ctx, cfg.Step) })
	}
}

// ready waits until the generator can begin.
func (g *Generator) ready(ctx context.Context) error {
	start, end := time.NewTimer(startLimit), time.NewTimer(patience)
	defer start.Stop()
	defer end.Stop()
	late := false
	for {
		if done, err := g.begun(late); done || err != nil {
			return err
		}
		select {
		case <-g.news:
		case <-start.C:
			late = true
		case <-end.C:
			return g.starved(fmt.Errorf("waited %v", patience))
		case <-ctx.Done():
			return g.starved(ctx.Err())
		}
	}
}

// begun tells whether the generator can begin, or why it never will.
func (g *Generator) begun(late bool) (bool, error) {
	opened, tried, broken := 0, 0, 0
	for _, m := range g.members {
		var wrong *NumberingError
		if err := m.failure(); errors.As(err, &wrong) {
			return false, fmt.Errorf("ticket: %w", err)
		}
		opened += count(m.gen.Load() != nil)
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

// errNotMade is what a Generator says that New has not made.
var errNotMade = fmt.Errorf("ticket: %w: it was not made by New", keygen.ErrUnknownGenerator)

// Next returns an id of the server whose turn it is, or of another one that has
// ids in memory. It waits when there is none.
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

// inMemory returns an id that needs no waiting, 0 when there is none. Servers
// that failed lately come last.
func (g *Generator) inMemory(turn uint64) int64 {
	rested := false
	for i := range g.members {
		m := g.member(turn, i)
		if m.resting() {
			rested = true
		} else if id, err := m.next(g.hurry); err == nil {
			return id
		}
	}
	for i := 0; rested && i < len(g.members); i++ {
		m := g.member(turn, i)
		if m.used() {
			continue // asking would only make it try again
		}
		if id, err := m.next(g.hurry); err == nil {
			return id
		}
	}
	return 0
}

// member returns the i-th in the order of a turn.
func (g *Generator) member(turn uint64, i int) *member {
	n := uint64(len(g.members))
	return g.members[(turn+uint64(i))%n]
}

// wait returns the first id that some server gets.
func (g *Generator) wait(ctx context.Context, turn uint64) (int64, error) {
	limited, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("waited %v", patience))
	defer cancel()
	for limited.Err() == nil {
		if g.ctx.Err() != nil {
			return 0, fmt.Errorf("ticket: %w", keygen.ErrClosed)
		}
		hopeful := g.hopeful(turn)
		if len(hopeful) == 0 {
			return 0, g.allBroken()
		}
		for _, m := range hopeful {
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

// waitFor waits for one server, for a moment, and then looks at all of them. It
// returns 0 when there is no id yet.
func (g *Generator) waitFor(ctx context.Context, m *member, turn uint64) int64 {
	ctx, cancel := context.WithTimeout(ctx, slice)
	defer cancel()
	if id, err := m.next(ctx); err == nil {
		return id
	}
	return g.inMemory(turn)
}

// hopeful returns the servers worth waiting for: those that did not fail lately
// or, when all did, those whose failure may pass.
func (g *Generator) hopeful(turn uint64) []*member {
	var up, down []*member
	for i := range g.members {
		switch m := g.member(turn, i); {
		case !m.resting():
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

// Stats returns a snapshot, of all servers together. LastError names each server
// that is out of service, and is nil when none is.
func (g *Generator) Stats() keygen.Stats {
	if g.ctx == nil {
		return keygen.Stats{LastError: errNotMade}
	}
	sum := keygen.Stats{Waits: g.waits.Load(), Failures: g.failures.Load(), LastError: g.failing()}
	for _, m := range g.members {
		gen := m.gen.Load()
		if gen == nil {
			continue
		}
		s := gen.Stats()
		sum.Issued += s.Issued
		sum.Rate += s.Rate
		sum.Remaining += s.Remaining
		sum.Reservations += s.Reservations
		sum.FailedReserves += s.FailedReserves
		sum.LastReservation = max(sum.LastReservation, s.LastReservation)
	}
	return sum
}

// Close stops the generator and waits for the reservations under way. Calls that
// wait, and later ones, return [keygen.ErrClosed]. It may be called twice.
func (g *Generator) Close() error {
	if g.ctx == nil {
		return nil
	}
	g.cancel()
	g.openers.Wait()
	var err error
	for _, m := range g.members {
		if gen := m.gen.Load(); gen != nil {
			err = errors.Join(err, gen.Close())
		}
	}
	return err
}

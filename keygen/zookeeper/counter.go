// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/shardid/shardid/keygen"
)

// CounterConfig configures a [Counter].
type CounterConfig struct {
	// Path is the counter's znode: "/ids/order", say. It is required.
	Path string

	// Block is the number of keys per number of ZooKeeper: one write reserves so many. It
	// cannot be changed later, because a counter that was seeded with another one is refused.
	// Defaults to 1.
	Block int64

	// Floor is the lowest key that may be issued: a counter below it has lost its data.
	// Defaults to 0: any.
	Floor int64

	// ACL is the ACL of the znodes that Seed creates. Defaults to permission for everybody.
	ACL []ACL
}

func (c CounterConfig) withDefaults() CounterConfig {
	if c.Block == 0 {
		c.Block = 1
	}
	return c
}

func (c CounterConfig) validate() error {
	if err := checkPath(c.Path); err != nil {
		return fmt.Errorf("zookeeper: CounterConfig.Path is %w", err)
	}
	switch {
	case c.Block < 1:
		return fmt.Errorf("zookeeper: CounterConfig.Block is %d; it is the number of keys per write, at least 1", c.Block)
	case c.Floor < 0:
		return fmt.Errorf("zookeeper: CounterConfig.Floor is %d; it is the lowest key that may be issued, 0 for any", c.Floor)
	}
	return nil
}

// Counter reserves keys from numbers that ZooKeeper assigns. It is a source for package
// segment, is safe for concurrent use, and needs no Close.
type Counter struct {
	cfg     CounterConfig
	client  *client
	numbers numbers

	plan    atomic.Pointer[plan] // nil before it was read
	highest atomic.Int64         // the highest key that this process knows of
}

var _ keygen.Source = (*Counter)(nil)

// NewVersions returns a counter of the versions of a znode, which rise by one with each write.
// A version has 32 bits: after 2,147,483,647 of them the counter returns [keygen.ErrExhausted],
// before it would wrap round. NewVersions does not call ZooKeeper.
func NewVersions[S StatLike, A ACLLike](conn Conn[S, A], cfg CounterConfig) (*Counter, error) {
	return newCounter(conn, cfg, versions{})
}

// NewZxids returns a counter of the transaction ids of writes. They have 64 bits, with the
// leader's epoch in the upper half, and rise with every write of any client. With a Block of 1
// keys are large and far apart. With a larger Block the upper half overflows sooner: with 1000
// after two million leaders. NewZxids does not call ZooKeeper.
func NewZxids[S StatLike, A ACLLike](conn Conn[S, A], cfg CounterConfig) (*Counter, error) {
	return newCounter(conn, cfg, zxids{})
}

// NewSequence returns a counter of sequential znodes, which it creates and deletes again: two
// writes per number, of 32 bits as in [NewVersions]. NewSequence does not call ZooKeeper.
func NewSequence[S StatLike, A ACLLike](conn Conn[S, A], cfg CounterConfig) (*Counter, error) {
	return newCounter(conn, cfg, sequence{})
}

func newCounter[S StatLike, A ACLLike](conn Conn[S, A], cfg CounterConfig, n numbers) (*Counter, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := connect(conn, cfg.ACL)
	if err != nil {
		return nil, err
	}
	return &Counter{cfg: cfg, client: client, numbers: n}, nil
}

// plan is the data of a counter's znode: how the numbers of its only child become keys. The
// child gets a new name whenever the counter is created again, so a process with the old plan
// finds no child.
type plan struct {
	Numbers string `json:"numbers"`
	Block   int64  `json:"block"`
	Above   int64  `json:"above"` // the key before the first one
	Child   string `json:"child"`
}

// Seed creates the counter. Its first key is first or, with [NewZxids], a higher one. An
// existing counter is unchanged, so seeding twice is harmless. To raise a counter, end all
// processes that have keys of it in memory, delete its znode and the one below it, and seed it
// again.
func (c *Counter) Seed(ctx context.Context, first int64) error {
	if err := c.seed(ctx, max(first, c.cfg.Floor, 1)); err != nil {
		return fmt.Errorf("zookeeper: seed %s: %w", c.cfg.Path, err)
	}
	return nil
}

func (c *Counter) seed(ctx context.Context, first int64) error {
	if err := c.client.createPath(ctx, c.cfg.Path); err != nil {
		return err
	}
	at, err := c.client.find(ctx, c.cfg.Path)
	switch {
	case err != nil:
		return err
	case at == nil:
		return errors.New("another process has just deleted it")
	case len(at.data) > 0:
		_, err := c.parse(at.data)
		return err
	}
	p := plan{Numbers: c.numbers.name(), Block: c.cfg.Block, Above: first - 1, Child: rand.Text()}
	if _, err := c.client.add(ctx, c.child(p), nil, 0); err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic("bug: " + err.Error())
	}
	won, err := c.client.swap(ctx, c.cfg.Path, text, at.stat.Version)
	if won || err != nil {
		return err
	}
	return c.client.removeIfExists(ctx, c.child(p), anyVersion) // another process seeded it
}

func (c *Counter) child(p plan) string { return c.cfg.Path + "/" + p.Child }

// parse decodes a plan, and refuses one that does not match the configuration.
func (c *Counter) parse(text []byte) (plan, error) {
	var p plan
	if err := json.Unmarshal(text, &p); err != nil || p.Child == "" || p.Block < 1 {
		return p, fmt.Errorf("%w: its data are not a counter's; choose another Path", keygen.ErrUnknownTag)
	}
	if p.Numbers != c.numbers.name() || p.Block != c.cfg.Block {
		return p, fmt.Errorf("%w: it was seeded to count %s in blocks of %d, not %s in blocks of %d; keys would come twice",
			keygen.ErrUnknownTag, p.Numbers, p.Block, c.numbers.name(), c.cfg.Block)
	}
	return p, nil
}

// Reserve reserves one block, whatever n is.
func (c *Counter) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if n < 1 {
		return keygen.Span{}, fmt.Errorf("zookeeper: cannot reserve %d keys", n)
	}
	span, err := c.reserve(ctx)
	if err != nil {
		return keygen.Span{}, fmt.Errorf("zookeeper: %s: %w", c.cfg.Path, err)
	}
	raise(&c.highest, span.Last())
	return span, nil
}

func (c *Counter) reserve(ctx context.Context) (keygen.Span, error) {
	known := c.highest.Load()
	for range 2 {
		p, err := c.load(ctx)
		if err != nil {
			return keygen.Span{}, err
		}
		number, err := c.numbers.next(ctx, c.client, c.child(*p))
		if err == nil {
			return c.span(*p, number, known)
		}
		c.plan.CompareAndSwap(p, nil) // it may have been seeded again
		if stat, lookErr := c.client.exists(ctx, c.child(*p)); lookErr != nil || stat != nil {
			return keygen.Span{}, err
		}
	}
	return keygen.Span{}, fmt.Errorf("%w: the znode below it is missing; delete the counter and Seed it above the keys in use", keygen.ErrRegressed)
}

// load returns the plan, from ZooKeeper when it is not known yet.
func (c *Counter) load(ctx context.Context) (*plan, error) {
	if p := c.plan.Load(); p != nil {
		return p, nil
	}
	if err := c.client.sync(ctx, c.cfg.Path); err != nil {
		return nil, err
	}
	at, err := c.client.find(ctx, c.cfg.Path)
	switch known := c.highest.Load(); {
	case err != nil:
		return nil, err
	case (at == nil || len(at.data) == 0) && known > 0:
		return nil, fmt.Errorf("%w: ZooKeeper has lost the counter, which had reached %d; Seed it above the keys in use", keygen.ErrRegressed, known)
	case at == nil || len(at.data) == 0:
		return nil, fmt.Errorf("%w: ZooKeeper has no such counter; if it is new, Seed it once; otherwise ZooKeeper has lost it: Seed it above the keys in use", keygen.ErrUnknownTag)
	}
	p, err := c.parse(at.data)
	if err != nil {
		return nil, err
	}
	if err := c.checkWrap(ctx, p); err != nil {
		return nil, err
	}
	c.plan.Store(&p)
	return &p, nil
}

// checkWrap refuses a counter whose version has wrapped round, before further writes bring it
// back to numbers that were used.
func (c *Counter) checkWrap(ctx context.Context, p plan) error {
	stat, err := c.client.exists(ctx, c.child(p))
	if err == nil && stat != nil && stat.Version < 0 {
		err = exhausted(int64(stat.Version))
	}
	return err
}

func exhausted(number int64) error {
	return fmt.Errorf("%w: ZooKeeper's number has wrapped round to %d; delete the counter and Seed it above the keys in use", keygen.ErrExhausted, number)
}

// span returns the keys of a number. Known is the highest key known before the number was
// requested.
func (c *Counter) span(p plan, number, known int64) (keygen.Span, error) {
	if number < 1 {
		c.plan.Store(nil)
		return keygen.Span{}, exhausted(number)
	}
	hi, last := bits.Mul64(uint64(number), uint64(p.Block))
	if hi > 0 || last > uint64(math.MaxInt64-p.Above) {
		return keygen.Span{}, fmt.Errorf("%w: number %d in blocks of %d is beyond 63 bits", keygen.ErrExhausted, number, p.Block)
	}
	s := keygen.Span{First: p.Above + int64(last) - p.Block + 1, Count: p.Block, Step: 1}
	if least := max(known+1, c.cfg.Floor); s.First < least {
		return keygen.Span{}, fmt.Errorf("%w: the counter gave %d, but it had reached %d, or Floor demands more; delete it and Seed it above the keys in use", keygen.ErrRegressed, s.First, least-1)
	}
	return s, nil
}

// raise sets a to n unless a is higher already.
func raise(a *atomic.Int64, n int64) {
	for old := a.Load(); n > old && !a.CompareAndSwap(old, n); {
		old = a.Load()
	}
}

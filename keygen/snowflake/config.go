package snowflake

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
)

// Config configures a [Generator].
type Config struct {
	// Layout says how ids are made up. The zero Layout means [keygen.Twitter].
	Layout keygen.Layout

	// Worker assigns the worker id. It is required: two processes that forget
	// it would issue the same ids.
	Worker keygen.Assigner

	// Sequence says where a new tick's sequence starts. Defaults to Carry.
	Sequence Sequence

	// Borrow is how far the time in ids may run ahead of the clock while more
	// ids are wanted than the layout has for the time that passes. Zero means one
	// unit of the layout, which the sequence needs to carry over. More than that
	// needs a worker id whose lease writes down how far it went (a
	// [keygen.Window]), as the next holder could not know otherwise.
	Borrow time.Duration

	// Rollback is what to try, in this order, when Now reads behind the last id by
	// more than two units and Borrow; the system's clock is dealt with as the package
	// comment says. When none helps, the call returns [keygen.ErrClockRollback], or
	// goes on with ids ahead of the clock up to the ceiling where the worker id is a
	// [keygen.Window]. An empty list tries nothing. Nil means Wait(time.Second).
	Rollback []Policy

	// Coarse lets one goroutine of the generator keep the tick while ids are drawn, so
	// that an id costs an addition and a comparison, and no reading of the clock. The
	// goroutine sleeps when no id was drawn for ten ticks (of a millisecond at least), and
	// the first id after that reads the clock. On a machine that lets the goroutine wait
	// for its turn, the time in ids lags by as much; they are as unique, and rise as much,
	// as they are without. It has no effect on Fill, and is not for layouts with gene bits.
	Coarse bool

	// Now replaces the clock, for tests or for a clock of one's own; it may go
	// backwards. It must be safe for concurrent use. Defaults to the system's
	// clock, read as the package comment says, which does not go backwards while
	// a process runs.
	Now func() time.Time

	wall   func() time.Time    // the wall clock, of tests
	random func(n int64) int64 // a number from 0 to n-1; rand.Int64N but in tests
	frozen <-chan struct{}     // of tests: the keeper of ticks stands still until it can be received from
}

// Sequence is a way to start the sequence of a new tick.
type Sequence int

const (
	// Carry goes on with the sequence where the last tick left it, and starts at
	// random. Where the sequence is the layout's lowest field, ids are then even
	// modulo any power of two up to the number of sequences in a tick, at any rate.
	Carry Sequence = iota
	// FromZero starts at 0, as Twitter's, UidGenerator's and bwmarrin's do. At
	// low rates nearly all ids are multiples of the sequence's range: they all
	// fall on one shard when the shard is taken from the low bits.
	FromZero
	// Scatter starts anywhere in the first tenth of the range, as Leaf does with
	// the first hundred of 4096. Ids are uneven, less than with FromZero.
	Scatter
)

func (c Config) withDefaults() Config {
	if c.Layout.Fields == nil && c.Layout.Unit == 0 && c.Layout.Epoch.IsZero() {
		c.Layout = keygen.Twitter()
	}
	c.Layout.Fields = slices.Clone(c.Layout.Fields) // the caller may change his
	if c.Rollback == nil {
		c.Rollback = []Policy{Wait(time.Second)}
	}
	if c.random == nil {
		c.random = rand.Int64N
	}
	return c
}

// maxBucketBits bounds the memory that the counters of a layout with gene bits
// take: 16 bytes for each bucket.
const maxBucketBits = 20

func (c Config) validate() error {
	if err := c.Layout.Validate(); err != nil {
		return fmt.Errorf("snowflake: Config.Layout: %w", err)
	}
	if c.Layout.WorkerBits() == 0 {
		return fmt.Errorf("snowflake: Config.Layout: %w: it has no worker field", keygen.ErrLayout)
	}
	if b := c.Layout.Bits(keygen.Bucket); b > maxBucketBits {
		return fmt.Errorf("snowflake: Config.Layout: %w: a bucket field of %d bits; the widest is %d", keygen.ErrLayout, b, maxBucketBits)
	}
	if nilness.Is(c.Worker) {
		return errors.New("snowflake: Config.Worker is nil; give workerid.Static(n), n being different in every process, or a store's WorkerNode")
	}
	for i, p := range c.Rollback {
		if s, ok := p.(switchWorker); p == nil || ok && nilness.Is(s.to) {
			return fmt.Errorf("snowflake: Config.Rollback[%d] is nil, or switches to an assigner that is nil; give the assigner of the spare worker ids", i)
		}
	}
	if c.Coarse && c.Layout.Bits(keygen.Bucket) > 0 {
		return fmt.Errorf("snowflake: Config.Coarse: %w: it has gene bits, whose counters are one for each bucket; leave Coarse out", keygen.ErrLayout)
	}
	if err := c.validateSpares(); err != nil {
		return err
	}
	if c.Sequence < Carry || c.Sequence > Scatter {
		return fmt.Errorf("snowflake: Config.Sequence is %d; it is Carry, FromZero or Scatter", c.Sequence)
	}
	if most := c.Layout.Unit << (c.Layout.Bits(keygen.Time) / 2); c.Borrow < 0 || c.Borrow > most {
		return fmt.Errorf("snowflake: Config.Borrow is %v; it is from 0 to %v for this layout", c.Borrow, most)
	}
	return nil
}

// validateSpares refuses leased worker ids of two namespaces: those of one are held
// by other processes in the other.
func (c Config) validateSpares() error {
	type named interface{ Namespace() string }
	own, leased := c.Worker.(named)
	for _, p := range c.Rollback {
		to, _ := p.(switchWorker)
		if spare, ok := to.to.(named); ok && leased && spare.Namespace() != own.Namespace() {
			return fmt.Errorf("snowflake: Config.Rollback switches to a worker id leased in namespace %q, and Config.Worker leases in %q, where another process can hold the same one; lease both in one namespace", spare.Namespace(), own.Namespace())
		}
	}
	return nil
}

// aheadTicks is Borrow in ticks. It is at least 1, because a tick that starts in
// the middle of a sequence reaches its end before it has issued as many ids as
// it could.
func (c Config) aheadTicks() int64 {
	return max(int64(c.Borrow/c.Layout.Unit), 1)
}

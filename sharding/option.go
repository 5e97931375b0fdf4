// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
)

// Option is something [New] makes a router of: a [Table], a [Migration], or one of
// [Tables], [Broadcast], [FanOut] and [Transactions].
type Option interface {
	apply(s *settings)
}

// settings collects options. What is wrong with them is told by validate.
type settings struct {
	tables     []Table
	migrations []Migration
	broadcast  []string
	limits     Limits
	mode       TxMode
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

func (t Table) apply(s *settings) { s.tables = append(s.tables, t) }

// Tables is several tables as one option.
func Tables(list ...Table) Option {
	list = slices.Clone(list)
	return option(func(s *settings) { s.tables = append(s.tables, list...) })
}

// Broadcast names tables that have the same rows in every database (regions,
// currencies; dictionary tables, 广播表), so that they can be joined with any
// shard. Reads go to one database, writes to all of them.
func Broadcast(names ...string) Option {
	names = slices.Clone(names)
	return option(func(s *settings) { s.broadcast = append(s.broadcast, names...) })
}

// Limits bound what one statement may do that needs several shards.
type Limits struct {
	// MaxShards is how many targets one statement may go to, from 1. A statement
	// for more of them is refused with [ErrTooManyShards]. Defaults to 32.
	MaxShards int
	// Concurrency is how many of them work at the same time, from 1. Defaults
	// to 8.
	Concurrency int
}

// FanOut sets how many targets one statement may go to, and how many of them
// work at the same time; both are at least 1. Without it a statement may go to
// 32 targets, 8 at a time. It is about statements that several shards may
// answer; whether a statement without a key may go to all is [Table].OnMissing.
func FanOut(maxShards, concurrency int) Option {
	return option(func(s *settings) { s.limits = Limits{maxShards, concurrency} })
}

// TxMode says what a transaction may span.
type TxMode int

const (
	// SingleShard binds a transaction to the database of its first statement;
	// one for another database is refused with [ErrCrossDatabase] before it is
	// sent.
	SingleShard TxMode = iota
	// BestEffort lets a transaction span databases. Each commits on its own, one
	// after the other; when one fails, those before it stay committed, and the
	// error is a [PartialCommitError]. It is no two-phase commit.
	BestEffort
	// Atomic lets a transaction span databases, and commits on all of them or on none,
	// whatever is killed meanwhile: by XA on MySQL 8.0 and MariaDB 10.5 or newer, by PREPARE
	// TRANSACTION on PostgreSQL. A transaction on one database costs what it always did.
	// Every database needs the table of package sharding/twophase, and a resolver of it has
	// to run somewhere. While it commits, others may see it on one database and not yet
	// on another. A second database is refused with [ErrCrossDatabase] where a server
	// cannot prepare.
	Atomic
)

// Transactions sets what a transaction may span: [SingleShard], as without this
// option, [BestEffort] or [Atomic].
func Transactions(mode TxMode) Option {
	return option(func(s *settings) { s.mode = mode })
}

func collect(options []Option) settings {
	s := settings{limits: Limits{32, 8}}
	for _, o := range options {
		if o != nil {
			o.apply(&s)
		}
	}
	return s
}

// validate returns what is wrong with the options that are no tables.
func (s settings) validate() error {
	var errs []error
	if len(s.tables) == 0 {
		errs = append(errs, errors.New("no tables"))
	}
	for _, name := range s.broadcast {
		if err := dialect.CheckIdent(name); err != nil {
			errs = append(errs, fmt.Errorf("Broadcast: table %w", err))
		}
	}
	if s.limits.MaxShards < 1 || s.limits.Concurrency < 1 {
		errs = append(errs, fmt.Errorf("FanOut(%d, %d): both must be at least 1", s.limits.MaxShards, s.limits.Concurrency))
	}
	if s.mode < SingleShard || s.mode > Atomic {
		errs = append(errs, fmt.Errorf("Transactions(%d): the mode must be SingleShard, BestEffort or Atomic", s.mode))
	}
	if len(s.migrations) > 1 {
		errs = append(errs, errors.New("Migration: is given twice; a router has one source at a time"))
	}
	return errors.Join(errs...)
}

// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
)

// Option is an argument of [New]: a [Table], a [Migration], or the result of [Tables], [Broadcast],
// [FanOut] or [Transactions].
type Option interface {
	apply(s *settings)
}

// settings collects options. validate checks them.
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

// Tables returns several tables as one option.
func Tables(list ...Table) Option {
	list = slices.Clone(list)
	return option(func(s *settings) { s.tables = append(s.tables, list...) })
}

// Broadcast names tables that have the same rows in every database (regions, currencies; dictionary
// tables, 广播表), so that they can be joined with any shard. Reads go to one database, writes to all
// of them.
func Broadcast(names ...string) Option {
	names = slices.Clone(names)
	return option(func(s *settings) { s.broadcast = append(s.broadcast, names...) })
}

// Limits bound a statement that needs several shards.
type Limits struct {
	// MaxShards is the largest number of targets of one statement, at least 1. A statement for more
	// is refused with [ErrTooManyShards]. Defaults to 32.
	MaxShards int
	// Concurrency is the largest number of targets that execute at the same time, at least 1.
	// Defaults to 8.
	Concurrency int
}

// FanOut sets the largest number of targets of one statement, and how many of them execute at the
// same time; both are at least 1. Without it a statement may go to 32 targets, 8 at a time. It
// limits statements that several shards may execute; [Table].OnMissing decides whether a statement
// without a key may go to all. A search of all shards, by an id alone, counts all targets of the
// table, although each database gets one query. A query of groups, or of at most 1000 rows of each target, takes at most
// concurrency connections of a pool.
func FanOut(maxShards, concurrency int) Option {
	return option(func(s *settings) { s.limits = Limits{maxShards, concurrency} })
}

// TxMode says which databases a transaction may span.
type TxMode int

const (
	// SingleShard binds a transaction to the database of its first statement. A statement for
	// another database is refused with [ErrCrossDatabase] before it is sent.
	SingleShard TxMode = iota
	// BestEffort allows a transaction to span databases. They commit separately, one after another.
	// If one fails, those before it stay committed, and the error is a [PartialCommitError]. It is
	// no two-phase commit.
	BestEffort
	// Atomic allows a transaction to span databases, and commits on all of them or on none, even if
	// processes or servers are killed meanwhile: by XA on MySQL 8.0 and MariaDB 10.5 or newer, by
	// PREPARE TRANSACTION on PostgreSQL. A transaction on one database costs nothing more. Every
	// database needs the table of package sharding/twophase, and one process must run its resolver.
	// During the commit, other transactions may see the changes on one database and not yet on
	// another. If a server cannot prepare transactions, a second database is refused with
	// [ErrCrossDatabase].
	Atomic
)

// Transactions sets which databases a transaction may span: [SingleShard], which is the default,
// [BestEffort] or [Atomic].
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

// validate returns the errors of all options except tables.
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
		errs = append(errs, errors.New("Migration: occurs twice; a router has one source at a time"))
	}
	return errors.Join(errs...)
}

// SPDX-License-Identifier: Apache-2.0

package twophase

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/xa"
)

// Table is the name of the table with the decisions of a database.
const Table = xa.Table

// DDL returns the statement that creates the table. The name is "mysql" or "postgres"; "mariadb" means "mysql".
// [Create] also gives the database its identity.
func DDL(name string) (string, error) {
	d, err := dialect.Named(name)
	if err != nil || d.Name() == "sqlite" {
		return "", fmt.Errorf("twophase: no two-phase commit on %q; pass mysql or postgres", name)
	}
	return xa.DDL(d) + ";\n", nil
}

// Create creates the table on every database of the router, and on home, if that is not nil. An
// existing table is not changed. Create fails if a server cannot prepare transactions.
func Create(ctx context.Context, r *sharding.Router, home *sql.DB) error {
	for _, db := range databases(r, home) {
		server, err := dialect.Identify(ctx, db.pool)
		if err == nil {
			err = xa.Able(ctx, db.pool, server)
		}
		if err == nil {
			err = xa.Create(ctx, db.pool, server)
		}
		if err != nil {
			return fmt.Errorf("twophase: %s: %w", db.name, err)
		}
	}
	return nil
}

type database struct {
	name string
	pool *sql.DB
}

// databases returns the router's databases, and the home database if it is not one of them.
func databases(r *sharding.Router, home *sql.DB) (all []database) {
	for _, name := range r.Databases() {
		all = append(all, database{name, r.DB(name)})
	}
	if home != nil && !slices.ContainsFunc(all, func(d database) bool { return d.pool == home }) {
		all = append(all, database{"home", home})
	}
	return all
}

// Config configures a [Resolver].
type Config struct {
	// Router has the databases of the shards. It is required.
	Router *sharding.Router
	// Home is the home database of shardsql.Config, if it is not one of the router's.
	Home *sql.DB
	// After is how long a branch must have been prepared before a resolver ends it, because its
	// program may be about to end it. Defaults to 10 seconds.
	After time.Duration
	// Every is the interval of [Resolver.Run]. Defaults to a minute.
	Every time.Duration
}

// Report is the result of one or several runs over the databases.
type Report struct {
	Committed  int // branches that were committed
	RolledBack int // branches that were rolled back
	InDoubt    int // branches that were left: their program may still be running, or the deciding database, which answered before, does not answer
	Forgotten  int // decisions of 30 days ago that no branch needed any more, and that were deleted
}

// Resolver ends transactions whose programs were killed. It is safe for concurrent use, and needs
// no Close.
type Resolver struct {
	cfg       Config
	databases []database

	mu    sync.Mutex
	total Report
	last  error
	known map[*sql.DB]string // identities of databases that have answered once
}

// New returns a resolver, or an error that names the invalid setting.
func New(c Config) (*Resolver, error) {
	switch {
	case c.Router == nil:
		return nil, errors.New("twophase: Config.Router is nil")
	case c.After < 0 || c.Every < 0:
		return nil, fmt.Errorf("twophase: Config.After is %v and Every is %v; neither may be negative", c.After, c.Every)
	}
	c.After, c.Every = cmp.Or(c.After, 10*time.Second), cmp.Or(c.Every, time.Minute)
	return &Resolver{cfg: c, databases: databases(c.Router, c.Home), known: map[*sql.DB]string{}}, nil
}

// Run calls Resolve at once and then at the interval Every, until ctx ends. It retries after
// errors.
func (r *Resolver) Run(ctx context.Context) {
	again := time.NewTicker(r.cfg.Every)
	defer again.Stop()
	for {
		_, _ = r.Resolve(ctx) // Total returns the error
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// Total returns the sums of all runs, with the branches that the last run has left in doubt, and
// the error of the last run.
func (r *Resolver) Total() (Report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total, r.last
}

// Resolve ends branches that have been prepared for longer than Config.After. If it finds any, it
// waits that long first. Its error joins those of all databases that could not be queried, or did not
// answer within 10 seconds; branches on the other databases are ended nevertheless.
func (r *Resolver) Resolve(ctx context.Context) (Report, error) {
	report, err := r.resolve(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Committed += report.Committed
	r.total.RolledBack += report.RolledBack
	r.total.Forgotten += report.Forgotten
	r.total.InDoubt, r.last = report.InDoubt, err
	return report, err
}

// place is a database that has answered.
type place struct {
	database

	server   dialect.Server
	identity string
}

// found is a branch, and a database of its server.
type found struct {
	id xa.ID
	at *place
}

// look is one run over all databases.
type look struct {
	report   Report
	places   []*place
	deciders map[string]*place // by their identities
	away     map[string]bool   // identities of databases that do not answer
	silent   map[*place]bool   // databases that have answered before, and do not any more
	errs     []error
}

func (r *Resolver) resolve(ctx context.Context) (Report, error) {
	l := &look{deciders: map[string]*place{}, away: map[string]bool{}, silent: map[*place]bool{}}
	for _, db := range r.databases {
		p, err := open(ctx, db)
		r.remember(l, db, p, err)
	}
	before := l.list(ctx)
	for id := range before {
		if l.away[id.Decider] {
			l.report.InDoubt++
			delete(before, id)
		}
	}
	if len(before) > 0 {
		timer := time.NewTimer(r.cfg.After)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return l.report, errors.Join(append(l.errs, ctx.Err())...)
		case <-timer.C:
		}
		now := l.list(ctx)
		for _, id := range slices.SortedFunc(maps.Keys(before), compare) {
			if f, still := now[id]; still {
				l.settle(ctx, f)
			}
		}
	}
	if len(l.errs) == 0 && len(l.places) == len(r.databases) {
		l.forget(ctx)
	}
	return l.report, errors.Join(l.errs...)
}

// remember records a database that has answered, or that has not.
func (r *Resolver) remember(l *look, db database, p *place, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		l.places, l.deciders[p.identity] = append(l.places, p), p
		r.known[db.pool] = p.identity
		return
	}
	l.errs = append(l.errs, fmt.Errorf("twophase: %s: %w", db.name, err))
	if identity, known := r.known[db.pool]; known {
		l.away[identity] = true
	}
}

func compare(a, b xa.ID) int {
	return cmp.Or(cmp.Compare(a.Transaction, b.Transaction), cmp.Compare(a.Decider, b.Decider), cmp.Compare(a.Branch, b.Branch))
}

// answerTimeout limits the time in which a database answers the resolver. A server that is stopped, or whose network drops all
// packets, keeps its connections, and would keep the resolver from the branches of all other databases.
const answerTimeout = 10 * time.Second

func open(ctx context.Context, db database) (*place, error) {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	server, err := dialect.Identify(ctx, db.pool)
	if err != nil {
		return nil, err
	}
	identity, err := xa.Identity(ctx, db.pool, server)
	if errors.Is(err, xa.ErrNoTable) {
		err = fmt.Errorf("%w; create it with Create", err)
	}
	return &place{db, server, identity}, err
}

// list returns the branches whose deciding database is one of the resolver's, also of databases
// that do not answer. A server of MySQL and MariaDB lists the branches of all its databases.
func (l *look) list(ctx context.Context) map[xa.ID]found {
	all := map[xa.ID]found{}
	for _, p := range l.places {
		ids, err := p.list(ctx)
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("twophase: %s: list prepared transactions: %w", p.name, err))
		}
		for _, id := range ids {
			if l.deciders[id.Decider] != nil || l.away[id.Decider] {
				all[id] = found{id, p}
			}
		}
	}
	return all
}

func (p *place) list(ctx context.Context) ([]xa.ID, error) {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	return xa.List(ctx, p.pool, p.server)
}

// settle ends one branch.
func (l *look) settle(ctx context.Context, f found) {
	decider := l.deciders[f.id.Decider]
	if l.silent[f.at] || l.silent[decider] {
		l.report.InDoubt++
		return
	}
	committed, err := xa.Settle(ctx, left{f, decider})
	if errors.Is(err, context.DeadlineExceeded) { // of either, of which the next run asks both
		l.silent[f.at], l.silent[decider] = true, true
	}
	switch {
	case xa.IsUnknown(err): // the branch has ended, or its connection is alive
		l.report.InDoubt++
	case err != nil:
		l.report.InDoubt++
		l.errs = append(l.errs, fmt.Errorf("twophase: transaction %s on %s: %w", f.id.Transaction, f.at.name, err))
	case committed:
		l.report.Committed++
	default:
		l.report.RolledBack++
	}
}

// left is a branch that was found.
type left struct {
	found

	decider *place
}

var _ xa.Left = left{}

// Committed implements xa.Left.
func (b left) Committed(ctx context.Context) (bool, error) {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	return xa.Committed(ctx, b.decider.pool, b.decider.server, b.id.Transaction)
}

// End implements xa.Left.
func (b left) End(ctx context.Context, commit bool) error {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	_, err := b.at.pool.ExecContext(ctx, xa.End(b.at.server, b.id, commit))
	return err
}

// forget deletes old decisions that no branch needs. It lists prepared branches after it has read the
// decisions: a transaction prepares all its branches before its decision.
func (l *look) forget(ctx context.Context) {
	known := map[string]bool{}
	for _, p := range l.places {
		known[p.name] = true
	}
	decided := make([]map[string][]string, len(l.places))
	for i, p := range l.places {
		var err error
		if decided[i], err = p.decided(ctx); err != nil {
			l.errs = append(l.errs, fmt.Errorf("twophase: %s: %w", p.name, err))
			return
		}
	}
	before := len(l.errs)
	prepared := map[string]bool{}
	for id := range l.list(ctx) {
		prepared[id.Transaction] = true
	}
	if len(l.errs) > before {
		return
	}
	for i, p := range l.places {
		for transaction, names := range decided[i] {
			// A database that the router does not know any more may have a branch still.
			if prepared[transaction] || slices.ContainsFunc(names, func(name string) bool { return !known[name] }) {
				continue
			}
			if err := p.forget(ctx, transaction); err != nil {
				l.errs = append(l.errs, fmt.Errorf("twophase: %s: %w", p.name, err))
				return
			}
			l.report.Forgotten++
		}
		if err := p.forgetAborted(ctx); err != nil {
			l.errs = append(l.errs, fmt.Errorf("twophase: %s: %w", p.name, err))
		}
	}
}

func (p *place) decided(ctx context.Context) (map[string][]string, error) {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	return xa.Decided(ctx, p.pool, p.server)
}

func (p *place) forget(ctx context.Context, transaction string) error {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	return xa.Forget(ctx, p.pool, p.server, transaction)
}

func (p *place) forgetAborted(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	return xa.ForgetAborted(ctx, p.pool, p.server)
}

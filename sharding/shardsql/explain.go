// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/server"
)

// Kind is the way in which a statement is executed.
type Kind string

// The kinds of execution.
const (
	Home    Kind = "home"    // the unchanged text goes to the home database
	One     Kind = "one"     // one text goes to one database, usually to one shard
	Scatter Kind = "scatter" // several shards are queried, and their results combined
	Several Kind = "several" // each of several shards gets its part of a write
	Copies  Kind = "copies"  // the copy of a broadcast table in every database is written
	Lookup  Kind = "lookup"  // a lookup table is read first, or all shards are searched, and that determines the shards; see sharding.Lookup
	Refused Kind = "refused" // nothing is sent

	// Undecided: columns, their types or unique keys decide whether the statement is executed or
	// refused. Only [Plan] and [Planner.Plan] return it, if they do not know them.
	Undecided Kind = "undecided"
)

// Explanation says how a statement is executed with its arguments.
type Explanation struct {
	Kind   Kind
	Shards []Shard // for One, Scatter and Several, in the order of execution
	// Lookups are the queries that precede the statement. They search for rows on which the
	// statement depends and which another shard may have: first on the shards where the rows
	// belong, and then, for rows not found, on all others; so some of them may not be sent. One
	// query may cover all shards of a database, of which Target is the first. For Lookup they are
	// the queries of lookup tables, or those that search all shards for the rows of a write.
	Lookups []Shard
	// Merge says how the results of several shards are combined.
	Merge string
	// Fingerprint is the statement without its values. Statements that differ only in their values
	// have the same fingerprint.
	Fingerprint string
	// Parameters is the number of arguments that the statement needs.
	Parameters int
	// Unparsed: the text is no query and no write that this package reads. It is DDL or SET, for example, several
	// statements, or has unknown syntax.
	Unparsed bool
	// Err is the reason of a refusal, usually a *sharding.RouteError. For Undecided it is the refusal
	// of a database whose columns have unsuitable types. For Lookup it is not nil if the statement sets
	// the sharding key: it is the refusal if the rows that are found belong to another shard than the new key.
	Err error
}

// Shard is the text and the arguments for one target.
type Shard struct {
	Target sharding.Target // of the first sharded table that the statement names
	// Text shows a sample time for a function that reads the clock, if the statement is for several
	// databases: it is sent with the time of one of them. It shows (0 + 0) for a subquery that is executed
	// first: it is sent with the subquery's result, which may lead to fewer shards.
	Text string
	Args []any
}

// Explain says how a statement that is sent to db would be executed; [OpenDB] returned db. Explain
// sends nothing but the queries about columns which the first statement on a table sends anyway. It
// returns an error if a database cannot be reached; a refusal is in the Explanation.
func Explain(ctx context.Context, db *sql.DB, text string, args ...any) (e Explanation, err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return Explanation{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	err = c.Raw(func(raw any) error {
		own, ok := raw.(*conn)
		if !ok {
			return errors.New("shardsql: Explain: the database was not returned by OpenDB; pass one that was")
		}
		p, _, err := own.planned(ctx, text)
		if err != nil {
			return err
		}
		hint := sharding.HintOf(ctx)
		sampled, left := plan.Sampled(p.Plan, args, hint)
		e = explained(own.database.router, sampled, hint, text, left)
		e.describe(p.Plan)
		if e.Kind == Refused {
			return p.outage() // which may be the reason
		}
		return nil
	})
	return e, err
}

// Plan says how a statement would be executed, without a database. It assumes that the columns that
// lead to shards have the types that their rules need, and knows no other columns. A statement that
// depends on other columns or on unique keys, such as an order over several shards, an upsert, a write of a broadcast table or one by
// an id alone, is [Undecided]. The dialect is "mysql", "mariadb", "sqlite" or "postgres".
func Plan(router *sharding.Router, dialectName, text string, args ...any) (Explanation, error) {
	d, err := dialect.Named(dialectName)
	if err != nil {
		return Explanation{}, fmt.Errorf("shardsql: Plan: %w", err)
	}
	reads := sqlparse.Dialect{Family: map[string]sqlparse.Family{"mysql": sqlparse.MySQL, "sqlite": sqlparse.SQLite, "postgres": sqlparse.PostgreSQL}[d.Name()]}
	engine := map[string]merge.Engine{"mysql": merge.MySQL, "sqlite": merge.SQLite, "postgres": merge.PostgreSQL}[d.Name()]
	if strings.EqualFold(dialectName, "mariadb") {
		reads.Family = sqlparse.MariaDB
	}
	options := analysis.Options{Mode: router.TxMode(), Reads: reads, Quote: d.Quote, Merge: merge.Dialect{Engine: engine, SortLength: merge.DefaultSortLength}}
	return offline(router, sqlparse.Parse(text, reads), options, false, args), nil
}

// offline is what Plan says. A statement is undecided only if the columns of a table are not known.
func offline(router *sharding.Router, st *sqlparse.Statement, options analysis.Options, known bool, args []any) Explanation {
	p := plan.Of(st, router.Snapshot(), options)
	sampled, left := plan.Sampled(p, args, sharding.Hint{})
	e := explained(router, sampled, sharding.Hint{}, st.Text, left)
	if e.Kind == Refused && !known && sampled.IsUntyped(e.Err) {
		e.Kind = Undecided
	}
	e.describe(p)
	return e
}

// describe says what is known of a statement whatever its arguments are.
func (e *Explanation) describe(p *plan.Plan) {
	e.Fingerprint, e.Parameters, e.Unparsed = p.Fingerprint(), p.Statement.Args, !p.Single()
}

// Planner says how statements would be executed by a router whose databases are not there, or not yet: it reads the
// columns from one database. It may not be used by several goroutines at once.
type Planner struct {
	router *sharding.Router
	server *server.Server
	db     *sql.DB
	tables catalog.Schema
	absent []string
}

// NewPlanner returns a planner by the columns of db. That is a database which has the tables under their own names, such
// as the source of a migration, or one of those with shards. The planner sends it nothing but queries about its settings
// and about columns, which it reads once. It does not use the databases of the router.
func NewPlanner(ctx context.Context, router *sharding.Router, db *sql.DB) (*Planner, error) {
	found, err := server.Detect(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("shardsql: Planner: %w", err)
	}
	return &Planner{router: router, server: found, db: db, tables: catalog.Schema{}}, nil
}

// Plan is the function [Plan], but with the columns of the database, in its dialect. A statement is [Undecided] only if it names
// one of the tables that the database does not have; see Absent.
func (p *Planner) Plan(ctx context.Context, text string, args ...any) (Explanation, error) {
	st, of := sqlparse.Parse(text, p.server.Reads), p.router.Snapshot()
	options := analysis.Options{Mode: p.router.TxMode(), Reads: p.server.Reads, Quote: p.server.Quote, Merge: p.server.Arithmetic, Schema: catalog.Schema{}}
	known := true
	for _, written := range plan.Tables(st, of) {
		name := strings.ToLower(written)
		if err := p.read(ctx, of, name, written); err != nil {
			return Explanation{}, fmt.Errorf("shardsql: Planner: columns of %s: %w", name, err)
		}
		t, has := p.tables[name]
		if known = known && has; has {
			options.Schema[name] = t
		}
	}
	return offline(p.router, st, options, known, args), nil
}

// Absent are the tables, in lower case, that statements have named so far and the database does not have.
func (p *Planner) Absent() []string { return slices.Clone(p.absent) }

// read reads the columns of a table: of that with its own name, or else of one of its shards.
func (p *Planner) read(ctx context.Context, of *sharding.Snapshot, name, written string) error {
	if _, known := p.tables[name]; known || slices.Contains(p.absent, name) {
		return nil
	}
	names := []string{name, written}
	if t, sharded := of.Lookup(name); sharded {
		names = []string{t.Name}
		for _, at := range t.Map.Targets() {
			names = append(names, at.Table)
		}
	}
	found, err := readColumns(ctx, p.server, p.db, of, name, true, names...)
	switch {
	case err == nil:
		p.tables[name] = found
	case dialect.FaultOf(err) == dialect.NoTable:
		p.absent = append(p.absent, name)
	default:
		return err
	}
	return nil
}

func refused(err error) Explanation { return Explanation{Kind: Refused, Err: err} }

func explained(router *sharding.Router, p *plan.Plan, hint sharding.Hint, text string, args []any) Explanation {
	if o := plan.OwnersOf(p, args, hint, false); o != nil {
		accepted, elsewhere := o.Assumed(args)
		if _, err := accepted.Bind(args, hint); err != nil {
			return refused(err)
		}
		e := indirect(router, o)
		if elsewhere != nil && e.Err == nil {
			_, e.Err = elsewhere.Bind(args, hint)
		}
		return e
	}
	r, err := p.Bind(args, hint)
	if err == nil {
		_, err = plan.LookupChangesOf(p, args, r)
	}
	if err != nil {
		return refused(err)
	}
	lookups, err := p.Searches(args, r, writehint.Hint{})
	if err != nil {
		return refused(err)
	}
	e := routed(router, r, text, args)
	for _, l := range lookups {
		e.Lookups = append(e.Lookups, searches(l.Questions(false))...)
		e.Lookups = append(e.Lookups, searches(l.Questions(true))...)
	}
	return e
}

// searches describes the queries of a search.
func searches(questions []plan.Question) []Shard {
	all := make([]Shard, len(questions))
	for i, q := range questions {
		all[i] = Shard{q.Target, q.Text, make([]any, len(q.Args))}
		for n, v := range q.Args {
			all[i].Args[n] = v
		}
	}
	return all
}

// indirect describes the queries of lookup tables and the searches.
func indirect(router *sharding.Router, o *plan.Owners) Explanation {
	e := Explanation{Kind: Lookup}
	for _, q := range o.Queries {
		if q.Search != nil {
			if err := withinLimit(router, q.Search); err != nil {
				return refused(err)
			}
			e.Lookups = append(e.Lookups, searches(q.Search.Questions(true))...)
			continue
		}
		asked := Shard{Target: sharding.Target{Table: q.Lookup.Table}, Args: q.Values}
		if t, ok := router.Table(q.Lookup.Table); ok {
			asked.Target = t.Map.Targets()[0]
			if len(q.Values) == 1 {
				asked.Target, _ = t.Target(q.Values[0]) // on an error the first target remains
			}
		}
		asked.Text = "SELECT " + q.Table.Key + " FROM " + asked.Target.Table + " WHERE " + q.Lookup.Column + " IN (?" + strings.Repeat(", ?", len(q.Values)-1) + ")"
		e.Lookups = append(e.Lookups, asked)
	}
	return e
}

func routed(router *sharding.Router, r *plan.Route, text string, args []any) Explanation {
	e := Explanation{Kind: Kind(r.Kind.String())}
	add := func(at sharding.Target, text string, which []int) {
		e.Shards = append(e.Shards, Shard{at, text, plan.Selected(args, which)})
	}
	err := admitFanOut(router, r)
	targets, changes := r.Targets(), r.Kind == plan.Several || r.Kind == plan.Scatter && r.Shards.Locks
	other := slices.IndexFunc(targets, func(at sharding.Target) bool { return at.DB != targets[0].DB })
	if err == nil && other > 0 && changes && router.TxMode() == sharding.SingleShard { // outside of a transaction
		err = r.Spanning("database "+targets[0].DB, "database "+targets[other].DB)
	}
	if err != nil {
		return refused(err)
	}
	switch r.Kind {
	case plan.Home:
		e.Shards = []Shard{{Text: text, Args: args}}
	case plan.One:
		if r.Args != nil {
			args = plan.Selected(args, r.Args)
		}
		e.Shards = []Shard{{r.Target, r.Text, args}}
	case plan.Scatter:
		e.Merge = r.Shards.String()
		for _, s := range r.Shards.Targets {
			add(s.Target, s.Text, s.Args)
		}
	case plan.Several:
		for _, part := range r.Writes.Parts {
			add(part.Target, part.Text, part.Args)
		}
	}
	return e
}

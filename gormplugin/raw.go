package gormplugin

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// rawStep is the connection of a statement whose text the user wrote, and that a
// hint sends to one target, or an Exec to all.
type rawStep struct {
	routing  *routing
	stmt     *gorm.Statement
	next     conn
	hint     sharding.Hint
	snapshot *sharding.Snapshot // of the statement's beginning
}

var _ gorm.ConnPool = (*rawStep)(nil)

// renamed is a text for one database.
type renamed struct {
	db    string
	query string
}

// place returns the text with the names of the physical tables. A text that
// names no sharded table stays as it is, and at home: db is empty then.
func (s *rawStep) place(query string) (renamed, error) {
	if !s.routing.guard.mentions(query) {
		return renamed{query: query}, nil
	}
	out := renamed{}
	var refused error
	text, err := s.routing.rename(query, func(name string) (string, bool) {
		table, ok := s.snapshot.Lookup(name)
		if !ok {
			return "", false
		}
		target, _, err := s.snapshot.Hinted(table.Name, s.hint)
		switch {
		case err != nil:
			refused = err
		case out.db != "" && out.db != target.DB:
			refused = &sharding.RouteError{Op: "raw SQL on", Table: table.Name, Err: sharding.ErrCrossDatabase, Hint: "its tables lie in different databases; give them one Group"}
		}
		out.db = target.DB
		return s.routing.quote(target.Table), true
	})
	if refused != nil {
		err = refused
	}
	if out.query = text; err == nil && out.db != "" {
		err = s.isPlain(text)
	}
	return out, err
}

// rename renames tables in every reading of the text.
func (r *routing) rename(query string, with func(string) (string, bool)) (string, error) {
	text, err := sqltext.Rename(query, r.guard.readingsOf(query), with)
	if err != nil {
		return "", &sharding.RouteError{Op: "raw SQL", Err: sharding.ErrRawTable, Hint: err.Error()}
	}
	return text, nil
}

// isPlain refuses what changes more than rows: a table's other shards would stay
// as they are.
func (s *rawStep) isPlain(query string) error {
	if sqltext.Versioned(query, s.routing.guard.readingsOf(query)) {
		return &sharding.RouteError{Op: "raw SQL", Err: sharding.ErrRawTable, Hint: sqltext.VersionedHint}
	}
	scanner := sqltext.NewScanner(query, s.routing.guard.readings[0])
	first, _ := scanner.NextCode()
	for _, verb := range rowVerbs {
		if first.Is(query, verb) {
			return s.isSingle(query, scanner)
		}
	}
	return &sharding.RouteError{Op: "raw SQL", Err: sharding.ErrRawTable, Hint: "only SELECT, INSERT, REPLACE, UPDATE and DELETE go to a shard by a hint; run " +
		strings.ToUpper(first.Text(query)) + " on Router.DB of each target, with that target's table"}
}

func (s *rawStep) isSingle(query string, scanner sqltext.Scanner) error {
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		if t.Is(query, ";") {
			return &sharding.RouteError{Op: "raw SQL", Err: sharding.ErrRawTable, Hint: "send one statement at a time"}
		}
	}
	return nil
}

// ready returns what to run the text on, and the text to run.
func (s *rawStep) ready(ctx context.Context, query string, args []any) (gorm.ConnPool, string, error) {
	if s.hint.All {
		return s.next, query, nil
	}
	r, err := s.place(query)
	if err != nil || r.db == "" {
		return s.next, query, err
	}
	if err := s.proveWrites(query, args); err != nil {
		return nil, "", err
	}
	db := s.routing.router.DB(r.db)
	if err := s.routing.guard.unplaced(r.query, s.snapshot, db); err != nil {
		return nil, "", err
	}
	c, err := s.next.on(ctx, db)
	return c, r.query, err
}

func (s *rawStep) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	c, text, err := s.ready(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	return c.PrepareContext(ctx, text)
}

func (s *rawStep) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s.hint.All {
		return s.execAll(ctx, query, args)
	}
	c, text, err := s.ready(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return c.ExecContext(ctx, text, args...)
}

func (s *rawStep) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c, text, err := s.ready(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return c.QueryContext(ctx, text, args...)
}

func (s *rawStep) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c, text, err := s.ready(ctx, query, args)
	if err != nil {
		return errorRow(err)
	}
	return queryRow(ctx, c, text, args)
}

// execAll runs an UPDATE or a DELETE on every target of the table it names, and
// adds the rows up, or on every copy of a broadcast table. Its tables must be of
// one group.
func (s *rawStep) execAll(ctx context.Context, query string, args []any) (sql.Result, error) {
	table, err := s.tableOf(query)
	switch {
	case err != nil:
		return nil, err
	case table == nil && s.changesCopies(query):
		all := &copies{routing: s.routing, stmt: s.stmt, next: s.next, write: true}
		return all.ExecContext(ctx, query, args...)
	case table == nil:
		return s.next.ExecContext(ctx, query, args...)
	}
	if err := s.proveWrites(query, args); err != nil {
		return nil, err
	}
	targets, err := s.snapshot.Everywhere(table.Name)
	if err != nil {
		return nil, err
	}
	inner := &step{sharded: s.routing.view(s.snapshot).of(table.Name), stmt: s.stmt, op: "update", next: s.next, targets: targets}
	if err := inner.limit(len(targets)); err != nil {
		return nil, err
	}
	legs := make([]leg, len(targets))
	for i, target := range targets {
		one := &rawStep{s.routing, s.stmt, s.next, sharding.Hint{On: target}, s.snapshot}
		r, err := one.place(query)
		if err != nil {
			return nil, err
		}
		legs[i] = leg{target: target, query: r.query, vars: args}
	}
	return inner.execLegs(ctx, legs)
}

// tableOf returns the sharded table that a text changes; an INSERT would put the
// same row everywhere.
func (s *rawStep) tableOf(query string) (table *sharding.Table, err error) {
	if !s.routing.guard.mentions(query) {
		return nil, nil
	}
	_, err = s.routing.rename(query, func(name string) (string, bool) {
		if t, ok := s.snapshot.Lookup(name); ok && table == nil {
			table = t
		}
		return "", false
	})
	if err != nil || table == nil {
		return nil, err
	}
	scanner := sqltext.NewScanner(query, s.routing.guard.readings[0])
	if verb, _ := scanner.NextCode(); !verb.Is(query, "UPDATE") && !verb.Is(query, "DELETE") {
		return nil, rawTable("raw SQL on", table)
	}
	return table, nil
}

// changesCopies reports whether a text is an UPDATE or a DELETE of broadcast tables.
func (s *rawStep) changesCopies(query string) bool {
	all := changesOf(query, s.routing.guard.readings[0])
	if len(all) != 1 || all[0].verb != "UPDATE" && all[0].verb != "DELETE" {
		return false
	}
	others := func(name string) bool { return !s.routing.guard.isCopied(name) }
	return !slices.ContainsFunc(all[0].tables, others)
}

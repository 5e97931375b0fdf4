// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/effects"
	"github.com/shardid/shardid/sharding/internal/literal"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// subqueries executes the subqueries of a query whose tables are not together in one database: see
// plan.Subquery.
type subqueries struct{ *conn }

// maxList bounds the values that a subquery on the right side of IN may return.
const maxList = 10_000

// query sends a refused query with the results of its subqueries in their place. If no subquery can be executed before the
// query, the query is planned again, should the reason of its refusal be gone.
func (s subqueries) query(ctx context.Context, r request, refusal error) (driver.Rows, error) {
	made, _, err := s.planned(ctx, r.text)
	if err != nil {
		return nil, err
	}
	rows, err := s.tried(ctx, r, made, refusal)
	if r.final || err != refusal || !mayPullOut(made, refusal) { //nolint:errorlint // another refusal may wrap the same error
		return rows, err
	}
	r.final = true
	rows, err = s.conn.queryAsIs(ctx, r)
	return rows, s.withSpanHint(err)
}

// mayCross reports whether a subquery may be about another database than the transaction, which may not span databases.
func (s subqueries) mayCross() bool {
	return s.tx.staysInOne() && (len(s.database.copies()) > 1 || s.database.router.Migration() != nil)
}

// withSpanHint adds to the refusal of a query with subqueries what would let a transaction execute them first.
func (s subqueries) withSpanHint(err error) error {
	refusal, is := err.(*sharding.RouteError) //nolint:errorlint // another error may wrap one, and says more
	if !is || !s.mayCross() || errors.Is(err, sharding.ErrCrossDatabase) || isOutdated(err) {
		return err // of a crossing, it says so itself
	}
	with := *refusal
	with.Hint += "; a transaction that may not span databases executes a subquery first only on the database on which it has begun: " +
		"send the query outside of the transaction, or " + plan.LetSpan
	return &with
}

// tried is query without planning again.
func (s subqueries) tried(ctx context.Context, r request, made *planned, refusal error) (driver.Rows, error) {
	// In a transaction that may not span databases a subquery must not choose the first one.
	isFirst := s.mayCross() && !s.tx.began()
	if isFirst || r.isNamed() {
		return nil, refusal
	}
	if made.effects.About != nil {
		return nil, refusal
	}
	if !made.Copied() { // neither may a part of it be read from a copy
		ctx = sharding.Primary(ctx)
	}
	with, err := s.guarded(ctx, r, made)
	switch {
	case err != nil:
		return nil, err
	case with.text == "":
		return nil, refusal
	}
	asText := false
	if len(with.args) > 0 {
		if asText, err = isUnprepared(ctx, s.database.server, s.on(s.database.home), r.statement, r.args); err != nil {
			return nil, err
		}
	}
	var rows driver.Rows
	with.final = true
	r.observed.whileOther(func() { rows, err = s.conn.queryAsIs(ctx, with) })
	if err == nil && asText {
		rows = resultset.AsText(rows)
	}
	return rows, err
}

// drain is query for one whose rows are discarded.
func (s subqueries) drain(ctx context.Context, r request, refusal error) (driver.Result, error) {
	r.statement = nil
	rows, err := s.query(ctx, r, refusal)
	if err != nil {
		return nil, err
	}
	return driver.ResultNoRows, rows.Close()
}

// guarded is executed with a savepoint in a transaction of PostgreSQL, which an error would abort: that a subquery
// depends on the query around it may only show when PostgreSQL misses a column.
func (s subqueries) guarded(ctx context.Context, r request, made *planned) (with request, err error) {
	if len(made.subqueries()) == 0 {
		return request{}, nil
	}
	if err := s.guard(ctx, effects.Set, "SAVEPOINT "); err != nil {
		return request{}, err
	}
	with, err = s.executed(ctx, r, made)
	if err == nil || isRefusal(err) {
		err = dialect.JoinErrors(err, s.guard(ctx, effects.Release, "RELEASE SAVEPOINT "))
	}
	return with, err
}

// guard executes a statement on the savepoint of guarded, if there is one.
func (s subqueries) guard(ctx context.Context, verb effects.Savepoint, text string) error {
	if s.tx == nil || s.database.server.Name() != "postgres" {
		return nil
	}
	const name = "shardid_subquery"
	_, err := s.tx.execSavepoint(ctx, verb, name, text+name)
	return err
}

// executed returns a query with the results of its subqueries in their place. Its text is "" if no subquery can be executed.
// One that depends on the query around it fails, because a column is missing, and stays.
func (s subqueries) executed(ctx context.Context, r request, made *planned) (with request, err error) {
	p := made.Plan
	if len(r.args) != p.Statement.Args {
		return request{}, nil
	}
	if s.home.SQL == nil { // the query may have to wait for another statement, which waits for the connection
		defer func() { err = dialect.JoinErrors(err, leaveHome(&s.session)) }()
	}
	var done []plan.Subquery
	var results []plan.Result
	left := slices.Clone(r.args)
	for _, sub := range made.subqueries() {
		// With arguments, a text without any would be prepared, and its values would have other digits.
		if sub.Collation != "" && p.Singles {
			if is, err := isUnprepared(ctx, s.database.server, s.on(s.database.home), r.statement, r.args); err != nil {
				return request{}, err
			} else if is {
				continue
			}
		}
		result, values, err := s.result(ctx, p, sub, r.args)
		if err != nil {
			return request{}, err
		}
		if result == "" {
			continue
		}
		done, results = append(done, sub), append(results, plan.Result{Text: result, Values: len(values)})
		for _, v := range values {
			left = append(left, driver.NamedValue{Ordinal: len(left) + 1, Value: v})
		}
	}
	if len(done) == 0 {
		return request{}, nil
	}
	binary, err := isBinary(ctx, s.database.server, s.on(s.database.home), r.statement, r.args)
	if err != nil {
		return request{}, err
	}
	text, which := plan.Substituted(p, done, results)
	with = request{observed: r.observed, text: text, args: chosen(left, which)}
	if binary {
		with.statement = once
	}
	return with, nil
}

// result executes a subquery, and returns its result as it is written in the text, and the arguments of that.
// It returns "" if the subquery cannot be executed alone, or if its result cannot be written.
func (s subqueries) result(ctx context.Context, p *plan.Plan, sub plan.Subquery, args []driver.NamedValue) (string, []driver.Value, error) {
	text, which := plan.Executed(p, sub)
	own, _, err := s.planned(ctx, text)
	if err != nil || !plan.StandsAlone(own.Plan, sub) {
		return "", nil, err
	}
	rows, err := s.rows(ctx, text, chosen(args, which))
	if rows == nil {
		return "", nil, err
	}
	w, values, err := s.read(rows, sub)
	switch {
	case err != nil || w == nil:
		return "", nil, err
	case len(values) > maxList:
		return "", nil, &sharding.RouteError{Op: "query", Err: sharding.ErrUnmergeable, Hint: fmt.Sprintf("a subquery after IN returned more than %d values; join the tables, or read the values in parts and pass them as arguments", maxList)}
	case sub.Collation != "":
		text, values := w.Arguments(values)
		return text, values, nil
	}
	text, err = s.number(ctx, p, sub, w, values, args)
	return text, nil, err
}

// number returns the literals of numbers.
func (s subqueries) number(ctx context.Context, p *plan.Plan, sub plan.Subquery, w *literal.Writer, values []driver.Value, args []driver.NamedValue) (string, error) {
	isMariaDB := s.database.server.Reads.Family == sqlparse.MariaDB
	switch {
	case w.IsNarrow(isMariaDB):
		return "", nil
	case !w.IsShort():
		return w.Literals(values), nil
	case !sub.Compared || sub.List:
		return "", nil
	}
	summed, which := plan.Averaged(p, sub)
	switch {
	case summed == "":
		return "", nil
	case isMariaDB: // compares what it shows
		return w.Literals(values), nil
	}
	return s.average(ctx, sub, summed, chosen(args, which))
}

// rows executes a subquery. It returns nil if it cannot be executed alone.
func (s subqueries) rows(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	r := request{text: text, args: args}
	rows, err := s.conn.queryAsIs(ctx, r)
	if mayRewrite(err) {
		rows, err = s.query(ctx, r, err)
	}
	var moved *sharding.MovedError
	switch {
	case errors.As(err, &moved), isOutdated(err): // it can be executed later
		return nil, err
	case isRefusal(err):
		return nil, nil //nolint:nilnil // it is no error of the query
	case dialect.FaultOf(err) == dialect.NoColumn, dialect.FaultOf(err) == dialect.NoTable: // neither
		return nil, s.guard(ctx, effects.RollbackTo, "ROLLBACK TO SAVEPOINT ")
	case err != nil:
		return nil, err
	}
	return rows, nil
}

// average returns an average of decimals with all digits that MySQL compares; text returns its sum and count.
func (s subqueries) average(ctx context.Context, sub plan.Subquery, text string, args []driver.NamedValue) (string, error) {
	of, err := s.rows(ctx, text, args)
	if of == nil {
		return "", err
	}
	sums, err := firstRows(of, 2)
	if err != nil || len(sums) != 1 {
		return "", err
	}
	result := merge.Quotient(sums[0][0], sums[0][1], s.database.server.Arithmetic.Division)
	if result == "" {
		return "", nil
	}
	return literal.Unconverted(sub, result), nil
}

// read returns the first values of a result, and their writer. There are none if it has several columns.
func (s subqueries) read(of driver.Rows, sub plan.Subquery) (w *literal.Writer, values []driver.Value, err error) {
	if len(of.Columns()) != 1 {
		return w, nil, of.Close()
	}
	typed := resultset.Described{Rows: of}
	w = literal.NewWriter(s.database.server.Name(), typed, sub)
	most := maxList
	if !sub.List {
		most = 1
	}
	all, err := firstRows(of, most)
	for _, row := range all {
		values = append(values, row[0])
	}
	return w, values, err
}

// firstRows returns the rows of a result, at most one more than there may be, and closes it.
func firstRows(of driver.Rows, most int) (all [][]driver.Value, err error) {
	defer func() { err = dialect.JoinErrors(err, of.Close()) }()
	row := make([]driver.Value, len(of.Columns()))
	for len(all) <= most {
		switch err := of.Next(row); {
		case resultset.IsEOF(err):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, merge.Kept(row))
	}
	return all, nil
}

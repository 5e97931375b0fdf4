// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/owner"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// participant is the part of a write that one database executes.
type participant struct {
	index     int // in the caller's list
	pool      *sql.DB
	target    sharding.Target // for a copy of a broadcast table, only the database is set
	text      string
	args      []driver.NamedValue
	statement *statement // once if it must be prepared
}

// writing is a statement that writes rows.
type writing struct {
	execution

	models *plan.Search // the rows that it must affect; nil if it names no models
	kept   *lookupWrite // the changes of lookup tables; nil if there are none
}

// writing returns a statement that may write rows.
func (e execution) writing(ctx context.Context) (writing, error) {
	s, p := e.session, e.plan
	w := writing{execution: e, models: s.models(ctx, p, e.to, e.args)}
	if !plan.MayChangeLookups(p) {
		return w, nil
	}
	k, err := plan.LookupChangesOf(p, unwrapped(e.args), e.to)
	if err != nil || k == nil {
		return w, err
	}
	for _, kept := range k.Changes {
		if err := s.database.lookups.check(ctx, s, k.Table, kept.Lookup); err != nil {
			return w, err
		}
	}
	w.kept = &lookupWrite{plan: k, session: s, args: e.args, had: make([][]owner.Entry, len(k.Changes))}
	return w, nil
}

// executed writes to several shards, or to all copies of a broadcast table.
func (w writing) executed(ctx context.Context) (driver.Result, error) {
	parts := w.parts()
	var all sum
	_, err := together(ctx, w, w.participants(parts), affected, func(results []driver.Result) (int64, error) {
		all = summed(parts, results)
		return all.rows, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// one writes to one shard. For a single model it needs no transaction, because a statement that
// affects no row has nothing to undo.
func (w writing) one(ctx context.Context) (driver.Result, error) {
	if w.models != nil && w.models.Len() > 1 || w.kept != nil || needsTransaction(w.execution, false) {
		return w.executed(ctx)
	}
	r, err := w.sent(ctx)
	if err != nil || w.models == nil {
		return r, err
	}
	touched, err := r.RowsAffected()
	if err != nil {
		return nil, err
	}
	return r, search{w.session}.missed(ctx, w.models, touched)
}

func (w writing) sent(ctx context.Context) (driver.Result, error) {
	to, args := w.to, textArgs(w.to, w.args)
	pool := w.session.database.poolOrHome(to.Target.DB)
	switch st, err := w.statement.in(ctx, pool, w.plan, to); { //nolint:sqlclosecheck // closed with the outer statement
	case err != nil:
		return nil, err
	case st != nil:
		return st.ExecContext(ctx, sqlArgs(args)...)
	}
	in, err := w.session.connFor(ctx, to, pool)
	if err != nil {
		return nil, err
	}
	if err := refusedBefore(ctx, w.execution); err != nil {
		return nil, dialect.JoinErrors(err, in.Release())
	}
	r, err := in.Exec(ctx, w.statement.sent(), to.Text, args)
	if err != nil {
		return nil, err
	}
	if n, unknown := r.RowsAffected(); n == 0 && unknown == nil { // otherwise it is committed, and must not be executed again
		err = refusedAfter(w.execution)
	}
	return r, err
}

// parts returns the parts of the write, also if it has only one. For copies of a table it is that of home, whose answer counts.
func (w writing) parts() *plan.Writes {
	if w.to.Kind == plan.Several {
		return w.to.Writes
	}
	part := plan.Part{Shard: combine.Shard{Target: w.to.Target, Text: w.to.Text, Args: make([]int, len(w.args))}}
	for i := range part.Args {
		part.Args[i] = i
	}
	return &plan.Writes{Parts: []plan.Part{part}}
}

func summed(w *plan.Writes, results []driver.Result) sum {
	all := sum{last: results[len(w.Parts)-1], numbered: w.Numbered}
	for i, part := range w.Parts {
		n, err := results[i].RowsAffected()
		all.rows, all.err = all.rows+n, errors.Join(all.err, err)
		if rows := part.Rows; len(rows) > 0 && rows[len(rows)-1] == w.Rows-1 {
			all.last = results[i]
		}
	}
	return all
}

// sum is the result of a write to several shards.
type sum struct {
	rows int64
	err  error
	last driver.Result // of the shard of the last row
	// numbered: several shards numbered the rows. One number tells nothing about those of the others.
	numbered bool
}

func (s sum) RowsAffected() (int64, error) { return s.rows, s.err }

func (s sum) LastInsertId() (int64, error) {
	if s.numbered {
		return 0, fmt.Errorf("shardsql: LastInsertId: %w: the INSERT succeeded, and several shards have numbered its rows separately; "+
			"insert the rows of one shard at a time, or give them ids of a generator of package keygen", sharding.ErrUnmergeable)
	}
	return s.last.LastInsertId()
}

// returned is executed for a statement that returns rows; those of an INSERT are in the order of VALUES.
func (w writing) returned(ctx context.Context) (driver.Rows, error) {
	parts := w.parts()
	participants := w.participants(parts)
	if err := w.inBinary(ctx, participants); err != nil {
		return nil, err
	}
	all, err := together(ctx, w, participants, returning(), func(returned []*resultset.Held) (int64, error) {
		err := inOrder(parts, returned)
		return int64(len(returned[0].Rows)), err
	})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// affected executes a participant.
func affected(ctx context.Context, i inner.Conn, l participant) (driver.Result, error) {
	return i.Exec(ctx, l.statement.sent(), l.text, slices.Clone(l.args))
}

// returning returns the function that executes a participant with RETURNING. It reads the rows into
// memory, because the transaction ends before the caller reads them.
func returning() func(context.Context, inner.Conn, participant) (*resultset.Held, error) {
	memory := merge.NewMemory(resultset.MostMemory)
	return func(ctx context.Context, i inner.Conn, l participant) (*resultset.Held, error) {
		rows, err := i.Query(ctx, l.statement.sent(), l.text, slices.Clone(l.args))
		if err != nil {
			return nil, err
		}
		return resultset.HoldWithTypes(rows, memory)
	}
}

// inOrder moves all rows to the first element.
func inOrder(w *plan.Writes, returned []*resultset.Held) error {
	placed := make([][]driver.Value, w.Rows)
	var all [][]driver.Value
	for i := range w.Parts {
		rows := returned[i]
		if len(rows.Names) == 0 {
			continue // this part returned no rows
		}
		if first := returned[0].Names; len(first) > 0 && !merge.SameColumns(rows.Names, first) {
			return &sharding.RouteError{Op: "write", Err: fmt.Errorf("%w: %s returned other columns, or in another order, than %s", sharding.ErrUnmergeable, w.Parts[i].Target, w.Parts[0].Target),
				Hint: "name the columns after RETURNING, or " + resultset.MakeEqual}
		}
		if i > 0 {
			returned[0].AddTypes(rows)
		}
		if w.Rows == 0 {
			all = append(all, rows.Rows...)
			continue
		}
		if !putRows(placed, w, w.Parts[i].Rows, rows.Rows) {
			return &sharding.RouteError{Op: "insert", Err: fmt.Errorf("%w: the %d rows that %s returned cannot be matched to its %d rows", sharding.ErrUnmergeable, len(rows.Rows), w.Parts[i].Target, len(w.Parts[i].Rows)),
				Hint: "leave RETURNING out"}
		}
	}
	if first := returned[0]; len(first.Names) > 0 {
		first.Names = first.Names[:len(first.Names)-w.Hidden]
		placed = slices.DeleteFunc(placed, func(row []driver.Value) bool { return row == nil })
		first.Rows = slices.Concat(placed, all)
	}
	return nil
}

// putRows puts the rows that a shard has returned at their positions in VALUES: by their order if all
// were returned, otherwise by their keys.
func putRows(placed [][]driver.Value, w *plan.Writes, own []int, rows [][]driver.Value) bool {
	if w.Keys == nil && len(rows) != len(own) {
		return false
	}
	for n, row := range rows {
		at := n
		if w.Keys != nil {
			shown := len(row) - w.Hidden
			key := proof.Text(row[shown:])
			at = slices.IndexFunc(own, func(i int) bool { return placed[i] == nil && w.Keys[i] == key })
			row = row[:shown]
		}
		if at < 0 {
			return false
		}
		placed[own[at]] = row
	}
	return true
}

// participants returns what each database executes: its part, or all of a write of a broadcast table.
func (w writing) participants(parts *plan.Writes) (all []participant) {
	d := w.session.database
	for i, part := range parts.Parts {
		args := chosen(w.args, part.Args)
		all = append(all, participant{index: i, pool: d.poolOrHome(part.Target.DB), target: part.Target, text: part.Text, args: args, statement: asPart(d.server, w.statement, args)})
	}
	if w.to.Kind != plan.Copies {
		return all
	}
	atHome := all[0]
	all = nil
	for i, pool := range d.copies() {
		atHome.index, atHome.pool, atHome.target.DB = i, pool, d.shortNameOf(pool)
		all = append(all, atHome)
	}
	return all
}

// inBinary lets MariaDB prepare also the participants without arguments, if it would have prepared the statement for one
// table: rows that a text returns have other digits and types.
func (w writing) inBinary(ctx context.Context, participants []participant) error {
	if !slices.ContainsFunc(participants, func(p participant) bool { return len(p.args) == 0 }) {
		return nil
	}
	binary, err := isBinary(ctx, w.session.database.server, w.session.on(w.session.database.home), w.statement, w.args)
	for i := range participants {
		if binary {
			participants[i].statement = once
		}
	}
	return err
}

// together executes all participants, or none of them. They are undone, too, if rows, which counts the rows that they
// have affected, returns an error, or if a model is missing or an entry of a lookup table refused. It uses a transaction
// of its own, or a savepoint of the present transaction. The results have the indexes of their participants.
//
// The participants are executed one after another, although the databases could work in parallel.
// In parallel, two writers of the same rows on two databases could each lock one row and wait for
// the other, a deadlock that no database detects. In order, the second writer waits on the first
// database. (Four such writers on MariaDB: 0.05 s in order; in parallel they stood still.)
func together[T any](ctx context.Context, w writing, participants []participant, do func(context.Context, inner.Conn, participant) (T, error), rows func([]T) (int64, error)) ([]T, error) {
	s := w.session
	// All statements acquire their databases in one order: see compare.
	slices.SortStableFunc(participants, func(a, b participant) int {
		return cmp.Or(s.database.compare(a.target.DB, b.target.DB), cmp.Compare(a.target.Table, b.target.Table))
	})
	if s.tx == nil && s.history.isOpen() { // its BEGIN would commit what the program has begun
		return nil, &sharding.RouteError{Op: "statement", Table: w.to.Target.Table, Err: fmt.Errorf("%w: it needs a transaction, and a BEGIN or SET autocommit in a text may have begun another one", sharding.ErrSettings),
			Hint: "begin transactions with BeginTx"}
	}
	t := s.transactionFor(ctx, w.to)
	if w.to.Kind == plan.Copies && (s.tx == nil || writehint.Of(ctx, w.to.Target.Table).Single) {
		t.spans = true // a broadcast table could not be written otherwise
	}
	if err := t.admit(w.to); err != nil {
		return nil, err
	}
	guarded, entries := s.tx != nil, len(t.owners.got)
	s.tx = t // also for the searches and the entries of the write
	answers := make([]T, len(participants))
	err := t.execute(ctx, participants, w.kept.pools(), guarded, func(l participant, in inner.Conn) error {
		err := refusedBefore(ctx, w.execution)
		if err == nil {
			err = w.kept.recordOldValues(ctx, in, l)
		}
		if err == nil {
			answers[l.index], err = do(ctx, in, l)
		}
		if err == nil { // what it has changed is rolled back
			err = refusedAfter(w.execution)
		}
		return err
	})
	var n int64
	if err == nil {
		n, err = rows(answers)
	}
	if err == nil {
		err = search{s}.missed(ctx, w.models, n)
	}
	if err == nil {
		err = w.kept.enter(ctx, participants, n)
	}
	s.releaseLookupConns()
	if err != nil {
		t.owners.undo(entries)
	}
	if guarded {
		return answers, t.settle(ctx, err)
	}
	s.tx = nil
	if err != nil {
		_ = t.Rollback() // the participant's error is returned
		return nil, err
	}
	return answers, lost(t.Commit())
}

// execute executes the participants, on each database after a savepoint if guarded. Before it
// acquires a database, it reserves connections to those of others that precede it.
func (t *transaction) execute(ctx context.Context, participants []participant, others []*sql.DB, guarded bool, do func(participant, inner.Conn) error) error {
	for _, l := range participants {
		if err := t.session.reserveLookupConns(ctx, others, l.pool); err != nil {
			return err
		}
		b, err := t.join(ctx, l.pool)
		if err == nil && guarded && !b.marked {
			err = b.mark(ctx, t.mayHaveEnded)
		}
		if err == nil {
			err = do(l, b.inner)
		}
		if err != nil {
			return &sharding.ShardError{Target: l.target, Err: err}
		}
	}
	return nil
}

// statementSavepoint is the name of the savepoint before a statement.
const statementSavepoint = "shardid_statement"

// mark sets the savepoint before a statement. If a text has ended the transaction on the database, which then commits each
// statement by itself, the statement becomes a transaction.
func (b *txPart) mark(ctx context.Context, mayHaveEnded bool) error {
	err := b.inner.Run(ctx, "SAVEPOINT "+statementSavepoint)
	b.undo, b.keep = "ROLLBACK TO SAVEPOINT "+statementSavepoint, "RELEASE SAVEPOINT "+statementSavepoint
	if err == nil && mayHaveEnded {
		if err = b.inner.Run(ctx, b.undo); dialect.NoSavepoint(err) {
			b.undo, b.keep = "ROLLBACK", "COMMIT"
			err = b.inner.Run(ctx, "START TRANSACTION")
		}
	}
	b.marked = err == nil
	return err
}

// settle keeps the writes of a statement, or undoes them on all databases if it failed. If undoing
// is not possible, the transaction can no longer commit. After a server has rolled the transaction
// back, it has no savepoints there.
func (t *transaction) settle(ctx context.Context, failed error) error {
	if t.broken == nil && dialect.Deadlocked(failed) {
		t.broken = rolledBack(failed)
	}
	if t.broken != nil {
		return failed
	}
	ctx = context.WithoutCancel(ctx) // the end of ctx may be the cause of the error
	for _, b := range t.parts {
		if !b.marked {
			continue
		}
		b.marked = false
		var err error
		if failed != nil {
			if err = b.inner.Run(ctx, b.undo); dialect.NoSavepoint(err) {
				t.broken = rolledBack(failed)
				return failed
			}
		}
		if err == nil {
			err = b.inner.Run(ctx, b.keep)
		}
		if err != nil {
			t.broken = fmt.Errorf("shardsql: the savepoint of a statement could not be ended on %s; roll back the transaction: %w", t.session.database.nameOf(b.pool), err)
		}
	}
	if t.broken == nil {
		return failed
	}
	return errors.Join(failed, t.broken)
}

// writtenRows are the rows of a write. MariaDB executes it while they are read, so the refusal of a slot's former shard comes with them:
// with the first one, unless rows of other slots come before.
type writtenRows struct {
	resultset.Described

	first []driver.Value // nil when it was returned
	err   error          // of the first row
}

// readWritten reads the first row. It closes the rows if their error is that a slot is moving, and if there are none and
// check refuses that.
func readWritten(rows driver.Rows, check func() error) (driver.Rows, error) {
	first := make([]driver.Value, len(rows.Columns()))
	err := sharding.SlotMoving(rows.Next(first))
	failed := err
	if resultset.IsEOF(err) && len(first) > 0 { // without columns the answer does not say whether something was written
		failed = check()
	}
	if isOutdated(failed) {
		_ = rows.Close() // its error is the same, or does not matter
		return nil, failed
	}
	return &writtenRows{resultset.Described{Rows: rows}, first, err}, nil
}

func (r *writtenRows) Next(dest []driver.Value) error {
	if r.first == nil {
		return sharding.SlotMoving(r.Rows.Next(dest))
	}
	copy(dest, r.first)
	r.first = nil
	return r.err
}

func (r *writtenRows) Close() error { return sharding.SlotMoving(r.Rows.Close()) }

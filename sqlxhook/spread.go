package sqlxhook

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/sharding"
)

// Shards returns a handle that leads to all shards, for [Hook.NamedExec] and
// [Hook.Insert]: each row of an INSERT goes to the shard it belongs to, after its
// key was filled. Rows for several tables of one database are one transaction.
// Rows for several databases are refused with [sharding.ErrCrossDatabase] before
// anything is sent, unless the router allows [sharding.BestEffort]: then the
// statements run in all databases at once, and if all succeed the databases
// commit one after the other; a COMMIT that fails behind another one is a
// [sharding.PartialCommitError].
//
// A statement that writes a broadcast table goes to every database in the same
// way. With the hint [sharding.On] or [sharding.OnKey] a statement goes to that
// shard. All others are refused: a write does not fan out.
func (h *Hook) Shards() Execer { return &everywhere{h} }

// everywhere is the handle of Hook.Shards.
type everywhere struct{ hook *Hook }

// Rebind leaves the query alone: the shards that it is sent to write their own
// placeholders.
func (e *everywhere) Rebind(query string) string {
	return sqlx.Rebind(sqlx.BindType(e.DriverName()), query)
}

func (e *everywhere) DriverName() string { return e.hook.driver }

// ExecContext sends the query to the shard that the context's hint chooses.
func (e *everywhere) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := e.hook.hinted(ctx)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errWhere()
	}
	return s.ExecContext(ctx, query, args...)
}

func errWhere() error {
	return &sharding.RouteError{
		Op: "statement", Err: sharding.ErrMissingKey,
		Hint: "Hook.Shards takes rows to insert; for other statements choose the shard with sharding.OnKey or Hook.For, or go through them with Hook.Each",
	}
}

// hinted returns the shard that ctx chooses, nil if it chooses none.
func (h *Hook) hinted(ctx context.Context) (*Shard, error) {
	switch hint := sharding.HintOf(ctx); {
	case !hint.Placed():
		return nil, nil
	case hint.Table != "":
		return h.For(hint.Table, hint.Key)
	default:
		return h.At(hint.On)
	}
}

// parcel is what one shard, or one database for a broadcast table, gets of a
// call.
type parcel struct {
	db   string
	call call
}

// spread executes a statement for all shards that its rows belong to, and once
// more when the table has moved before anything was done.
func (h *Hook) spread(ctx context.Context, query string, insert bool, arg any) (Result, error) {
	if err := h.load(ctx); err != nil {
		return Result{}, err
	}
	for {
		l, err := h.routing(query)
		if err != nil {
			return Result{}, err
		}
		res, sent, err := h.spreadOn(ctx, l, query, insert, arg)
		if err == nil || sent {
			return res, err
		}
		if _, err = h.router.Moved(ctx, l.snapshot, err); err != nil {
			return Result{}, err
		}
	}
}

func (h *Hook) spreadOn(ctx context.Context, l *layout, query string, insert bool, arg any) (res Result, sent bool, err error) {
	r := new(rows)
	if err := r.take(arg); err != nil {
		return Result{}, false, err
	}
	e := &everywhere{h}
	k := h.keyOfCall(e, query, insert, r)
	k.bound = l.everywhere
	p, err := h.plan(&k, r)
	if err != nil {
		return Result{}, false, err
	}
	if p.place == nil && p.broadcast == "" {
		return Result{}, false, errWhere()
	}
	return h.deliver(ctx, p, r)
}

// deliver fills the rows of a plan for everywhere and sends them. sent reports
// whether that may have done anything.
func (h *Hook) deliver(ctx context.Context, p *plan, r *rows) (res Result, sent bool, err error) {
	if err := p.accepts(r); err != nil {
		return Result{}, false, err
	}
	var f filling
	if err := f.fill(ctx, p.keys, r); err != nil {
		return Result{}, false, err
	}
	parcels, err := h.parcels(p, r)
	if err == nil {
		err = h.allowed(p, parcels)
	}
	if err == nil {
		res, sent, err = h.dispatch(ctx, parcels)
	}
	if err != nil && !sent {
		for i := range parcels {
			parcels[i].call.filling.undo(&parcels[i].call.rows)
		}
		f.undo(r)
		return Result{}, false, err
	}
	res.IDs = ids(p.keys, r)
	return res, sent, err
}

// parcels makes the calls for rows whose keys are filled, in the order of their
// first rows.
func (h *Hook) parcels(p *plan, r *rows) ([]parcel, error) {
	var all args
	if err := p.collect(&all, r); err != nil {
		return nil, err
	}
	if p.broadcast != "" {
		return h.copies(p, r.n, &all), nil
	}
	var order []sharding.Target
	picked := map[sharding.Target][]int{}
	inSource := numbered(p.place.table, p.place.key.column)
	err := p.place.each(p.place.table, r.n, &all, func(i int, key any, target sharding.Target) error {
		if v, ok := follow(reflect.ValueOf(key)); !inSource && (!ok || v.IsZero()) { // a field that nobody has set
			return p.place.refuseRow(i, p.place.key.column, sharding.ErrMissingKey)
		}
		rows, known := picked[target]
		if !known {
			order = append(order, target)
		}
		picked[target] = append(rows, i)
		return nil
	})
	if err != nil {
		return nil, err
	}
	parcels := make([]parcel, len(order))
	for i, target := range order {
		some := all
		if len(order) > 1 {
			some = all.pick(picked[target], len(p.group))
		}
		if parcels[i], err = h.part(p, r, target, len(picked[target]), some); err != nil {
			return nil, err
		}
	}
	return parcels, nil
}

// part makes the call for the n rows of a target, with their arguments.
func (h *Hook) part(p *plan, r *rows, target sharding.Target, n int, a args) (parcel, error) {
	k := p.key
	k.bound = k.bound.layout.shard(p.place.table.Name, target)
	here, err := h.plan(&k, r)
	if err != nil {
		return parcel{}, err
	}
	c := call{plan: here, n: n, args: a}
	if n == r.n { // all rows, in their order
		c.rows = *r
		c.cuts, err = here.singly(r)
	}
	if c.cuts == nil {
		c.cuts = here.cut(n, &a)
	}
	return parcel{target.DB, c}, err
}

// copies makes a call of all rows for each database.
func (h *Hook) copies(p *plan, n int, a *args) []parcel {
	var parcels []parcel
	for _, db := range h.router.Databases() {
		parcels = append(parcels, parcel{db, call{plan: p, n: n, args: *a, cuts: p.cut(n, a)}})
	}
	return parcels
}

// allowed refuses what spans databases unless that is allowed.
func (h *Hook) allowed(p *plan, parcels []parcel) error {
	several := slices.ContainsFunc(parcels, func(c parcel) bool { return c.db != parcels[0].db })
	if !several || h.router.TxMode() == sharding.BestEffort {
		return nil
	}
	refused := &sharding.RouteError{
		Op: "insert into", Err: sharding.ErrCrossDatabase,
		Hint: "group the rows with GroupBy and insert each group, or allow it with sharding.Transactions(sharding.BestEffort)",
	}
	if refused.Table = p.broadcast; p.place != nil {
		refused.Table = p.place.table.Name
	}
	return refused
}

// dispatch sends the parcels, those of one database as one transaction. sent
// reports whether a statement may have reached a database.
func (h *Hook) dispatch(ctx context.Context, parcels []parcel) (res Result, sent bool, err error) {
	if len(parcels) == 1 {
		return parcels[0].call.send(ctx, h.dbs[parcels[0].db])
	}
	var all []*delivery
	for _, c := range parcels {
		at := slices.IndexFunc(all, func(d *delivery) bool { return d.db == c.db })
		if at < 0 {
			at = len(all)
			all = append(all, &delivery{db: c.db})
		}
		all[at].calls = append(all[at].calls, c.call)
	}
	life := sqlrun.NewDetachable(ctx)
	defer life.End()
	errs := atOnce(ctx, len(all), h.router.Limits().Concurrency, func(i int) error { return all[i].run(ctx, life, h.dbs[all[i].db]) })
	for _, d := range all {
		sent = sent || d.sent
		res.RowsAffected += d.affected
	}
	if err = errors.Join(errs...); err == nil {
		err = life.Detach()
	}
	if err != nil {
		nothing := undone(err)
		for _, d := range all {
			rolled := d.rollback()
			nothing = nothing && rolled == nil
			err = errors.Join(err, rolled)
		}
		return Result{}, sent && !nothing, err
	}
	return res, true, commit(all)
}

// delivery is the transaction of one database.
type delivery struct {
	db       string
	calls    []call
	tx       *sqlx.Tx // nil before BEGIN
	sent     bool
	affected int64
}

// run sends the calls and leaves the transaction open, for as long as life lasts.
func (d *delivery) run(ctx, life context.Context, db *sqlx.DB) (err error) {
	if d.tx, err = db.BeginTxx(life, nil); err != nil {
		return err
	}
	for i := range d.calls {
		res, sent, err := d.calls[i].sendAll(ctx, d.tx)
		d.sent = d.sent || sent
		d.affected += res.RowsAffected
		if err != nil {
			return whole(err)
		}
	}
	return nil
}

func (d *delivery) rollback() error {
	if d.tx == nil {
		return nil
	}
	if err := d.tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

var errUndone = errors.New("rolled back, as another database could not commit")

// commit commits one after the other. What is behind a failure is rolled back.
func commit(all []*delivery) error {
	partial := &sharding.PartialCommitError{Failed: map[string]error{}}
	var failed error
	for _, d := range all {
		switch {
		case failed != nil:
			partial.Failed[d.db] = errors.Join(errUndone, d.rollback())
		default:
			if failed = sharding.SlotMoving(d.tx.Commit()); failed != nil {
				partial.Failed[d.db] = failed
			} else {
				partial.Committed = append(partial.Committed, d.db)
			}
		}
	}
	if failed == nil || len(partial.Committed) == 0 {
		return failed
	}
	return partial
}

// SPDX-License-Identifier: Apache-2.0

package shapes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Shop has the tables in shards, with the database Routed, and whole in another database.
type Shop struct {
	Routed, Whole *sql.DB

	dialect Dialect
	dbs     sharding.DBs
	home    *sql.DB
	tables  []sharding.Table
	shards  []shard
}

// shard is a physical table, and its rows.
type shard struct {
	at   sharding.Target
	of   sharding.Table
	slot int
}

// Layout is the distribution of rows over four slots.
type Layout struct {
	Rule sharding.Rule // the rule of user_id
	IDs  bool          // the rule maps ids to the same slots, as Mod(4) and Low(2) do
}

// Open creates the tables and their rows: in two databases a and b, in home and in whole. The
// caller closes Routed.
func Open(ctx context.Context, dialect Dialect, dbs sharding.DBs, home, whole *sql.DB, layout Layout) (*Shop, error) {
	s := &Shop{Whole: whole, dialect: dialect, dbs: dbs}
	s.home = home
	var errs []error
	for _, name := range []string{"orders", "items"} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			return nil, err
		}
		table := sharding.Table{Name: name, Key: "user_id", Rule: layout.Rule, Map: m, Group: "shop"}
		if layout.IDs {
			table.Also = []sharding.Alt{{Column: "id", Rule: layout.Rule}}
		}
		for slot, at := range m.Targets() {
			errs = append(errs, execute(ctx, dbs[at.DB], "CREATE TABLE "+at.Table+Tables[name]))
			s.shards = append(s.shards, shard{at, table, slot})
		}
		s.tables = append(s.tables, table)
		errs = append(errs, execute(ctx, whole, "CREATE TABLE "+name+Tables[name]))
	}
	for _, db := range []*sql.DB{whole, home} {
		errs = append(errs, execute(ctx, db, "CREATE TABLE coupons"+Tables["coupons"]))
	}
	for _, db := range []*sql.DB{whole, home, dbs["a"], dbs["b"]} {
		errs = append(errs, execute(ctx, db, "CREATE TABLE regions"+Tables["regions"]))
	}
	goods, err := sharding.Spread([]string{"a", "b"}, 4, "goods_%d")
	if err != nil {
		return nil, err
	}
	for _, at := range goods.Targets() {
		errs = append(errs, execute(ctx, dbs[at.DB], "CREATE TABLE "+at.Table+dialect.mixedColumns()))
	}
	for _, table := range []string{"goods", "facts"} {
		errs = append(errs, execute(ctx, whole, "CREATE TABLE "+table+dialect.mixedColumns()))
	}
	errs = append(errs, execute(ctx, home, "CREATE TABLE facts"+dialect.mixedColumns()))
	s.tables = append(s.tables, sharding.Table{Name: "goods", Key: "user_id", Rule: layout.Rule, Map: goods})
	if err := errors.Join(append(errs, s.route())...); err != nil {
		return nil, err
	}
	return s, errors.Join(s.fill(ctx, s.Routed), s.fill(ctx, whole))
}

// route makes Routed of the tables.
func (s *Shop) route() error {
	router, err := sharding.New(s.dbs, sharding.Broadcast("regions"), sharding.Transactions(sharding.BestEffort), sharding.Tables(s.tables...))
	if err == nil {
		s.Routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: s.home})
	}
	return err
}

// Move leaves two of the four slots in the midst of a move: other shards have copies of their rows, too.
func (s *Shop) Move(ctx context.Context) error {
	err := s.Routed.Close()
	for i := range s.tables {
		t := &s.tables[i]
		for _, slots := range [][2]sharding.Slot{{2, 0}, {1, 3}} {
			from, _ := t.Map.Target(slots[0])
			to, _ := t.Map.Target(slots[1])
			err = errors.Join(err, execute(ctx, s.dbs[to.DB], "INSERT INTO "+to.Table+" SELECT * FROM "+from.Table)) //nolint:unqueryvet // all columns of both
		}
		t.Map = t.Map.Sharing(1, 2)
	}
	return errors.Join(err, s.route())
}

func execute(ctx context.Context, db *sql.DB, text string, args ...any) error {
	if _, err := db.ExecContext(ctx, text, args...); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

// fill inserts the same rows into every database.
func (s *Shop) fill(ctx context.Context, db *sql.DB) (err error) {
	insert := func(text string, args ...any) error { return execute(ctx, db, s.dialect.Numbered(text), args...) }
	random := rand.New(rand.NewPCG(5, 6))
	text := func() any { return []any{"a", "b", "d", "", "ab", nil}[random.IntN(6)] }
	number := func() any {
		if n := random.Int64N(7); n < 6 {
			return n
		}
		return nil
	}
	for i := range int64(40) {
		user, other := random.Int64N(8), random.Int64N(8)
		err = errors.Join(err,
			insert("INSERT INTO orders (id, user_id, paid, amount, note, region) VALUES (?, ?, ?, ?, ?, ?)", user+8*i, user, number(), random.Int64N(6), text(), text()),
			insert("INSERT INTO items (id, user_id, order_id, qty, sku) VALUES (?, ?, ?, ?, ?)", other+8*i, other, other+8*random.Int64N(40), number(), text()))
	}
	for i, code := range []string{"a", "b", "c"} {
		err = errors.Join(err,
			insert("INSERT INTO regions (code, rank_no) VALUES (?, ?)", code, i),
			insert("INSERT INTO coupons (code, user_id, off_by) VALUES (?, ?, ?)", code, i*3, i))
	}
	mixed := mixer{New(7, s.dialect)}
	for id := range 40 {
		err = errors.Join(err, execute(ctx, db, mixed.row("goods", id)), execute(ctx, db, mixed.row("facts", id)))
	}
	return err
}

// Tally counts the outcomes of statements.
type Tally struct {
	Answered, Refused, Failed int // Failed statements fail on whole tables, too
	// Reasons are the reasons of refusals, each with a statement.
	Reasons map[string]string
}

// Try executes a statement on both, and returns the difference. A statement that shards refuse is
// not executed on whole tables.
func (s *Shop) Try(ctx context.Context, st Statement, tally *Tally) error {
	got, err := st.answer(ctx, s.Routed)
	var refusal *sharding.RouteError
	if errors.As(err, &refusal) {
		tally.refused(st, refusal)
		return nil
	}
	want, failed := st.answer(ctx, s.Whole)
	switch {
	case failed != nil && err != nil:
		tally.Failed++
		return nil //nolint:nilerr // on both
	case failed != nil:
		return fmt.Errorf("%s %v: shards answer %q, where whole tables fail: %w", st.Text, st.Args, got, failed)
	case err != nil || !slices.Equal(got, want):
		return errors.Join(fmt.Errorf("%s %v: got %q, where whole tables answer %q", st.Text, st.Args, got, want), err)
	}
	tally.Answered++
	if st.Writes {
		if err := s.compare(ctx); err != nil {
			return fmt.Errorf("after %s %v: %w", st.Text, st.Args, err)
		}
	}
	return nil
}

func (t *Tally) refused(st Statement, err *sharding.RouteError) {
	t.Refused++
	if t.Reasons == nil {
		t.Reasons = map[string]string{}
	}
	why := err.Err.Error() + ": " + err.Hint
	if known := t.Reasons[why]; known == "" || len(st.Text) < len(known) {
		t.Reasons[why] = st.Text
	}
}

// compare compares the rows, and finds rows on wrong shards.
func (s *Shop) compare(ctx context.Context) error {
	for table, list := range lists {
		all := Statement{Text: "SELECT " + strings.Trim(list, "()") + " FROM " + table, Query: true}
		got, err := all.answer(ctx, s.Routed)
		want, failed := all.answer(ctx, s.Whole)
		if err := errors.Join(err, failed); err != nil || !slices.Equal(got, want) {
			return errors.Join(fmt.Errorf("%s has %q, where whole tables have %q", table, less(got, want), less(want, got)), err)
		}
	}
	for _, on := range s.shards {
		if err := on.strays(ctx, s.dbs[on.at.DB]); err != nil {
			return err
		}
	}
	return nil
}

// strays reports rows that belong to other shards.
func (s shard) strays(ctx context.Context, db *sql.DB) error {
	rows, err := Statement{Text: "SELECT user_id FROM " + s.at.Table, Query: true}.answer(ctx, db)
	for _, row := range rows {
		key, bad := strconv.ParseInt(strings.TrimSuffix(row, "|"), 10, 64)
		slot, none := s.of.Slot(key)
		if bad != nil || none != nil || int(slot) != s.slot {
			err = errors.Join(err, bad, none, fmt.Errorf("%s has a row of user %s, which belongs to slot %d", s.at, row, slot))
		}
	}
	return err
}

// padding is spaces at the end of a text.
var padding = regexp.MustCompile(` +\|`)

// less returns the elements of a list that are not in another one.
func less(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(row string) bool { return slices.Contains(other, row) })
}

// answer returns the rows of a query as texts, or the number of rows that a write has affected.
func (st Statement) answer(ctx context.Context, db *sql.DB) ([]string, error) {
	if !st.Query {
		r, err := db.ExecContext(ctx, st.Text, st.Args...)
		if err != nil {
			return nil, err
		}
		n, err := r.RowsAffected()
		return []string{strconv.FormatInt(n, 10)}, err
	}
	found, err := db.QueryContext(ctx, st.Text, st.Args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }()
	rows, err := texts(found)
	if st.Folds {
		for i := range rows {
			rows[i] = padding.ReplaceAllString(strings.ToLower(rows[i]), "|")
		}
	}
	if !st.Ordered {
		slices.Sort(rows)
	}
	return rows, err
}

func texts(found *sql.Rows) (rows []string, err error) {
	columns, err := found.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	for found.Next() {
		var line strings.Builder
		for i := range values {
			values[i] = new(any)
		}
		if err := found.Scan(values...); err != nil {
			return nil, err
		}
		for _, v := range values {
			line.WriteString(textOf(*v.(*any)) + "|")
		}
		rows = append(rows, line.String())
	}
	return rows, found.Err()
}

// textOf returns a value as a text. A BIT of MariaDB is a byte or a number, which depends on whether the server
// made a temporary table, and a whole number of SQLite may be a float.
func textOf(v any) string {
	switch v := v.(type) {
	case []byte:
		if len(v) == 1 && (v[0] < ' ' || v[0] > '~') {
			return strconv.Itoa(int(v[0]))
		}
		return string(v)
	case float64:
		return strconv.FormatFloat(v+0, 'f', -1, 64) // -0 + 0 is 0
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 32)
	}
	return fmt.Sprint(v)
}

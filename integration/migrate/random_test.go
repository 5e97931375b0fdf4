// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// randomColumn is a column of a random table.
type randomColumn struct {
	name       string // quoted
	definition string
	value      func(r *rand.Rand) string // a literal of the server; nil if the server computes the column
	bytes      string                    // what the server has stored, as a text
}

// randomKey is a value of the sharding key or of the primary key, as SQL and as applications have it.
type randomKey struct {
	text string
	key  any
}

// randomTable is a table with random columns, and what writers do to it.
type randomTable struct {
	speaks  *randomSpeech
	create  []string
	id      string // the quoted primary key
	ids     func(r *rand.Rand) randomKey
	key     string // the sharding key, "" if it is the primary key
	keys    func(r *rand.Rand) randomKey
	rule    sharding.Rule
	columns []randomColumn // the others
	lone    bool           // a unique key holds within each shard alone
}

// randomSpeech is what the kinds of servers have different.
type randomSpeech struct {
	settings []string // of a writer's session; it takes one
	pinned   string   // of the session that compares
	common   string   // what all databases need
	shape    func(ctx context.Context, db *sql.Conn, table string) ([]string, error)
	make     func(r *rand.Rand) *randomTable
	upsert   func(t *randomTable, table, columns, values, set string) string
}

// outcomes counts how the migrations of random tables ended.
type outcomes map[string]int

func TestRandomTablesOfMariaDBAreMigratedBitByBitOrRefused(t *testing.T) {
	migrateRandom(t, server.RunMariaDB(t), randomMariaDB, effort.Cases[uint64](2, 100))
}

func TestRandomTablesOfMySQLAreMigratedBitByBitOrRefused(t *testing.T) {
	migrateRandom(t, server.RunMySQL(t), randomMySQL, effort.Cases[uint64](2, 100))
}

func TestRandomTablesOfPostgresAreMigratedBitByBitOrRefused(t *testing.T) {
	migrateRandom(t, server.RunPostgres(t), randomPostgres, effort.Cases[uint64](2, 100))
}

func migrateRandom(t *testing.T, s database.DSNOpener, speaks *randomSpeech, cases uint64) {
	t.Helper()
	ended := outcomes{}
	for seed := range cases {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := newRandomRun(t, s, speaks, seed)
			end := w.migrate(t)
			if t.Failed() {
				t.Logf("%s\n%s", end, strings.Join(w.table.create, ";\n"))
			}
			ended[end]++
			w.drop(t)
		})
	}
	for _, end := range slices.Sorted(maps.Keys(ended)) {
		t.Logf("%4d %s", ended[end], end)
	}
}

// randomRun is the migration of one random table.
type randomRun struct {
	r      *rand.Rand
	seed   uint64
	server database.DSNOpener
	name   string // of the databases, without the letter of the shard
	source *sql.DB
	shards sharding.DBs
	table  *randomTable
	conf   migrate.Table
	job    *migrate.Job

	computed bool // Inspect said that expressions fail or differ for some ids
}

func newRandomRun(t *testing.T, s database.DSNOpener, speaks *randomSpeech, seed uint64) *randomRun {
	t.Helper()
	w := &randomRun{r: rand.New(rand.NewPCG(seed, 71)), seed: seed, server: s, name: fmt.Sprint("random_", seed)}
	w.source = s.Open(t, w.name)
	w.shards = sharding.DBs{"a": s.Open(t, w.name+"_a"), "b": s.Open(t, w.name+"_b")}
	for _, db := range []*sql.DB{w.source, w.shards["a"], w.shards["b"]} {
		database.Exec(t, db, speaks.common)
	}
	w.createTable(t, speaks)
	m, err := sharding.Spread([]string{"a", "b"}, 2, "odd_%d")
	if err != nil {
		t.Fatal(err)
	}
	key := w.table.key
	if key == "" {
		key = "id"
	}
	w.conf = migrate.Table{Table: sharding.Table{Name: "odd", Key: key, Rule: w.table.rule, Map: m}}
	if w.job, err = migrate.New(migrate.Config{Source: w.source, Shards: w.shards, Tables: []migrate.Table{w.conf}, ChunkRows: 1 + w.r.IntN(30)}); err != nil {
		t.Fatal(err)
	}
	return w
}

// createTable tries tables until the server accepts one: the random attributes need not fit together.
func (w *randomRun) createTable(t *testing.T, speaks *randomSpeech) {
	t.Helper()
	var why error
	for range 50 {
		w.table = speaks.make(w.r)
		w.table.speaks = speaks
		conn := w.session(t, w.source, w.r)
		why = nil
		for _, statement := range w.table.create {
			if _, why = conn.ExecContext(t.Context(), statement); why != nil {
				break
			}
		}
		_ = conn.Close()
		if why == nil {
			return
		}
		_, _ = w.source.ExecContext(t.Context(), "DROP TABLE IF EXISTS odd")
	}
	t.Fatalf("the server accepts no random table: %v", why)
}

// session is a connection with settings of a writer.
func (w *randomRun) session(t *testing.T, db *sql.DB, r *rand.Rand) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for setting := range strings.SplitSeq(pick(r, w.table.speaks.settings), "; ") {
		if _, err := conn.ExecContext(t.Context(), setting); err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
	}
	return conn
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func one(r *rand.Rand, of int) bool { return r.IntN(of) == 0 }

// drop drops the databases.
func (w *randomRun) drop(t *testing.T) {
	t.Helper()
	for _, db := range []*sql.DB{w.source, w.shards["a"], w.shards["b"]} {
		_ = db.Close()
	}
	admin := w.server.Open(t, "admin")
	for _, name := range []string{w.name, w.name + "_a", w.name + "_b"} {
		_, _ = admin.ExecContext(t.Context(), "DROP DATABASE "+name)
	}
}

// migrate brings the table to the shards, back, and there again, and returns how that ended.
func (w *randomRun) migrate(t *testing.T) string {
	t.Helper()
	conn := w.session(t, w.source, w.r)
	for range 40 {
		w.write(t, conn, w.r, "odd", nil)
	}
	_ = conn.Close()
	found, err := w.job.Inspect(t.Context())
	if err != nil {
		t.Errorf("inspect: %v", err)
		return "inspect fails"
	}
	if migrate.Blocked(found) {
		return w.refused(t, found)
	}
	w.computed = slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Code == migrate.ComputedID })
	steps := []struct {
		name string
		do   func() error
		rows [2]string // the tables that must have the same rows then: of the source, and the suffix of the shards
	}{
		{"run", func() error { return w.beside(t, func() error { return w.job.Run(t.Context()) }) }, [2]string{}},
		{"second run", func() error { return w.job.Run(t.Context()) }, [2]string{"odd", ""}},
		{"cutover", w.cutover(t), [2]string{"odd_old", ""}},
		{"run after writes to the shards", func() error { w.writeShards(t); return w.job.Run(t.Context()) }, [2]string{"odd_old", ""}},
		{"rollback", w.rollback(t), [2]string{"odd", "_sealed"}},
		{"run after writes to the source", func() error { w.writeSource(t); return w.job.Run(t.Context()) }, [2]string{"odd", "_sealed"}},
		{"second cutover", w.cutover(t), [2]string{"odd_old", ""}},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return w.stopped(t, step.name, err)
		}
		if step.rows[0] == "" {
			continue
		}
		if v, err := w.job.Verify(t.Context()); err != nil || !v.Clean() {
			t.Errorf("verify after %s: %+v, %v", step.name, v, err)
		}
		w.compare(t, step.name, step.rows[0], step.rows[1])
		if t.Failed() {
			return step.name + " differs"
		}
	}
	w.sameShapes(t)
	before := w.onShards(t, "")
	if err := w.job.Finalize(t.Context()); err != nil {
		t.Errorf("finalize: %v", err)
	}
	if !slices.Equal(before, w.onShards(t, "")) {
		t.Error("finalize changed rows")
	}
	return "migrated"
}

// refused is the end of a table that Inspect blocks: each finding says what to do.
func (w *randomRun) refused(t *testing.T, found []migrate.Finding) string {
	t.Helper()
	var codes []string
	for _, f := range found {
		if f.Severity != migrate.Block {
			continue
		}
		if f.Message == "" || f.Fix == "" {
			t.Errorf("%+v does not say what to do", f)
		}
		codes = append(codes, string(f.Code)+" "+anonymous(f.Message))
	}
	if err := w.job.Run(t.Context()); !errors.Is(err, migrate.ErrNotReady) && !errors.Is(err, migrate.ErrUnsupported) {
		t.Errorf("a run after %+v: %v", found, err)
	}
	return "refused: " + strings.Join(slices.Compact(codes), ", ")
}

// anonymous is a message without what differs between tables.
func anonymous(message string) string {
	if len(message) > 120 {
		message = message[:120]
	}
	return message
}

// stopped is the end of a migration in which a row came that a copy would change.
func (w *randomRun) stopped(t *testing.T, step string, err error) string {
	t.Helper()
	var row *migrate.RowError
	found := errors.Is(err, migrate.ErrNotReady) && strings.Contains(err.Error(), "inspect has blocking findings") || // of what came after the inspection
		errors.Is(err, migrate.ErrUnsupported) && strings.Contains(err.Error(), "has the id") // above the highest
	if !found && (!errors.As(err, &row) || !errors.Is(err, migrate.ErrUnsupported)) {
		t.Errorf("%s: %v", step, err)
	}
	return step + " stopped: " + anonymous(err.Error())
}

func (w *randomRun) cutover(t *testing.T) func() error {
	return func() error {
		_, err := w.job.Cutover(t.Context(), longPause)
		return err
	}
}

func (w *randomRun) rollback(t *testing.T) func() error {
	return func() error {
		_, err := w.job.Rollback(t.Context(), longPause)
		return err
	}
}

// besideStatements is how many statements each writer makes beside a run, if that lasts as long. One statement
// may change every row, so that without a limit a busy machine never catches up with the changes.
func besideStatements() int {
	if effort.Soak() {
		return 1000
	}
	return 200
}

// beside runs f while others write to the source.
func (w *randomRun) beside(t *testing.T, f func() error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 2 {
		r := rand.New(rand.NewPCG(w.seed, uint64(i)))
		conn := w.session(t, w.source, r)
		wg.Go(func() {
			defer func() { _ = conn.Close() }()
			for n := 0; n < besideStatements() && ctx.Err() == nil; n++ {
				w.write(t, conn, r, "odd", nil)
			}
		})
	}
	err := f()
	cancel()
	wg.Wait()
	return err
}

func (w *randomRun) writeSource(t *testing.T) {
	t.Helper()
	conn := w.session(t, w.source, w.r)
	defer func() { _ = conn.Close() }()
	for range 30 {
		w.write(t, conn, w.r, "odd", nil)
	}
}

func (w *randomRun) writeShards(t *testing.T) {
	t.Helper()
	for _, at := range w.conf.Map.Targets() {
		conn := w.session(t, w.shards[at.DB], w.r)
		for range 20 {
			w.write(t, conn, w.r, at.Table, &at)
		}
		_ = conn.Close()
	}
}

// write executes one random statement on a table: the source's, or with at that of a shard. The server
// may refuse it.
func (w *randomRun) write(t *testing.T, conn *sql.Conn, r *rand.Rand, table string, at *sharding.Target) {
	t.Helper()
	_, _ = conn.ExecContext(t.Context(), w.statement(r, table, at))
}

func (w *randomRun) statement(r *rand.Rand, table string, at *sharding.Target) string {
	choice := r.IntN(10)
	if at != nil && w.table.lone {
		choice = 0 // an application has to keep such values unique itself
	}
	switch choice {
	case 0:
		return fmt.Sprintf("DELETE FROM %s WHERE %s = %s", table, w.table.id, w.table.ids(r).text)
	case 1:
		return fmt.Sprintf("UPDATE %s SET %s WHERE %s > %s", table, w.assignments(r, at == nil), w.table.id, w.table.ids(r).text)
	case 2, 3, 4:
		return fmt.Sprintf("UPDATE %s SET %s WHERE %s = %s", table, w.assignments(r, at == nil), w.table.id, w.table.ids(r).text)
	case 5:
		columns, values := w.row(r, at)
		if columns == "" {
			break
		}
		return w.table.speaks.upsert(w.table, table, columns, values, w.assignments(r, at == nil))
	case 6:
		if at == nil {
			return fmt.Sprintf("UPDATE %s SET %s = %s WHERE %[2]s = %s", table, w.table.id, w.table.ids(r).text, w.table.ids(r).text)
		}
	}
	columns, values := w.row(r, at)
	if columns == "" {
		return fmt.Sprintf("DELETE FROM %s WHERE %s = %s", table, w.table.id, w.table.ids(r).text)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, columns, values)
}

func (w *randomRun) assignments(r *rand.Rand, moves bool) string {
	var all []string
	if w.table.key != "" && moves && one(r, 3) {
		all = append(all, w.table.key+" = "+w.table.keys(r).text)
	}
	for _, c := range w.table.columns {
		if c.value != nil && one(r, 3) {
			all = append(all, c.name+" = "+c.value(r))
		}
	}
	if len(all) == 0 {
		return w.table.id + " = " + w.table.id
	}
	return strings.Join(all, ", ")
}

// row is a random row, which belongs to the shard if there is one. It is empty if none was found.
func (w *randomRun) row(r *rand.Rand, at *sharding.Target) (columns, values string) {
	id := w.table.ids(r)
	key := id
	if w.table.key != "" {
		key = w.table.keys(r)
	}
	for try := 0; at != nil; try++ {
		if try == 50 {
			return "", ""
		}
		to, err := w.conf.Target(key.key)
		if err == nil && to == *at && !w.elsewhere(id, at) {
			break
		}
		id = w.table.ids(r)
		if key = id; w.table.key != "" {
			key = w.table.keys(r)
		}
	}
	names, texts := []string{w.table.id}, []string{id.text}
	if w.table.key != "" {
		names, texts = append(names, w.table.key), append(texts, key.text)
	}
	for _, c := range w.table.columns {
		if c.value != nil && !one(r, 6) {
			names, texts = append(names, c.name), append(texts, c.value(r))
		}
	}
	return strings.Join(names, ", "), strings.Join(texts, ", ")
}

// elsewhere reports whether another shard has the id, which generators would not give twice.
func (w *randomRun) elsewhere(id randomKey, at *sharding.Target) bool {
	for _, other := range w.conf.Map.Targets() {
		var n int
		if other == *at {
			continue
		}
		if err := w.shards[other.DB].QueryRow("SELECT COUNT(*) FROM " + other.Table + " WHERE " + w.table.id + " = " + id.text).Scan(&n); err != nil || n > 0 {
			return true
		}
	}
	return false
}

// compare fails unless the shards have exactly the bytes of the source.
func (w *randomRun) compare(t *testing.T, when, source, suffix string) {
	t.Helper()
	want, got := w.rows(t, w.source, source), w.onShards(t, suffix)
	if slices.Equal(want, got) {
		return
	}
	t.Errorf("%s: the source has %d rows, the shards %d", when, len(want), len(got))
	reportMissing(t, "only on the source", want, got)
	reportMissing(t, "only on a shard", got, want)
}

func (w *randomRun) onShards(t *testing.T, suffix string) (all []string) {
	t.Helper()
	for _, at := range w.conf.Map.Targets() {
		all = append(all, w.rows(t, w.shards[at.DB], at.Table+suffix)...)
	}
	slices.Sort(all)
	return all
}

func (w *randomRun) rows(t *testing.T, db *sql.DB, table string) (all []string) {
	t.Helper()
	conn := w.comparing(t, db)
	defer func() { _ = conn.Close() }()
	parts := []string{"SELECT CONCAT_WS('|', " + w.table.id + "+0"}
	if w.table.key != "" {
		parts = append(parts, w.table.key)
	}
	for _, c := range w.table.columns {
		if c.value == nil && w.computed {
			continue
		}
		parts = append(parts, "COALESCE("+c.bytes+", 'NULL')")
	}
	all = database.Texts(t, conn, strings.Join(parts, ", ")+") FROM "+table)
	slices.Sort(all)
	return all
}

func (w *randomRun) comparing(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for setting := range strings.SplitSeq(w.table.speaks.pinned, "; ") {
		if _, err := conn.ExecContext(t.Context(), setting); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

// sameShapes fails unless the tables of the shards are defined as the source's is.
func (w *randomRun) sameShapes(t *testing.T) {
	t.Helper()
	shape := func(db *sql.DB, table string) []string {
		conn := w.comparing(t, db)
		defer func() { _ = conn.Close() }()
		all, err := w.table.speaks.shape(t.Context(), conn, table)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		return all
	}
	want := shape(w.source, "odd_old")
	for _, at := range w.conf.Map.Targets() {
		got := shape(w.shards[at.DB], at.Table)
		if !slices.Equal(want, got) {
			t.Errorf("%s is defined otherwise than the source's table", at)
			reportMissing(t, "only on the source", want, got)
			reportMissing(t, "only on a shard", got, want)
		}
	}
}

// lines reads the rows of queries, whose columns are one text each.
func lines(ctx context.Context, conn *sql.Conn, queries ...string) (all []string, err error) {
	for _, query := range queries {
		err = errors.Join(err, dialect.Each(ctx, conn, func(rows *sql.Rows) error {
			var line string
			err := rows.Scan(&line)
			all = append(all, line)
			return err
		}, query))
	}
	return all, err
}

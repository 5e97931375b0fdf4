// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
)

// history is a random sequence of works on a home database and two shards. Each statement contains
// the number of its work, so that the sent statements can be assigned.
type history struct {
	*cluster
	*rand.Rand
	spans bool
	last  int64               // id that was given
	works []*work             // all of them
	there map[string]struct{} // what must be stored
}

// work is one transaction, or one statement outside of any.
type work struct {
	number    int
	inTx      bool
	committed bool
	canceled  bool     // before its end
	home      int64    // its keys are mostly of this parity, which is that of a database
	wrote     []string // what it has stored, as far as it was not rolled back
	names     int      // of savepoints
}

func (w *work) mark() string { return fmt.Sprintf("work %d;", w.number) }

var (
	errHistory   = errors.New("the program gives up")
	panicHistory = "the program panics"
)

// key returns a key, usually of the work's database.
func (h *history) key(w *work) int64 {
	h.last++
	key := 4*h.last + 2*h.Int64N(2) + w.home
	if h.IntN(6) == 0 {
		key ^= 1
	}
	return key
}

// statement executes a random statement, and returns its error.
func (h *history) statement(w *work, tx *gorm.DB) error {
	switch h.IntN(10) {
	case 0, 1:
		return h.create(w, tx, h.key(w))
	case 2:
		return h.create(w, tx, h.key(w), h.key(w))
	case 3:
		return tx.Where("note = ?", w.mark()).Find(&presetOrder{}, h.key(w)).Error
	case 4:
		return tx.Where("id IN ? AND note = ?", []int64{h.key(w), h.key(w)}, w.mark()).Find(&[]presetOrder{}).Error
	case 5:
		return tx.Model(&presetOrder{}).Where("id = ? AND note = ?", h.key(w), w.mark()).Update("user_id", 1).Error
	case 6:
		return tx.WithContext(sharding.OnKey(tx.Statement.Context, "orders", h.key(w))).Exec("UPDATE orders SET user_id = 2 WHERE note = ?", w.mark()).Error
	case 7:
		return h.atHome(w, tx)
	case 8:
		_, err := readRows(tx.Model(&presetOrder{}).Select("note").Where("id = ? AND note = ?", h.key(w), w.mark()))
		return err
	}
	err := tx.Create(&presetOrder{ID: 2 + w.home, Note: w.mark()}).Error // which is there
	if err == nil {
		err = errors.New("a key was taken twice")
	}
	return err
}

func (h *history) create(w *work, tx *gorm.DB, ids ...int64) error {
	list := make([]presetOrder, len(ids))
	var names []string
	for i, id := range ids {
		list[i] = presetOrder{ID: id, Note: w.mark()}
		names = append(names, fmt.Sprint("order ", id))
	}
	err := tx.Create(&list).Error
	if err == nil {
		w.wrote = append(w.wrote, names...)
	}
	return err
}

func (h *history) atHome(w *work, tx *gorm.DB) error {
	u := User{Name: fmt.Sprint(w.mark(), len(w.wrote))}
	err := tx.Create(&u).Error
	if err == nil {
		w.wrote = append(w.wrote, "user "+u.Name)
	}
	return err
}

// steps executes some statements, and other events of a transaction.
func (h *history) steps(t *testing.T, w *work, tx *gorm.DB, depth int) {
	t.Helper()
	for range h.IntN(5) {
		var err error
		switch h.IntN(8) {
		case 0:
			if depth < 3 {
				err = h.nested(t, w, tx, depth)
			}
		case 1:
			err = h.savepoint(t, w, tx, depth)
		case 2:
			ended, cancel := context.WithCancel(tx.Statement.Context)
			cancel()
			err = tx.WithContext(ended).Where("note = ?", w.mark()).Find(&presetOrder{}, h.key(w)).Error
		default:
			err = h.statement(w, tx)
		}
		h.expected(t, err)
	}
}

// expected fails the test for an error that the history does not explain.
func (h *history) expected(t *testing.T, err error) {
	t.Helper()
	var route *sharding.RouteError
	crossing := errors.As(err, &route) && errors.Is(err, sharding.ErrCrossDatabase) && !h.spans
	canceled := err != nil && (errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "interrupted")) // so says SQLite
	if err != nil && !crossing && !canceled && !errors.Is(err, sql.ErrTxDone) && !strings.Contains(err.Error(), "UNIQUE") {
		t.Error(err)
	}
}

// nested is a nested transaction, which is a savepoint.
func (h *history) nested(t *testing.T, w *work, tx *gorm.DB, depth int) error {
	before := len(w.wrote)
	end := h.IntN(4)
	failed := h.outcome(func() error {
		return tx.Transaction(func(tx *gorm.DB) error {
			h.steps(t, w, tx, depth+1)
			return h.give(end)
		})
	})
	if failed != nil {
		w.wrote = w.wrote[:before]
	}
	if errors.Is(failed, errHistory) {
		return nil
	}
	return failed
}

// give ends a transaction's function in a random way.
func (h *history) give(end int) error {
	switch end {
	case 0:
		return errHistory
	case 1:
		panic(panicHistory)
	}
	return nil
}

// outcome runs a transaction and returns its error, or errHistory for a panic.
func (h *history) outcome(run func() error) (err error) {
	defer func() {
		if p := recover(); p == panicHistory {
			err = errHistory
		} else if p != nil {
			panic(p)
		}
	}()
	return run()
}

// savepoint sets one and rolls back to it after some more steps, or does not.
func (h *history) savepoint(t *testing.T, w *work, tx *gorm.DB, depth int) error {
	w.names++
	name, before := fmt.Sprint("point_", w.names), len(w.wrote)
	if err := tx.SavePoint(name).Error; err != nil || depth >= 3 {
		return err
	}
	h.steps(t, w, tx, depth+1)
	if h.IntN(2) == 0 {
		return nil
	}
	if err := tx.RollbackTo(name).Error; err != nil {
		return err
	}
	w.wrote = w.wrote[:before]
	return nil
}

// run executes one work in one of the usual ways of programs.
func (h *history) run(t *testing.T) {
	t.Helper()
	w := &work{number: len(h.works) + 1, home: h.Int64N(2)}
	h.works = append(h.works, w)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	db := h.WithContext(ctx).Session(&gorm.Session{PrepareStmt: h.IntN(3) == 0, SkipDefaultTransaction: h.IntN(3) == 0})
	switch h.IntN(5) {
	case 0:
		err := h.statement(w, db)
		h.expected(t, err)
		w.committed = err == nil
	case 1, 2:
		end := h.IntN(6)
		err := h.outcome(func() error {
			return db.Transaction(func(tx *gorm.DB) error {
				w.inTx = true
				h.steps(t, w, tx, 0)
				return h.give(end)
			})
		})
		w.committed = err == nil
	default:
		h.byHand(t, w, db.Begin(), cancel)
	}
	h.idle(t)
	if w.committed {
		for _, name := range w.wrote {
			h.there[name] = struct{}{}
		}
	}
}

// byHand ends a transaction itself, or by its context, and continues to use it.
func (h *history) byHand(t *testing.T, w *work, tx *gorm.DB, cancel func()) {
	t.Helper()
	w.inTx = true
	h.steps(t, w, tx, 0)
	switch h.IntN(4) {
	case 0:
		h.expected(t, tx.Rollback().Error)
	case 1:
		cancel()
		w.canceled = true
		h.steps(t, w, tx, 0)
		w.committed = tx.Commit().Error == nil
	default:
		err := tx.Commit().Error
		h.expected(t, err)
		w.committed = err == nil
	}
	before := len(w.wrote)
	for _, err := range []error{h.create(w, tx, h.key(w)), tx.SavePoint("late").Error, tx.Commit().Error, tx.Rollback().Error} {
		if err == nil {
			t.Errorf("work %d: a transaction goes on after its end", w.number)
		}
	}
	w.wrote = w.wrote[:before]
}

// span is the statements of a connection between BEGIN and its end.
type span struct {
	db   string
	work int // 0 while no statement bears a mark
}

var marked = regexp.MustCompile(`work (\d+);`)

// ends reads the sent statements, and returns how the spans of each work ended.
func (h *history) ends(t *testing.T, events []string) map[int][]string {
	t.Helper()
	open, ends := map[string]*span{}, map[int][]string{}
	for _, event := range events {
		conn, what, _ := strings.Cut(event, ": ")
		db, _, _ := strings.Cut(conn, "#")
		now := open[conn]
		switch {
		case what == "BEGIN" && now == nil:
			open[conn] = &span{db: db}
		case (what == "COMMIT" || what == "ROLLBACK") && now != nil:
			ends[now.work] = append(ends[now.work], db+" "+what)
			delete(open, conn)
		case what == "BEGIN", what == "COMMIT", what == "ROLLBACK":
			t.Errorf("%s: %s in %+v", conn, what, now)
		case strings.HasPrefix(what, "SAVEPOINT"), strings.HasPrefix(what, "ROLLBACK TO"):
			if now == nil {
				t.Errorf("%s: %s outside of a transaction", conn, what)
			}
		default:
			h.belongs(t, now, event)
		}
	}
	if len(open) > 0 {
		t.Errorf("never ended: %v", slices.Collect(maps.Keys(open)))
	}
	return ends
}

// belongs checks that a statement is in the transaction of its work.
func (h *history) belongs(t *testing.T, now *span, event string) {
	t.Helper()
	mark := marked.FindStringSubmatch(event)
	if mark == nil {
		return // it is prepared
	}
	number, _ := strconv.Atoi(mark[1])
	switch {
	case now == nil:
		if h.works[number-1].inTx {
			t.Errorf("outside of its transaction: %s", event)
		}
	case now.work == 0:
		now.work = number
	case now.work != number:
		t.Errorf("in the transaction of work %d: %s", now.work, event)
	}
}

// check fails unless each transaction ended once on each of its databases, in the way that the
// program was told, and only committed rows exist.
func (h *history) check(t *testing.T) {
	t.Helper()
	ends := h.ends(t, h.rec.take())
	for _, w := range h.works {
		seen := map[string]bool{}
		for _, end := range ends[w.number] {
			db, how, _ := strings.Cut(end, " ")
			if seen[db] || w.committed != (how == "COMMIT") || w.committed && w.canceled {
				t.Errorf("work %d, committed %t: ended as %v", w.number, w.committed, ends[w.number])
			}
			seen[db] = true
		}
		if len(seen) > 1 && !h.spans {
			t.Errorf("work %d was on several databases: %v", w.number, ends[w.number])
		}
	}
	if got := h.stored(t); !maps.Equal(got, h.there) {
		t.Errorf("%d rows, not %d", len(got), len(h.there))
	}
}

// idle fails unless all connections are in their pools. A goroutine releases the connection of a
// transaction whose context has ended.
func (h *history) idle(t *testing.T) {
	t.Helper()
	pools := map[string]*sql.DB{"home": h.home, "db0": h.router.DB("db0"), "db1": h.router.DB("db1")}
	for name, db := range pools {
		testwait.Until(t, "no connection of "+name+" is in use", func() bool { return db.Stats().InUse == 0 })
	}
}

// stored returns the rows that the works have left.
func (h *history) stored(t *testing.T) map[string]struct{} {
	t.Helper()
	found := map[string]struct{}{}
	var orders []presetOrder
	var names []string
	err := errors.Join(
		h.WithContext(sharding.AllShards(t.Context())).Where("id > 8").Find(&orders).Error,
		h.Model(&User{}).Pluck("name", &names).Error)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range orders {
		found[fmt.Sprint("order ", o.ID)] = struct{}{}
	}
	for _, name := range names {
		found["user "+name] = struct{}{}
	}
	return found
}

// TestEachBeginHasOneEndOnItsOwnDatabase runs random histories of transactions, savepoints,
// failures, panics and contexts that end, and reads the statements that the databases got. The
// number of a failing history repeats it.
func TestEachBeginHasOneEndOnItsOwnDatabase(t *testing.T) {
	histories, works := 24, 40
	if effort.Race {
		histories = 6
	}
	for seed := range uint64(histories) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			mode := []sharding.TxMode{sharding.SingleShard, sharding.BestEffort}[seed%2]
			h := &history{
				cluster: newCluster(t, sharding.Transactions(mode)), Rand: rand.New(rand.NewPCG(seed, 7)),
				spans: mode == sharding.BestEffort, there: map[string]struct{}{},
			}
			h.seed(t)
			h.rec.args, h.rec.numbered = true, true
			for range works {
				h.run(t)
			}
			h.check(t)
		})
	}
}

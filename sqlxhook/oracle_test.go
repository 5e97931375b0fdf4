// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// sequence is a generator whose next id can be set.
type sequence struct{ last int64 }

func (s *sequence) Next(context.Context) (int64, error) {
	s.last++
	return s.last, nil
}

// noted is a row of the programs' table, on shards by user.
type noted struct {
	ID     int64   `db:"id" keygen:"note"`
	UserID int64   `db:"user_id"`
	Note   *string `db:"note"`
}

// shop is notes behind one *sqlx.DB.
type shop struct {
	h   *sqlxhook.Hook
	db  *sqlx.DB
	ids *sequence
}

const notesDDL = "CREATE TABLE %s (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, note TEXT)"

// newShops creates notes in four tables of two databases, and in one table.
func newShops(t *testing.T) (shards, whole *shop) {
	t.Helper()
	names, dbs := []string{"east", "west"}, sharding.DBs{}
	for d, name := range names {
		dbs[name] = open(t, fmt.Sprintf(notesDDL, "notes_"+strconv.Itoa(d)), fmt.Sprintf(notesDDL, "notes_"+strconv.Itoa(d+2))).DB
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "notes", Key: "user_id", Rule: sharding.Low(2), Map: spread(t, names, "notes_%d")},
		sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	_, db := routed(t, router, dbs["east"], keygen.Set{})
	return newShop(t, db, router), newShop(t, open(t, fmt.Sprintf(notesDDL, "notes")), nil)
}

// newShop cuts batches at two rows.
func newShop(t *testing.T, db *sqlx.DB, router *sharding.Router) *shop {
	t.Helper()
	s := &shop{db: db, ids: &sequence{}}
	var err error
	s.h, err = sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"note": s.ids}}, Router: router, MaxParams: 6,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// handle is the common part of *sqlx.DB and *sqlx.Tx.
type handle interface {
	sqlxhook.Execer
	sqlxhook.Queryer
	sqlx.ExtContext
}

// answer is the visible result of a statement.
type answer struct {
	Rows     any // as they were left, or read
	Result   sqlxhook.Result
	affected int64
}

// randomRows returns new rows, some of whose ids a row of their user may have.
func randomRows(r *rand.Rand) []noted {
	rows := make([]noted, 1+r.IntN(5))
	for i := range rows {
		rows[i].UserID = r.Int64N(6)
		if r.IntN(3) > 0 {
			note := fmt.Sprint("n", r.IntN(4))
			rows[i].Note = &note
		}
		if r.IntN(12) == 0 {
			rows[i].ID = 10_000*(1+rows[i].UserID) + r.Int64N(5)
		}
	}
	return rows
}

// statement executes a random statement.
func (s *shop) statement(ctx context.Context, r *rand.Rand, on handle) (a answer, err error) {
	const insert = "INSERT INTO notes (note, id, user_id) VALUES (:note, :id, :user_id)"
	rows := randomRows(r)
	a.Rows = rows
	switch one := &rows[0]; r.IntN(11) {
	case 0, 1:
		a.Result, err = s.h.Insert(ctx, on, "notes", rows)
	case 2:
		a.Result, err = s.h.Insert(ctx, on, "notes", one)
	case 3:
		a.Result, err = s.h.NamedExec(ctx, on, insert, rows)
	case 4:
		if s.ids.last > 0 && r.IntN(2) == 0 {
			one.ID = 1 + r.Int64N(s.ids.last) // of a row that any user may have
		}
		a.Result, err = s.h.NamedExec(ctx, on, insert+" ON CONFLICT (id) DO UPDATE SET note = excluded.note", rows)
	case 5:
		a.Result, err = s.h.NamedExec(ctx, on, "REPLACE INTO notes (id, user_id, note) VALUES (:id, :user_id, :note)", one)
	case 6:
		a.Result, err = s.h.NamedExec(ctx, on, "UPDATE notes SET note = :note WHERE user_id = :user_id AND id > :id", one)
	case 7:
		a.Result, err = s.h.NamedExec(ctx, on, "DELETE FROM notes WHERE user_id = :user_id AND id % 3 = 0", one)
	case 8:
		var found *sqlx.Rows
		if found, err = s.h.NamedQuery(ctx, on, insert+" RETURNING id, user_id, note", rows[:min(2, len(rows))]); err == nil {
			var got []noted
			err = sqlx.StructScan(found, &got)
			a.Rows = [][]noted{rows, got}
		}
	case 9:
		query, args, wrong := sqlx.In("SELECT * FROM notes WHERE user_id IN (?) OR note IS NULL ORDER BY id DESC LIMIT 7", []int64{one.UserID, 3})
		var got []noted
		err = errors.Join(wrong, sqlx.SelectContext(ctx, on, &got, query, args...))
		a.Rows = got
	default:
		var got []struct {
			Note *string `db:"note"`
			N    int64   `db:"n"`
		}
		err = sqlx.SelectContext(ctx, on, &got, "SELECT note, COUNT(*) AS n FROM notes GROUP BY note ORDER BY note")
		a.Rows = got
	}
	return answer{Rows: a.Rows, Result: sqlxhook.Result{IDs: a.Result.IDs}, affected: a.Result.RowsAffected}, err
}

// all are the notes in the order of their ids.
func (s *shop) all(t *testing.T) (rows []noted) {
	t.Helper()
	if err := s.db.Select(&rows, "SELECT * FROM notes ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	return rows
}

// pair is a program on shards, and on one table.
type pair struct {
	shards, whole *shop
	done, refused int
}

// both executes the same statement twice, unless the shards refuse it.
func (p *pair) both(t *testing.T, seed uint64, onShards, onWhole handle) {
	t.Helper()
	got, err := p.shards.statement(t.Context(), rand.New(rand.NewPCG(seed, 1)), onShards)
	var refused *sharding.RouteError
	if errors.As(err, &refused) {
		p.whole.ids.last = p.shards.ids.last
		p.refused++
		return
	}
	want, failed := p.whole.statement(t.Context(), rand.New(rand.NewPCG(seed, 1)), onWhole)
	if (err == nil) != (failed == nil) || !reflect.DeepEqual(got, want) {
		t.Fatalf("statement %d:\n%s, %v\none table:\n%s, %v", seed, show(got), err, show(want), failed)
	}
	p.done++
}

func show(a answer) string { return fmt.Sprintf("%+v %+v %d rows", a.Rows, a.Result.IDs, a.affected) }

// TestRandomProgramsLeaveWhatOneTableHas executes inserts with filled keys in split batches,
// upserts, changes, reads and transactions, on shards and on one table. The number of a failing
// program repeats it.
func TestRandomProgramsLeaveWhatOneTableHas(t *testing.T) {
	programs := 40
	if effort.Race {
		programs = 8
	}
	done, refused := 0, 0
	for program := range uint64(programs) {
		t.Run(strconv.FormatUint(program, 10), func(t *testing.T) {
			p := &pair{}
			p.shards, p.whole = newShops(t)
			r := rand.New(rand.NewPCG(program, 2))
			for step := range uint64(40) {
				seed := program*1000 + step*10
				if r.IntN(5) > 0 {
					p.both(t, seed, p.shards.db, p.whole.db)
					continue
				}
				a, b := p.shards.db.MustBegin(), p.whole.db.MustBegin()
				for i := range r.Uint64N(4) {
					p.both(t, seed+i, a, b)
				}
				end := (*sqlx.Tx).Commit
				if r.IntN(3) == 0 {
					end = (*sqlx.Tx).Rollback
				}
				if err := errors.Join(end(a), end(b)); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := p.shards.all(t), p.whole.all(t); !reflect.DeepEqual(got, want) {
				t.Errorf("%d rows, not %d", len(got), len(want))
			}
			done, refused = done+p.done, refused+p.refused
		})
	}
	if t.Logf("%d statements were answered, %d refused", done, refused); refused*5 > done {
		t.Error("too many are refused")
	}
}

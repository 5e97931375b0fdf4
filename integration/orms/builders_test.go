// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/Masterminds/squirrel"
	"github.com/blockloop/scan/v2"
	"github.com/doug-martin/goqu/v9"
	_ "github.com/doug-martin/goqu/v9/dialect/mysql"
	_ "github.com/doug-martin/goqu/v9/dialect/sqlite3"
	"github.com/georgysavva/scany/v2/sqlscan"
)

// scanned is a row as scany, scan and goqu read it.
type scanned struct {
	ID     int64          `db:"id"`
	UserID int64          `db:"user_id"`
	Note   sql.NullString `db:"note"`
	Amount int64          `db:"amount"`
}

// buildAlike runs a program on the routed database and on one table. It must say the same.
func buildAlike(t *testing.T, program func(t *testing.T, driver string, db *sql.DB, say func(what string, answer any, err error))) {
	t.Helper()
	onEachDatabase(t, func(t *testing.T, on opening) {
		shop := newShop(t, on, carrying)
		var said [2][]string
		for i, db := range []*sql.DB{shop.whole, shop.routed} {
			program(t, shop.driver, db, func(what string, answer any, err error) {
				if done, ok := answer.(sql.Result); ok && err == nil {
					answer, err = done.RowsAffected()
				}
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				said[i] = append(said[i], fmt.Sprint(what, ": ", answer))
			})
		}
		for i, got := range said[1] {
			if want := said[0][i]; got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		}
	})
}

func TestSquirrelWithScanyAndScanWorksOnShardsAsOnOneTable(t *testing.T) {
	buildAlike(t, func(t *testing.T, driver string, db *sql.DB, say func(what string, answer any, err error)) {
		t.Helper()
		ctx, build := t.Context(), squirrel.StatementBuilder.RunWith(squirrel.NewStmtCache(db))
		for user := range int64(8) {
			done, err := build.Insert("orders").Columns("id", "user_id", "amount", "created_at").Values(user<<2+user%4, user, 10*user, morning).ExecContext(ctx)
			say("insert", done, err)
		}
		done, err := build.Insert("orders").Columns("id", "user_id", "note", "amount", "created_at").
			Values(100<<2+1, 1, "a", 1, morning).Values(101<<2+1, 5, nil, 1, morning).ExecContext(ctx)
		say("insert two", done, err)
		rows := squirrel.Select("id", "user_id", "note", "amount").From("orders").OrderBy("id")
		locking := rows.Where(squirrel.Eq{"user_id": 3})
		if driver == "mysql" {
			locking = locking.Suffix("FOR UPDATE")
		}
		queries := map[string]squirrel.SelectBuilder{
			"key": rows.Where(squirrel.Eq{"user_id": 3}), "keys": rows.Where(squirrel.Eq{"user_id": []int{1, 2, 6}}), "no keys": rows.Where(squirrel.Eq{"user_id": []int{}}),
			"range": rows.Where(squirrel.And{squirrel.Gt{"amount": 10}, squirrel.Lt{"amount": 60}}), "page": rows.Limit(3).Offset(2),
			"either": rows.Where(squirrel.Or{squirrel.Eq{"user_id": 3}, squirrel.Like{"note": "a%"}}), "others": rows.Where(squirrel.NotEq{"user_id": []int{1, 2}}),
			"above the mean": rows.Where(squirrel.Expr("amount > (?)", squirrel.Select("AVG(amount)").From("orders"))),
			"derived":        squirrel.Select("*").FromSelect(rows.RemoveColumns().Columns("id", "user_id").Where(squirrel.Eq{"user_id": 3}), "o").OrderBy("id"),
			"locking":        locking,
		}
		for _, what := range slices.Sorted(maps.Keys(queries)) {
			text, args := queries[what].MustSql()
			var all, same []scanned
			err := sqlscan.Select(ctx, db, &all, text, args...)
			say(what, all, err)
			found, err := db.QueryContext(ctx, text, args...) //nolint:rowserrcheck // scan returns their error
			say(what, nil, err)
			if err := scan.Rows(&same, found); err != nil || fmt.Sprint(same) != fmt.Sprint(all) {
				t.Errorf("%s: %v, %v\nwant %v", what, same, err, all)
			}
		}
		var one scanned
		say("one", &one, sqlscan.Get(ctx, db, &one, "SELECT id, user_id, note, amount FROM orders WHERE user_id = ?", 2))
		say("none", sqlscan.NotFound(sqlscan.Get(ctx, db, &one, "SELECT id FROM orders WHERE user_id = ?", 200)), nil)
		done, err = build.Update("orders").Set("amount", squirrel.Expr("amount + ?", 1)).Where(squirrel.Eq{"user_id": 4}).ExecContext(ctx)
		say("update", done, err)
		done, err = build.Delete("orders").Where(squirrel.Eq{"user_id": 7}).ExecContext(ctx)
		say("delete", done, err)
	})
}

func TestGoquWorksOnShardsAsOnOneTable(t *testing.T) {
	buildAlike(t, func(t *testing.T, driver string, db *sql.DB, say func(what string, answer any, err error)) {
		t.Helper()
		ctx, build := t.Context(), goqu.New(map[string]string{"sqlite": "sqlite3", "mysql": "mysql"}[driver], db)
		for i, prepared := range []bool{false, true} {
			row := func(id, user int64, amount int) goqu.Record {
				return goqu.Record{"id": id, "user_id": user, "note": "it's \\ \"q\" `b` ?", "amount": amount, "created_at": morning}
			}
			insert := build.Insert("orders").Prepared(prepared)
			for user := range int64(6) {
				done, err := insert.Rows(row(int64(i)<<8+user<<2+user%4, user, 10*int(user))).Executor().ExecContext(ctx)
				say("insert", done, err)
			}
			done, err := insert.Rows(row(3<<2+3, 3, 1)).OnConflict(goqu.DoUpdate("id", goqu.Record{"amount": 77})).Executor().ExecContext(ctx)
			say("upsert", done, err)
			done, err = insert.Rows(row(3<<2+3, 3, 1)).OnConflict(goqu.DoNothing()).Executor().ExecContext(ctx)
			say("ignore", done, err)
			from, id := build.From("orders").Prepared(prepared), goqu.C("id").Asc()
			for _, query := range []*goqu.SelectDataset{
				from.Where(goqu.Ex{"user_id": 3}).Order(id), from.Where(goqu.C("user_id").In(1, 2, 5)).Order(id), from.Where(goqu.ExOr{"user_id": 3, "amount": 50}).Order(id),
				from.Where(goqu.C("amount").Between(goqu.Range(10, 40)), goqu.C("note").Eq("it's \\ \"q\" `b` ?")).Order(goqu.C("amount").Desc(), id).Limit(3).Offset(1),
				build.From(from.Where(goqu.C("user_id").Eq(3))).Prepared(prepared).Order(id), from.Where(goqu.C("created_at").Eq(morning)).Order(id).Limit(2),
			} {
				var all []scanned
				err := query.Select("id", "user_id", "note", "amount").ScanStructsContext(ctx, &all)
				say("select", all, err)
			}
			var some []scanned
			in := from.Where(goqu.C("user_id").In(build.From("orders").Select("user_id").Where(goqu.C("amount").Gt(20)))).Order(id).Select("id", "user_id", "note", "amount")
			if err := in.ScanStructsContext(ctx, &some); driver != "sqlite" { // it is IN ((SELECT …)), of which older versions of SQLite read one row
				say("in a subquery", some, err)
			}
			n, err := from.Where(goqu.C("amount").Gte(40)).CountContext(ctx)
			say("count", n, err)
			var sums []struct {
				UserID int64 `db:"user_id"`
				Sum    int64 `db:"sum"`
			}
			err = from.Select("user_id", goqu.SUM("amount").As("sum")).GroupBy("user_id").Having(goqu.SUM("amount").Gt(10)).
				Order(goqu.C("sum").Desc(), goqu.C("user_id").Asc()).ScanStructsContext(ctx, &sums)
			say("groups", sums, err)
			say("transaction", nil, build.WithTx(func(tx *goqu.TxDatabase) error {
				_, err := tx.Update("orders").Prepared(prepared).Set(goqu.Record{"amount": goqu.L("amount + 1")}).Where(goqu.C("user_id").Eq(2)).Executor().ExecContext(ctx)
				return err
			}))
			done, err = build.Delete("orders").Prepared(prepared).Where(goqu.C("id").In(1<<2+1, 5<<2+1)).Executor().ExecContext(ctx)
			say("delete", done, err)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// memberTwins returns a routed database with members whose id and email lead to no shard,
// and one with a single table.
func memberTwins(t *testing.T, open namedDatabase, mode sharding.TxMode) (routed, whole *sql.DB) {
	t.Helper()
	dbs, whole := sharding.DBs{"a": open(t, "sought_a"), "b": open(t, "sought_b")}, open(t, "sought_whole")
	m, err := sharding.Spread([]string{"a", "b"}, 4, "sought_members_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+changes.MemberColumns)
	}
	database.Exec(t, whole, "CREATE TABLE members"+changes.MemberColumns)
	router, err := sharding.New(dbs, sharding.Transactions(mode), sharding.Table{Name: "members", Key: "user_id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads})
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed, whole
}

// On MySQL and MariaDB, statements that depend on a row with the same id or email leave
// what one table has, or are refused because another shard has the row.
func TestRandomUpsertsFindTheRowsOfAllShards(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := memberTwins(t, open, sharding.BestEffort)
			programs := effort.Cases(150, 20_000)
			done := 0
			m := &changes.Members{Maker: &changes.Maker{}, Slots: 4, IsRefusal: func(err error) bool {
				return errors.Is(err, sharding.ErrKeyChange) || errors.Is(err, sharding.ErrCrossShard)
			}}
			for seed := range uint64(programs) {
				m.Rand = rand.New(rand.NewPCG(seed, 8))
				n, err := m.Program(t.Context(), routed, whole)
				if done += n; err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if seed%8 == 0 {
					for _, db := range []*sql.DB{routed, whole} {
						database.Exec(t, db, "DELETE FROM members WHERE user_id IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)")
					}
				}
			}
			if t.Logf("%d statements, and %d refused with reason", done, m.Refused); done < 3*programs || m.Refused < programs/4 {
				t.Error("too few of each")
			}
		})
	}
}

// The driver tells the rows that an UPDATE has changed, not those that it has found.
func TestAModelWhoseRowIsAsItWasHasNoStaleKey(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := memberTwins(t, open, sharding.SingleShard)
			database.Exec(t, routed, "INSERT INTO members (id, user_id, paid) VALUES (7, 1, 3)")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ctx = writehint.With(ctx, writehint.Hint{Table: "members", Keyed: true})
			tx, err := routed.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			const update = "UPDATE members SET paid = 3 WHERE id = ? AND user_id = ?"
			if _, err := tx.ExecContext(ctx, update, 7, 1); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			for _, user := range []int{2, 5} {
				if _, err := routed.ExecContext(ctx, update, 7, user); !errors.Is(err, sharding.ErrKeyChange) {
					t.Errorf("of user %d: %v", user, err)
				}
			}
		})
	}
}

// MariaDB returns the rows that INSERT IGNORE stores, in no fixed place.
func TestTheRowsThatAreNotLeftOutReturnInTheirOrder(t *testing.T) {
	routed, whole := memberTwins(t, writing(t)["MariaDB"], sharding.BestEffort)
	const insert = "INSERT IGNORE INTO members (id, user_id, paid, email) VALUES (7, 3, 1, ?), (5, 2, 2, NULL), (6, 1, 3, NULL), (9, 1, 4, 'c') RETURNING paid, CONCAT(id, email)"
	for _, db := range []*sql.DB{routed, whole} {
		database.Exec(t, db, "INSERT INTO members (id, user_id, paid) VALUES (5, 2, 0)")
		rows, err := db.QueryContext(t.Context(), insert, "b")
		if err != nil {
			t.Fatal(err)
		}
		var paid []int
		for rows.Next() {
			var n int
			var email sql.NullString
			if err := rows.Scan(&n, &email); err != nil {
				t.Fatal(err)
			}
			paid = append(paid, n)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || !slices.Equal(paid, []int{1, 3, 4}) { //nolint:sqlclosecheck // of each in turn
			t.Error(paid, err)
		}
	}
}

// Writers of the same rows on two databases meet on the first of these, and one waits for
// the other; none holds a row that the other needs to go on.
func TestWritersOfTheSameRowsOnTwoDatabasesGoOn(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := memberTwins(t, open, sharding.BestEffort)
			database.Exec(t, routed, "INSERT INTO members (id, user_id, paid) VALUES (1, 1, 0), (2, 2, 0)")
			const writers, times = 4, 20
			errs := make(chan error)
			for writer := range writers {
				keys := []any{1, 2}
				if writer%2 > 0 {
					slices.Reverse(keys)
				}
				go func() {
					var err error
					for range times {
						_, one := routed.ExecContext(t.Context(), "UPDATE members SET paid = paid + 1 WHERE user_id IN (?, ?)", keys...)
						err = errors.Join(err, one)
					}
					errs <- err
				}()
			}
			for range writers {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			var paid int
			if err := routed.QueryRowContext(t.Context(), "SELECT SUM(paid) FROM members").Scan(&paid); err != nil || paid != 2*writers*times {
				t.Error(paid, err)
			}
		})
	}
}

func TestThePrimaryKeyIsTheFirstUniqueKey(t *testing.T) {
	const table = "CREATE TABLE uniquely (a INT NOT NULL, note VARCHAR(40), z INT NOT NULL, y INT NOT NULL, n INT, UNIQUE (a), UNIQUE (a, n), PRIMARY KEY (z, y))"
	dbs := map[string]*sql.DB{"PostgreSQL": database.Postgres(server.SharePostgres(t))(t)}
	for name, open := range writing(t) {
		dbs[name] = open(t, "uniquely")
	}
	for name, db := range dbs {
		database.Exec(t, db, table)
		if name == "PostgreSQL" {
			database.Exec(t, db, "CREATE UNIQUE INDEX b ON uniquely (lower(note))")
			database.Exec(t, db, "CREATE UNIQUE INDEX c ON uniquely (y) WHERE n IS NULL")
		} else {
			database.Exec(t, db, "CREATE UNIQUE INDEX b ON uniquely (note(10))")
		}
		d, err := dialect.Detect(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := dialect.UniqueKeys(t.Context(), db, d, "uniquely")
		want := map[string]dialect.Key{
			"z, y": {Columns: []string{"z", "y"}, Primary: true, Total: true}, "a": {Columns: []string{"a"}, Total: true},
			"a, n": {Columns: []string{"a", "n"}}, "": {Columns: []string{""}},
		}
		if name == "PostgreSQL" {
			want["y"] = dialect.Key{Columns: []string{"y"}, Partial: true}
		}
		found := map[string]dialect.Key{}
		for _, key := range keys {
			found[strings.Join(key.Columns, ", ")] = key
		}
		if err != nil || !reflect.DeepEqual(found, want) || !keys[0].Primary {
			t.Errorf("%s: %v, %v, want %v", name, keys, err, want)
		}
	}
}

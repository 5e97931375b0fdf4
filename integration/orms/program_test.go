// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

// order is a row as the program sees it, whatever stores it.
type order struct {
	ID, UserID int64
	Note       *string
	Amount     int64
	PaidAt     *time.Time
	CreatedAt  time.Time
}

// String leaves out what is NULL.
func (o order) String() string {
	text := fmt.Sprintf("%d of %d, %d", o.ID, o.UserID, o.Amount)
	if o.Note != nil {
		text += ", " + *o.Note
	}
	if o.PaidAt != nil {
		text += ", paid " + clock(*o.PaidAt)
	}
	return text + ", " + clock(o.CreatedAt)
}

// clock is a time of the day of the test.
func clock(at time.Time) string { return at.UTC().Format("15:04:05.000000") }

// store is what a library has to do for the program.
type store interface {
	reading
	writing
	// transaction runs the function on a store in a transaction, which is committed
	// unless the function fails.
	transaction(ctx context.Context, do func(store) error) error
}

type reading interface {
	byID(ctx context.Context, id int64) (order, error)
	ofUsers(ctx context.Context, users ...int64) ([]order, error) // user_id IN
	latest(ctx context.Context, limit, offset int) ([]order, error)
	since(ctx context.Context, at time.Time) ([]order, error)
	unpaid(ctx context.Context) ([]order, error) // paid_at and note are NULL
	count(ctx context.Context, least int64) (int64, error)
	skus(ctx context.Context, user int64) ([]string, error) // a join
	// ofUser reads by the sharding key with a statement that is prepared once.
	ofUser(ctx context.Context, users ...int64) ([][]order, error)
}

type writing interface {
	create(ctx context.Context, orders ...order) error // one statement, if the library has it
	createItem(ctx context.Context, id, order int64, sku string) error
	pay(ctx context.Context, user, id int64, at time.Time) (int64, error)
	payByID(ctx context.Context, id int64, at time.Time) error
	remove(ctx context.Context, user, id int64) (int64, error)
}

// A library makes a store of a database that knows only logical names.
type library func(t *testing.T, driver string, db *sql.DB, next func(ctx context.Context, user int64) (int64, error)) store

// worksAsOnOneTable runs the program on the routed database and on one that is not
// sharded; both have to answer as the program expects.
func worksAsOnOneTable(t *testing.T, open library) {
	t.Helper()
	onEachDatabase(t, func(t *testing.T, on opening) { worksAsOnOneTableOf(t, on, open) })
}

func worksAsOnOneTableOf(t *testing.T, on opening, open library) {
	t.Helper()
	shop := newShop(t, on, carrying)
	for name, db := range map[string]*sql.DB{"routed": shop.routed, "one table": shop.whole} {
		p := &program{store: open(t, shop.driver, db, shop.nextID()), fail: t.Fatal}
		p.run(t.Context())
		if !slices.Equal(p.said, answers) {
			t.Errorf("%s: %s\nwant %s", name, strings.Join(p.said, "\n"), strings.Join(answers, "\n"))
		}
	}
	shop.liesRight(t, 9)
}

// program is the test program of each library, with the expected results.
type program struct {
	store store
	said  []string
	fail  func(args ...any)
}

var morning = time.Date(2026, 11, 20, 8, 0, 0, 123456000, time.UTC)

func (p *program) run(ctx context.Context) {
	for user := range int64(8) {
		o := order{UserID: user, Amount: 10 * user, CreatedAt: morning.Add(time.Duration(user) * time.Minute)}
		if user%2 == 1 {
			o.Note = new("new")
		}
		p.check(p.store.create(ctx, o))
	}
	p.check(p.store.create(ctx, order{UserID: 9, CreatedAt: morning}, order{UserID: 11, CreatedAt: morning}))
	p.reads(ctx)
	p.joins(ctx)
	p.changes(ctx)
	p.transactions(ctx)
}

func (p *program) reads(ctx context.Context) {
	one, err := p.store.byID(ctx, 6<<2+1)
	p.say("by id", one, err)
	_, err = p.store.byID(ctx, 99)
	p.say("no such id", err)
	p.list("IN")(p.store.ofUsers(ctx, 1, 2, 7))
	p.list("latest")(p.store.latest(ctx, 3, 2))
	p.list("since")(p.store.since(ctx, morning.Add(330*time.Second)))
	p.list("unpaid")(p.store.unpaid(ctx))
	n, err := p.store.count(ctx, 40)
	p.say("count", n, err)
	all, err := p.store.ofUser(ctx, 0, 3, 100)
	p.say("prepared", all, err)
}

func (p *program) joins(ctx context.Context) {
	for i, sku := range []string{"tea", "cup"} {
		p.check(p.store.createItem(ctx, int64(i), 6<<2+1, sku))
	}
	skus, err := p.store.skus(ctx, 5)
	p.say("join", skus, err)
}

func (p *program) changes(ctx context.Context) {
	n, err := p.store.pay(ctx, 4, 5<<2, morning)
	p.say("update", n, err)
	n, err = p.store.pay(ctx, 4, 1000, morning)
	p.say("update of none", n, err)
	p.say("update by id", p.store.payByID(ctx, 6<<2+1, morning.Add(time.Hour)))
	p.list("paid")(p.store.ofUsers(ctx, 4, 5))
	n, err = p.store.remove(ctx, 3, 4<<2+3)
	p.say("delete", n, err)
}

// errStop ends a transaction.
var errStop = errors.New("stop")

func (p *program) transactions(ctx context.Context) {
	change := func(answer error) func(store) error {
		return func(in store) error {
			if err := in.create(ctx, order{UserID: 6, Amount: 1, CreatedAt: morning}); err != nil {
				return err
			}
			if _, err := in.remove(ctx, 6, 7<<2+2); err != nil {
				return err
			}
			left, err := in.ofUsers(ctx, 6)
			if p.say("inside", left, err); err != nil {
				return err
			}
			return answer
		}
	}
	err := p.store.transaction(ctx, change(errStop))
	p.say("rolled back", errors.Is(err, errStop))
	p.list("as before")(p.store.ofUsers(ctx, 6))
	p.say("committed", p.store.transaction(ctx, change(nil)))
	p.list("after it")(p.store.ofUsers(ctx, 6))
}

// answers are the results of one table.
var answers = []string{
	"by id: 25 of 5, 50, new, 08:05:00.123456",
	"no such id: none",
	"IN: 9 of 1, 10, new, 08:01:00.123456; 14 of 2, 20, 08:02:00.123456; 35 of 7, 70, new, 08:07:00.123456",
	"latest: 25 of 5, 50, new, 08:05:00.123456; 20 of 4, 40, 08:04:00.123456; 19 of 3, 30, new, 08:03:00.123456",
	"since: 30 of 6, 60, 08:06:00.123456; 35 of 7, 70, new, 08:07:00.123456",
	"unpaid: 4 of 0, 0, 08:00:00.123456; 14 of 2, 20, 08:02:00.123456; 20 of 4, 40, 08:04:00.123456; 30 of 6, 60, 08:06:00.123456; 37 of 9, 0, 08:00:00.123456; 43 of 11, 0, 08:00:00.123456",
	"count: 4",
	"prepared: [[4 of 0, 0, 08:00:00.123456] [19 of 3, 30, new, 08:03:00.123456] []]",
	"join: [cup tea]",
	"update: 1",
	"update of none: 0",
	"update by id: <nil>",
	"paid: 20 of 4, 40, paid, paid 08:00:00.123456, 08:04:00.123456; 25 of 5, 50, paid, paid 09:00:00.123456, 08:05:00.123456",
	"delete: 1",
	"inside: [46 of 6, 1, 08:00:00.123456]",
	"rolled back: true",
	"as before: 30 of 6, 60, 08:06:00.123456",
	"inside: [50 of 6, 1, 08:00:00.123456]",
	"committed: <nil>",
	"after it: 50 of 6, 1, 08:00:00.123456",
}

func (p *program) check(err error) {
	if err != nil {
		p.fail(err)
	}
}

// say notes an answer; a last argument that is no error is left out.
func (p *program) say(what string, answer ...any) {
	if len(answer) > 1 && answer[len(answer)-1] == nil {
		answer = answer[:len(answer)-1]
	}
	p.said = append(p.said, what+": "+strings.TrimSpace(fmt.Sprintln(answer...)))
}

func (p *program) list(what string) func([]order, error) {
	return func(orders []order, err error) {
		var texts []string
		for _, o := range orders {
			texts = append(texts, o.String())
		}
		if err != nil {
			texts = append(texts, err.Error())
		}
		p.say(what, strings.Join(texts, "; "))
	}
}

// errNone is what stores answer where there is no row.
var errNone = errors.New("none")

// liesRight fails unless each row of the program is only on the shard of its user.
func (s *shop) liesRight(t *testing.T, want int) {
	t.Helper()
	rows := 0
	for slot, at := range s.router.Targets("orders") {
		var all, right int
		err := s.dbs[at.DB].QueryRowContext(t.Context(), "SELECT COUNT(*), SUM(CASE WHEN user_id % 4 = "+strconv.Itoa(slot)+" THEN 1 ELSE 0 END) FROM "+at.Table).Scan(&all, &right)
		if err != nil || all == 0 || right != all {
			t.Errorf("%s: %d of %d rows belong there: %v", at, right, all, err)
		}
		rows += all
	}
	if rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
}

// refusesWhatNoShardAnswers runs statements that the routed database must refuse.
func refusesWhatNoShardAnswers(t *testing.T, open library) {
	t.Helper()
	onEachDatabase(t, func(t *testing.T, on opening) {
		shop := newShop(t, on) // ids lead nowhere
		s := open(t, shop.driver, shop.routed, func(_ context.Context, user int64) (int64, error) { return 100 + user, nil })
		for user := range int64(4) {
			if err := s.create(t.Context(), order{UserID: user, CreatedAt: morning}); err != nil {
				t.Fatal(err)
			}
		}
		if o, err := s.byID(t.Context(), 102); err != nil || o.UserID != 2 {
			t.Errorf("a read by an id that leads nowhere asks all shards: %v, %v", o, err)
		}
		if err := s.payByID(t.Context(), 103, morning); err != nil {
			t.Errorf("a write by an id that leads nowhere searches all shards: %v", err)
		}
		err := s.transaction(t.Context(), func(in store) error {
			if n, err := in.pay(t.Context(), 2, 102, morning); n != 1 || err != nil {
				return fmt.Errorf("the first database: %d, %w", n, err)
			}
			_, err := in.pay(t.Context(), 1, 101, morning)
			return err
		})
		if !errors.Is(err, sharding.ErrCrossDatabase) {
			t.Errorf("a transaction of two databases: %v", err)
		}
		err = s.transaction(t.Context(), func(in store) error {
			return in.create(t.Context(), order{UserID: 4, CreatedAt: morning}, order{UserID: 5, CreatedAt: morning})
		})
		if !errors.Is(err, sharding.ErrCrossDatabase) {
			t.Errorf("rows of two databases: %v", err)
		}
		if unpaid, err := s.unpaid(t.Context()); len(unpaid) != 3 || err != nil {
			t.Errorf("after it was refused: %v, %v", unpaid, err)
		}
	})
}

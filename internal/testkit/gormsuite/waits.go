// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
)

var waitTests = []test{
	{"ASourceOnTheSamePoolNeverDeadlocks", samePool},
	{"AssociationsNeedNoSecondConnection", samePoolAssociations},
	{"ASourceInMemoryNeedsNoSecondConnection", inMemory},
}

// fromPool is a source that needs a connection of the pool for each key.
type fromPool struct {
	db    *sql.DB
	drawn *atomic.Int64
}

func newFromPool(pool *sql.DB) fromPool { return fromPool{pool, new(atomic.Int64)} }

func (s fromPool) Next(ctx context.Context) (n int64, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM people").Scan(&n)
	return s.drawn.Add(1), err
}

// samePool creates rows with pools of one and of two connections, inside and outside a transaction.
// The create returns an id, or an error in time.
func samePool(t *testing.T, e *env) {
	const patience = 300 * time.Millisecond
	for _, size := range []int{1, 2} {
		pool := e.Open(t)
		pool.SetMaxOpenConns(size)
		db := e.open(t, pool, gorm.Config{}, gormplugin.Config{Generators: keygen.Set{Default: newFromPool(pool)}})
		outside, inside := Person{Name: fmt.Sprint("out", size)}, Person{Name: fmt.Sprint("in", size)}
		must(t, db.Create(&outside).Error)
		if outside.ID == 0 {
			t.Errorf("%d: no id", size)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		ended := make(chan error, 1)
		go func() {
			ended <- db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return tx.Create(&inside).Error })
		}()
		err := testwait.For(t, ended, "the end of a transaction whose context has ended")
		cancel()
		switch {
		case errors.Is(err, gormplugin.ErrInTransaction) && inside.ID == 0, err == nil && inside.ID != 0:
		case errors.Is(err, context.DeadlineExceeded): // it also ended the transaction, whose connection the source then used
		default:
			t.Errorf("%d: id %d, %v", size, inside.ID, err)
		}
		if size == 1 && err == nil {
			t.Error("a pool of one connection gave a second one")
		}
		must(t, db.Where("1 = 1").Delete(&Person{}).Error)
	}
}

// samePoolAssociations creates a row of every association with one connection: all keys are drawn
// before the transaction takes it.
func samePoolAssociations(t *testing.T, e *env) {
	pool := e.Open(t)
	pool.SetMaxOpenConns(1)
	source := newFromPool(pool)
	set := keygen.Set{Default: source, Named: map[string]keygen.Generator[int64]{"pet": source}}
	db := e.open(t, pool, gorm.Config{}, gormplugin.Config{Generators: set})
	ctx := testwait.Context(t)
	customers := []Customer{fullCustomer("a"), fullCustomer("b")}
	must(t, db.WithContext(ctx).Create(&customers).Error)
	same(t, "keys", source.drawn.Load(), 2*11)

	// No key is drawn for associations that the statement omits.
	must(t, db.WithContext(ctx).Omit("Pets", "Badges", "Company").Create(&[]Customer{fullCustomer("c")}).Error)
	must(t, db.WithContext(ctx).Select("Name").Create(&[]Customer{fullCustomer("d")}).Error)
	same(t, "keys", source.drawn.Load(), 2*11+6+1)
}

// inMemory creates rows inside a transaction that has the pool's only connection.
func inMemory(t *testing.T, e *env) {
	pool := e.Open(t)
	pool.SetMaxOpenConns(1)
	db := e.open(t, pool, gorm.Config{}, gormplugin.Config{})
	customer := fullCustomer("a")
	must(t, db.Transaction(func(tx *gorm.DB) error { return tx.Create(&customer).Error }))
	same(t, "id", customer.ID >= first, true)
}

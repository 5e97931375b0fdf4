package gormsuite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

var waitTests = []test{
	{"ASourceOnTheSamePoolNeverDeadlocks", samePool},
}

// fromPool is a source that needs a connection of the pool for each key.
type fromPool struct{ db *sql.DB }

func (s fromPool) Next(ctx context.Context) (n int64, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT COUNT(*) + 1 FROM people").Scan(&n)
	return n, err
}

// samePool creates with pools of one and of two connections, inside and outside
// a transaction: there is an id, or an error in time.
func samePool(t *testing.T, e *env) {
	const patience, grace = 300 * time.Millisecond, 100 * time.Millisecond
	for _, size := range []int{1, 2} {
		pool := e.Open(t)
		pool.SetMaxOpenConns(size)
		db := e.open(t, pool, gorm.Config{}, gormplugin.Config{Generators: keygen.Set{Default: fromPool{pool}}})
		outside, inside := Person{Name: fmt.Sprint("out", size)}, Person{Name: fmt.Sprint("in", size)}
		must(t, db.Create(&outside).Error)
		if outside.ID == 0 {
			t.Errorf("%d: no id", size)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		begin := time.Now()
		err := db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return tx.Create(&inside).Error })
		if took := time.Since(begin); took > patience+grace {
			t.Errorf("%d: took %v", size, took)
		}
		cancel()
		if (err == nil) != (inside.ID != 0) || err != nil && !errors.Is(err, gormplugin.ErrInTransaction) {
			t.Errorf("%d: id %d, %v", size, inside.ID, err)
		}
		if size == 1 && err == nil {
			t.Error("a pool of one connection gave a second one")
		}
		must(t, db.Where("1 = 1").Delete(&Person{}).Error)
	}
}

// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// stuck is a generator that waits for a connection that never becomes free.
var stuck = keygen.Func[int64](func(ctx context.Context) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
})

func TestAWaitInsideATransactionEndsWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fl, p := filling{inTx: true}, &keyColumn{}
		kind, err := keyfield.Of(reflect.TypeFor[int64](), keyfield.Tag{})
		if err != nil {
			t.Fatal(err)
		}
		gen, err := keyfield.Given(stuck, &kind)
		if err != nil {
			t.Fatal(err)
		}
		p.field, p.keys = &managed{Field: &schema.Field{Name: "ID"}, model: "Order"}, gen.NewKeys()
		begin := time.Now()
		err = fl.draw(t.Context(), p, 1)
		if !errors.Is(err, ErrInTransaction) || !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != txKeyTimeout {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestAContextWhoseDoneIsNotCalledSetsNoTimer(t *testing.T) {
	p := &lazyTimeout{Context: t.Context()}
	if _, limited := p.Deadline(); limited || p.Err() != nil || p.limited != nil {
		t.Error("a deadline was set")
	}
	p.end()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	q := &lazyTimeout{Context: ended}
	defer q.end()
	<-q.Done()
	if !errors.Is(q.Err(), context.Canceled) {
		t.Error(q.Err())
	}
}

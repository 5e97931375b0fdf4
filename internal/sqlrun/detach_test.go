package sqlrun_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/sqlrun"
)

func TestADetachableEndsWithItsParentUntilItIsDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		attached, detached := sqlrun.NewDetachable(parent), sqlrun.NewDetachable(parent)
		defer attached.End()
		if err := detached.Detach(); err != nil {
			t.Error(err)
		}
		<-attached.Done()
		synctest.Wait()
		if err := attached.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		if err := attached.Detach(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("detached too late: %v", err)
		}
		if err := detached.Err(); err != nil {
			t.Errorf("a detached one ended with %v", err)
		}
		detached.End()
		<-detached.Done()
	})
}

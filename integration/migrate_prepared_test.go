package integration_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A statement with arguments is prepared and executed in two steps, between which
// a job may begin or end.
func TestMigrationBeginsAndEndsWithoutAnErrorOfAPreparedStatement(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		failed, done := make([]error, 4), make([]int, 4)
		for i := range failed {
			wg.Go(func() {
				for ctx.Err() == nil && failed[i] == nil {
					_, err := s.source.ExecContext(context.Background(), "UPDATE orders SET note = ? WHERE id = ?", fmt.Sprint("by ", i, done[i]), i*20+1)
					if err != nil && strings.Contains(err.Error(), "1146") {
						failed[i] = err
					}
					done[i]++
				}
			})
		}
		j := s.job(t, "id")
		for range 10 {
			if err := j.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if err := j.Abort(t.Context()); err != nil {
				t.Error(err)
			}
		}
		cancel()
		wg.Wait()
		for i, err := range failed {
			if err != nil {
				t.Errorf("writer %d, after %d statements: %v", i, done[i], err)
			}
		}
	})
}

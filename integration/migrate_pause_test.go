package integration_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
)

// With closed shards to open again, to give one table its name back is shorter than to
// go on.
func TestALateSwitchIsUndoneWhereThatIsShorter(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 50)
		slow := false
		j := s.job(t, "id", func(c *migrate.Config) {
			c.Observe = func(step migrate.Step) {
				if slow && step.Name == migrate.StepRenamed {
					<-time.After(3 * time.Second)
				}
			}
		})
		if err := thereAndBack(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		slow = true
		done, err := j.Cutover(t.Context(), 3*time.Second)
		if isMariaDB(t, s.source) { // where there is no way back under the lock
			if err != nil || done.Over == 0 {
				t.Errorf("%+v, %v", done, err)
			}
			s.compare(t, "id", "orders_old", "")
			return
		}
		var late *migrate.PauseError
		if !errors.As(err, &late) {
			t.Fatalf("%+v, %v", done, err)
		}
		mustExec(t, s.source, "INSERT INTO orders (user_id, note) VALUES (1, 'goes on')")
		slow = false
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "id", "orders_old", "")
	})
}

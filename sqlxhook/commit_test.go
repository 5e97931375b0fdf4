package sqlxhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testshards"
	"github.com/shardid/shardid/sqlxhook"
)

func TestADeadlineDoesNotFallBetweenTwoCommits(t *testing.T) {
	copies := testshards.NewCopies(t, open(t).Driver())
	h, err := sqlxhook.New(sqlxhook.Config{Router: copies.Router, DriverName: "sqlite"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	copies.AfterCommit = func() {
		cancel()
		time.Sleep(50 * time.Millisecond) // in which the other one would be rolled back
	}
	color := map[string]any{"name": "blue"}
	if _, err := h.NamedExec(ctx, h.Shards(), "UPDATE colors SET name = :name", color); err != nil {
		t.Error(err)
	}
	if names := copies.Names(t); names != [2]string{"blue", "blue"} {
		t.Errorf("the copies are %v", names)
	}
	if _, err := h.NamedExec(ctx, h.Shards(), "UPDATE colors SET name = 'late'", color); err == nil {
		t.Error("a write after the deadline")
	}
	if names := copies.Names(t); names != [2]string{"blue", "blue"} {
		t.Errorf("the copies are %v", names)
	}
}

// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"testing"
	"time"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/testkit/testshards"
)

// Color has a copy in every database.
type Color struct {
	ID   int64
	Name string
}

func TestADeadlineDoesNotFallBetweenTwoCommits(t *testing.T) {
	copies := testshards.NewCopies(t, memory(t).Driver())
	home := memory(t)
	must(t, home, "CREATE TABLE colors (id INTEGER PRIMARY KEY, name TEXT)")
	db := openGORM(t, home)
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: copies.Router})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	copies.AfterCommit = func() {
		cancel()
		time.Sleep(50 * time.Millisecond) // in which the other one would be rolled back
	}
	if err := db.WithContext(ctx).Model(&Color{ID: 1}).Update("name", "blue").Error; err != nil {
		t.Error(err)
	}
	if names := copies.Names(t); names != [2]string{"blue", "blue"} {
		t.Errorf("the copies are %v", names)
	}
	if err := db.WithContext(ctx).Model(&Color{ID: 1}).Update("name", "late").Error; err == nil {
		t.Error("a write after the deadline")
	}
	if names := copies.Names(t); names != [2]string{"blue", "blue"} {
		t.Errorf("the copies are %v", names)
	}
}

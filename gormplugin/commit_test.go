// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/testkit/testshards"
)

// Color has a copy in every database.
type Color struct {
	ID   int64
	Name string
}

func TestADeadlineDoesNotFallBetweenTwoCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		copies := testshards.NewCopies(t, memory(t).Driver())
		home := memory(t)
		must(t, home, "CREATE TABLE colors (id INTEGER PRIMARY KEY, name TEXT)")
		db := openGORM(t, home)
		if err := db.Use(gormplugin.New(gormplugin.Config{Router: copies.Router})); err != nil {
			t.Fatal(err)
		}
		routed, err := db.DB()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = routed.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		copies.AfterCommit = func() {
			cancel()
			synctest.Wait() // until everything that the end of the context begins has ended: a rollback of the other one, too
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
	})
}

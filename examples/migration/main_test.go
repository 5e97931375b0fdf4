// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shardid/shardid/examples/internal/setup"
	"github.com/shardid/shardid/examples/internal/shoptest"
	"github.com/shardid/shardid/schema/migrate"
)

func TestCustomersOrderWhileTheirTablesBecomeShards(t *testing.T) {
	shoptest.OnEveryDatabase(t, moveUnderCustomers)
}

func moveUnderCustomers(t *testing.T, f setup.Flags) {
	t.Helper()
	s, err := openShop(t.Context(), f, 2_000)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	job, err := s.job()
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.handler(job)
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(handler)
	defer site.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	crowd := &customers{url: site.URL, users: s.users}
	bought := make(chan error, 1)
	go func() {
		err := crowd.buy(ctx)
		stop(err)
		bought <- err
	}()
	done := errors.New("all is moved")
	err = move(ctx, job, func() error {
		defer stop(done)
		return crowd.lookAgain(ctx)
	})
	stop(err)
	if bought := <-bought; !errors.Is(err, done) || !errors.Is(bought, done) {
		t.Fatalf("the move ended with %v, and the customers with %v", err, bought)
	}
	if err := crowd.lookAgain(t.Context()); err != nil {
		t.Error(err)
	}
	checkRows(t, s, 2_000+len(crowd.orders))
	checkPage(t, site.URL)
	status, err := job.Status(t.Context())
	if err != nil || status.Phase != migrate.PhaseSwitched {
		t.Errorf("%+v %v", status, err)
	}
}

// checkRows counts orders on the shards: all that were confirmed are there, and of those under
// way when the customers ended perhaps some; each table has rows, and ids of the generator are
// among them.
func checkRows(t *testing.T, s *shop, confirmed int) {
	t.Helper()
	rows, highest := 0, int64(0)
	for _, at := range s.router.Targets("orders") {
		var n int
		var id int64
		if err := s.router.DB(at.DB).QueryRowContext(t.Context(), "SELECT COUNT(*), MAX(id) FROM "+at.Table).Scan(&n, &id); err != nil || n == 0 {
			t.Errorf("%s has %d orders (%v)", at, n, err)
		}
		rows, highest = rows+n, max(highest, id)
	}
	if rows < confirmed || rows > confirmed+atOnce || highest < s.seeds["orders"] {
		t.Errorf("the shards have %d orders, and %d were confirmed; the highest id is %d, and the generator began at %d", rows, confirmed, highest, s.seeds["orders"])
	}
}

func checkPage(t *testing.T, url string) {
	t.Helper()
	page := shoptest.Get(t, url+"/debug/shardid/")
	for _, want := range []string{"orders_7", "switched"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package shoptest is the test that every shop passes, over HTTP.
package shoptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shardid/shardid/examples/internal/setup"
	"github.com/shardid/shardid/examples/internal/web"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
)

// Run tests a shop on SQLite, MariaDB and MySQL.
func Run(t *testing.T, open func(context.Context, *setup.Shop) (web.Shop, error)) {
	t.Helper()
	OnEveryDatabase(t, func(t *testing.T, f setup.Flags) {
		t.Helper()
		onShop(t, f, open)
	})
}

// OnEveryDatabase calls test with the flags of SQLite, MariaDB and MySQL, whose databases are
// empty.
func OnEveryDatabase(t *testing.T, test func(*testing.T, setup.Flags)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { test(t, setup.Flags{}) })
	t.Run("MariaDB", func(t *testing.T) {
		m := server.ShareMariaDB(t)
		test(t, databases(func(name string) string { m.Open(t, name); return m.DSN(name) }))
	})
	t.Run("MySQL", func(t *testing.T) {
		m := server.ShareMySQL(t)
		test(t, databases(func(name string) string { m.Open(t, name); return m.DSN(name) }))
	})
}

func databases(dsn func(name string) string) setup.Flags {
	return setup.Flags{East: dsn("east"), West: dsn("west")}
}

// Get returns the page at a URL.
func Get(t *testing.T, url string) string {
	t.Helper()
	return client{t, url}.get(http.StatusOK, "", nil)
}

func onShop(t *testing.T, f setup.Flags, open func(context.Context, *setup.Shop) (web.Shop, error)) {
	t.Helper()
	s, err := setup.Open(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	shop, err := open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	page, err := s.Page()
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(web.Handler(shop, page))
	defer site.Close()
	visit(t, client{t, site.URL}, s)
}

// visit sends the requests of customers.
func visit(t *testing.T, c client, s *setup.Shop) {
	t.Helper()
	var users []web.User
	for i := range 20 {
		u := web.User{Name: fmt.Sprintf("Customer %d", i), Email: fmt.Sprintf("c%d@example.org", i)}
		c.post(200, "/users", u, &u)
		users = append(users, u)
	}
	c.post(http.StatusConflict, "/users", web.User{Name: "Again", Email: "c3@example.org"}, nil)
	var found web.User
	if c.get(200, "/users?email=c3@example.org", &found); found != users[3] {
		t.Errorf("%+v, not %+v", found, users[3])
	}
	c.get(http.StatusNotFound, "/users?email=nobody@example.org", nil)

	slots := map[keygen.ID]bool{}
	for i, u := range users {
		o := web.Order{UserID: u.ID, Items: []web.Item{{ProductID: 1, Quantity: int64(i)}, {ProductID: 2, Quantity: 1}}}
		c.post(200, "/orders", o, &o)
		if o.ID%setup.Slots != u.ID%setup.Slots {
			t.Errorf("order %d does not carry the slot of user %d", o.ID, u.ID)
		}
		slots[o.ID%setup.Slots] = true
		var again web.Order
		c.get(200, "/orders/"+o.ID.String(), &again)
		if again.UserID != u.ID || len(again.Items) != 2 {
			t.Errorf("%+v", again)
		}
		var list []web.Order
		if c.get(200, "/users/"+u.ID.String()+"/orders", &list); len(list) != 1 || list[0].ID != o.ID || len(list[0].Items) != 2 {
			t.Errorf("%+v", list)
		}
	}
	if len(slots) != setup.Slots {
		t.Errorf("the orders are in %d slots", len(slots))
	}
	var best []web.Sold
	if c.get(200, "/bestsellers", &best); fmt.Sprint(best) != "[{apples 190} {pears 20}]" {
		t.Error(best)
	}
	for _, target := range s.Router.Targets("orders") {
		var n int
		if err := s.Router.DB(target.DB).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+target.Table).Scan(&n); err != nil || n == 0 {
			t.Errorf("%s has %d orders (%v)", target, n, err)
		}
	}
	if text := c.get(200, "/debug/shardid/", nil); !strings.Contains(text, "orders_7") {
		t.Error("the page does not show the shards")
	}
}

// client sends requests and checks the status of the responses.
type client struct {
	t   *testing.T
	url string
}

func (c client) post(want int, path string, v, into any) {
	c.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	c.do(http.MethodPost, path, bytes.NewReader(text), want, into)
}

func (c client) get(want int, path string, into any) string {
	c.t.Helper()
	return c.do(http.MethodGet, path, http.NoBody, want, into)
}

func (c client) do(method, path string, body io.Reader, want int, into any) string {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want {
		c.t.Fatalf("%s %s: %d, not %d: %s (%v)", method, path, answer.StatusCode, want, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Fatalf("%s: %v", text, err)
		}
	}
	return string(text)
}

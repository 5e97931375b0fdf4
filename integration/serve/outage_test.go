// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
)

// mortal is a server that can be killed.
type mortal interface {
	databases
	Kill()
	Start(ctx context.Context) error
}

func TestAServerOutlivesItsDatabase(t *testing.T) {
	t.Run("MariaDB", func(t *testing.T) { outlive(t, server.RunMariaDB(t), "") })
	t.Run("PostgreSQL", func(t *testing.T) { outlive(t, server.RunPostgres(t), "?sslmode=disable") })
}

// outlive kills the database of a server. The server gives ids until those in memory are used
// up, then answers as Leaf does, and gives ids again, each once, when the database runs again.
func outlive(t *testing.T, on mortal, settings string) {
	t.Helper()
	prepare(t, on.Open(t, "serve"))
	s := serve(t, on.DSN("serve")+settings, "--wait", "500ms")
	ids := ledger{seen: map[string]bool{}}
	take := func(kind string) (body string, status int) {
		body, status = s.ask(t, "/api/"+kind+"/get/order", "")
		if status == http.StatusOK {
			ids.note(kind, body)
		}
		return body, status
	}
	both := func() bool {
		_, segment := take("segment")
		_, snowflake := take("snowflake")
		return segment == http.StatusOK && snowflake == http.StatusOK
	}
	testwait.Until(t, "ids come", both)
	if body, status := s.ask(t, "/readyz", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}

	on.Kill()
	refusal, status := take("segment")
	for status == http.StatusOK { // until those in memory are used up
		refusal, status = take("segment")
	}
	if len(ids.seen) < 10 {
		t.Errorf("%d ids: none came from memory", len(ids.seen))
	}
	if !strings.Contains(refusal, `"status":500`) || !strings.Contains(refusal, `"message":"Result{id=-3, status=EXCEPTION}: `) {
		t.Errorf("without its database it says %s", refusal)
	}
	testwait.Until(t, "it says that it is not ready", func() bool {
		body, status := s.ask(t, "/readyz", "")
		return status == http.StatusServiceUnavailable && strings.Contains(body, `"generator order","status":"down"`)
	})
	if body, status := s.ask(t, "/livez", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}

	if err := on.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "ids come again", both)
	testwait.Until(t, "it is ready again", func() bool {
		_, status := s.ask(t, "/readyz", "")
		return status == http.StatusOK
	})
	for range 300 { // two segments and more
		take("segment")
	}
	if len(ids.twice) > 0 {
		t.Errorf("ids came twice: %v", ids.twice)
	}
}

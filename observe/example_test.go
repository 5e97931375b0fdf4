// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A program serves its metrics and tells its supervisor whether it is ready.
func Example() {
	orders, err := segment.New(context.Background(), segment.Config{Source: endless{}})
	check(err)
	defer func() { check(orders.Close()) }()

	var statements observe.Statements // Config.Observer of package shardsql: statements.Observer()
	service, err := observe.New(observe.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"order": orders}},
		Statements: &statements,
	})
	check(err)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", service.Metrics())
	mux.Handle("GET /livez", service.Live())
	mux.Handle("GET /readyz", service.Ready())

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	fmt.Print(answer.Code, " ", answer.Body)
	// Output:
	// 200 {
	//   "status": "ok",
	//   "checks": [
	//     {
	//       "name": "generator order",
	//       "status": "ok"
	//     }
	//   ]
	// }
}

// Gather returns the metrics for a program with its own metrics library.
func ExampleService_Gather() {
	var statements observe.Statements
	service, err := observe.New(observe.Config{Statements: &statements})
	check(err)
	statements.Observe(context.Background(), shardsql.Statement{Table: "orders", Kind: shardsql.One, Rows: 2})
	for _, family := range service.Gather() {
		for _, sample := range family.Samples {
			if family.Type == observe.Counter {
				fmt.Println(family.Name, sample.Values, sample.Value)
			}
		}
	}
	// Output:
	// shardid_statement_rows_total [one ok orders] 2
	// shardid_statement_shards_total [one ok orders] 0
	// shardid_statement_retries_total [one ok orders] 0
}

// NewMigrations reads migrations in the background, so that a scrape waits for no source.
func ExampleNewMigrations() {
	orders := &told{} // a *migrate.Job in a program
	orders.say(migrate.Status{Progress: migrate.Progress{Phase: migrate.PhaseFollowing, Backlog: 3}}, nil)
	migrations := observe.NewMigrations(map[string]observe.Migration{"orders": orders})
	service, err := observe.New(observe.Config{Migrations: migrations})
	check(err)
	ctx, stop := context.WithCancel(context.Background())
	stop() // a program goes on: go migrations.Watch(ctx, 15*time.Second)
	migrations.Watch(ctx, 0)
	for _, family := range service.Gather() {
		if family.Name == "shardid_migration_waiting_changes" {
			fmt.Println(family.Name, family.Samples[0].Values, family.Samples[0].Value)
		}
	}
	// Output:
	// shardid_migration_waiting_changes [orders] 3
}

// WriteText writes metrics in Prometheus' format.
func ExampleWriteText() {
	check(observe.WriteText(os.Stdout, []observe.Family{{
		Name: "shop_orders_total", Help: "Orders so far.", Type: observe.Counter, Labels: []string{"shop"},
		Samples: []observe.Sample{{Values: []string{"north"}, Value: 7}},
	}}))
	// Output:
	// # HELP shop_orders_total Orders so far.
	// # TYPE shop_orders_total counter
	// shop_orders_total{shop="north"} 7
}

// Outcome is a word for labels of a program's own metrics.
func ExampleOutcome() {
	ctx := context.Background()
	fmt.Println(observe.Outcome(ctx, shardsql.Statement{Kind: shardsql.One}))
	fmt.Println(observe.Outcome(ctx, shardsql.Statement{Kind: shardsql.Refused, Err: sharding.ErrMissingKey}))
	fmt.Println(observe.Outcome(ctx, shardsql.Statement{Err: context.Canceled}))
	// Output:
	// ok
	// missing_key
	// cancelled
}

// Describe tells which metrics there are, for those who write alerts.
func ExampleDescribe() {
	for _, family := range observe.Describe() {
		if strings.HasPrefix(family.Name, "shardid_transactions_") {
			fmt.Println(family.Name, family.Type)
		}
	}
	// Output:
	// shardid_transactions_in_doubt gauge
	// shardid_transactions_resolved_total counter
	// shardid_transactions_resolver_up gauge
}

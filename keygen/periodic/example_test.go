package periodic_test

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen/periodic"
)

// Orders are numbered by month, in each shop from 1 on.
func ExampleNew() {
	ctx := context.Background()
	now := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
	orders, err := periodic.New(periodic.Config{
		Counters: newMemory(now), // store.Periods(), of sqlstore, or redisgen.NewPeriods
		Name:     "order",
		Period:   periodic.Month,
		Zone:     time.UTC, // time.LoadLocation("Asia/Shanghai")
		Digits:   6,
		Now:      now, // not in an application
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = orders.Close() }()
	for _, shop := range []string{"shop7", "shop7", "shop8"} {
		number, err := orders.Next(ctx, shop)
		fmt.Println(shop, number, number.Int64(), err)
	}
	// Output:
	// shop7 2026-11-000001 202611000001 <nil>
	// shop7 2026-11-000002 202611000002 <nil>
	// shop8 2026-11-000001 202611000001 <nil>
}

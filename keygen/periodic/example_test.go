// SPDX-License-Identifier: Apache-2.0

package periodic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/shardid/shardid/keygen"
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

// exampleNumbers numbers orders by month; it is 21 November 2026.
func exampleNumbers() *periodic.Numbers {
	now := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
	orders, err := periodic.New(periodic.Config{
		Counters: newMemory(now), Name: "order", Period: periodic.Month, Zone: time.UTC, Digits: 6, Now: now,
	})
	if err != nil {
		log.Fatal(err)
	}
	return orders
}

// A model whose key is a text gets the numbers of one key.
func ExampleNumbers_Texts() {
	orders := exampleNumbers()
	defer func() { _ = orders.Close() }()
	set := keygen.Set{Text: map[string]keygen.Generator[string]{"invoice": orders.Texts("shop7")}} // for gormplugin or sqlxhook
	invoices, err := set.LookupText("invoice")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(invoices.Next(context.Background()))
	// Output: 2026-11-000001 <nil>
}

// A model whose key is an integer, with one key for all rows.
func ExampleNumbers_IDs() {
	orders := exampleNumbers()
	defer func() { _ = orders.Close() }()
	fmt.Println(orders.IDs("").Next(context.Background()))
	// Output: 202611000001 <nil>
}

// A number that a customer reads on the telephone can be parsed.
func ExampleParseNumber() {
	number, err := periodic.ParseNumber("2026-11-000042")
	fmt.Println(number.Period, number.Count, number.Int64(), err)
	_, err = periodic.ParseNumber("2026-13-000042")
	fmt.Println(err)
	// Output:
	// 2026-11 42 202611000042 <nil>
	// keygen: not an id: "2026-13-000042" is not a day, month or year and a count, as 2026-11-000042 is
}

// A number is a text in JSON.
func ExampleNumber() {
	orders := exampleNumbers()
	defer func() { _ = orders.Close() }()
	number, err := orders.Next(context.Background(), "shop7")
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(map[string]periodic.Number{"order": number})
	fmt.Println(string(text), err)
	// Output: {"order":"2026-11-000001"} <nil>
}

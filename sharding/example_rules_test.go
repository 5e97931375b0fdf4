// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/shardid/shardid/sharding"
)

// printSlots prints the slots of some keys.
func printSlots(rule sharding.Rule, keys ...any) {
	for _, key := range keys {
		slot, err := rule.Slot(key)
		_, _ = fmt.Fprintln(os.Stdout, key, slot, err)
	}
}

// The slot is above a sequence of 10 bits.
func ExampleBits() {
	printSlots(sharding.Bits(10, 3), 5<<10|1, 6<<10|1023)
	// Output:
	// 5121 5 <nil>
	// 7167 6 <nil>
}

// Each range begins where the one before ends.
func ExampleRanges() {
	printSlots(sharding.Ranges(1_000_000, 2_000_000), 999_999, 1_000_000, 5_000_000)
	// Output:
	// 999999 0 <nil>
	// 1000000 1 <nil>
	// 5000000 2 <nil>
}

// Tenants with their own databases. A tenant that is not in the list is refused.
func ExampleList() {
	rule := sharding.List(map[string]sharding.Slot{"acme": 0, "globex": 1})
	slot, err := rule.Slot("globex")
	fmt.Println(slot, err)
	_, err = rule.Slot("initech")
	fmt.Println(errors.Is(err, sharding.ErrNoSlot))
	fmt.Println(sharding.Listed(rule))
	// Output:
	// 1 <nil>
	// true
	// map[acme:0 globex:1]
}

// Two servers that number their rows 1, 3, 5 and 2, 4, 6 and so on.
func ExampleOffsetStep() {
	printSlots(sharding.OffsetStep(1, 2), 1, 2, 3)
	// Output:
	// 1 0 <nil>
	// 2 1 <nil>
	// 3 0 <nil>
}

// Three pieces of 30 days. A time after the last one is refused.
func ExampleInterval() {
	day := 24 * time.Hour
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rule := sharding.Interval(from, from.Add(90*day), 30*day)
	fmt.Println(rule.Slots())
	fmt.Println(rule.Slot(from.Add(45 * day)))
	_, err := rule.Slot(from.Add(90 * day))
	fmt.Println(errors.Is(err, sharding.ErrNoSlot))
	// Output:
	// 3
	// 1 <nil>
	// true
}

// A rule of the program: the country is the first two letters of the key.
func ExampleFunc() {
	rule := sharding.Func(2, func(key any) (sharding.Slot, error) {
		text, ok := key.(string)
		if !ok || len(text) < 2 {
			return 0, fmt.Errorf("%w: %v has no country", sharding.ErrKeyType, key)
		}
		if text[:2] == "de" {
			return 0, nil
		}
		return 1, nil
	})
	printSlots(rule, "de-17", "fr-17")
	_, err := rule.Slot(17)
	fmt.Println(errors.Is(err, sharding.ErrKeyType))
	// Output:
	// de-17 0 <nil>
	// fr-17 1 <nil>
	// true
}

// Text keys, such as e-mail addresses, are spread by their bytes.
func ExampleHashText() {
	rule := sharding.HashText(8)
	a, err := rule.Slot("ann@example.org")
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := rule.Slot([]byte("ann@example.org"))
	fmt.Println(a == b, err)
	_, err = rule.Slot(7)
	fmt.Println(errors.Is(err, sharding.ErrKeyType))
	// Output:
	// true <nil>
	// true
}

// Tables that go-gorm/sharding has filled by an integer are found by the same remainder.
func ExampleCompat() {
	printSlots(sharding.Compat(4), 7, "7")
	// Output:
	// 7 3 <nil>
	// 7 3 <nil>
}

// Tables that go-gorm/sharding has filled by a text: a text that is a number counts as the number.
func ExampleCompatText() {
	printSlots(sharding.CompatText(4), "7")
	_, err := sharding.CompatText(4).Slot(7)
	fmt.Println(errors.Is(err, sharding.ErrKeyType))
	// Output:
	// 7 3 <nil>
	// true
}

func ExampleDescribe() {
	fmt.Println(sharding.Describe(sharding.Mod(8)).Kind == sharding.Describe(sharding.Mod(16)).Kind)
	fmt.Println(sharding.Describe(sharding.Mod(8)).Slots)
	// Output:
	// true
	// 8
}

// Slots are assigned by hand: the second server is larger and has two of three.
func ExampleMapOf() {
	small, large := sharding.Target{DB: "small", Table: "orders"}, sharding.Target{DB: "large", Table: "orders"}
	places, err := sharding.MapOf(small, large, large)
	if err != nil {
		fmt.Println(err)
		return
	}
	target, ok := places.Target(2)
	fmt.Println(target, ok)
	// Output: large/orders true
}

// A slice of tables is one option. A transaction may change rows of both databases, which commit
// one after another.
func ExampleTables() {
	orders, err := sharding.Spread([]string{"east", "west"}, 2, "orders_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	tables := []sharding.Table{{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: orders}}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Tables(tables...), sharding.Transactions(sharding.BestEffort))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(router.TxMode() == sharding.BestEffort, router.Targets("orders"))
	// Output: true [east/orders_0 west/orders_1]
}

// The context chooses the target of statements.
func ExampleHintOf() {
	ctx := context.Background()
	fmt.Println(sharding.HintOf(sharding.AllShards(ctx)).All)       // writes too go to every shard
	fmt.Println(sharding.HintOf(sharding.Unsharded(ctx)).Unsharded) // names are those of physical tables
	fmt.Println(sharding.HintOf(sharding.Primary(ctx)).Primary)     // reads keep away from replicas
	// Output:
	// true
	// true
	// true
}

// A column of microseconds keeps the last moments of a day. One of seconds may round them to the
// next day, so that the rule refuses them.
func ExampleIntervalRule_WithPrecision() {
	day := 24 * time.Hour
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rule := sharding.Interval(from, from.Add(2*day), day)
	late := from.Add(day - 300*time.Microsecond)
	_, err := rule.Slot(late)
	fmt.Println(errors.Is(err, sharding.ErrKeyType))
	fmt.Println(rule.WithPrecision(time.Microsecond).Slot(late))
	// Output:
	// true
	// 0 <nil>
}

// The clocks of Shanghai are eight hours ahead of UTC: its second day has begun.
func ExampleIntervalRule_WithZone() {
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		panic(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
	rule := sharding.Interval(from, from.AddDate(0, 0, 2), 24*time.Hour).WithZone(zone)
	fmt.Println(rule.Slot(time.Date(2026, 1, 1, 16, 30, 0, 0, time.UTC)))
	// Output: 1 <nil>
}

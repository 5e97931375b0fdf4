// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// shop is a router with a group of two tables, one table outside of it, and a
// broadcast table.
func shop(t *testing.T, options ...sharding.Option) *sharding.Router {
	t.Helper()
	names, dbs := databases(2)
	options = append(options,
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(4), Map: spread(t, names, 4, "orders_%d"), Group: "shop",
			Also: []sharding.Alt{{Column: "id", Rule: sharding.Low(4), From: 1000}, {Column: "code", Rule: sharding.HashText(16)}}},
		sharding.Tables(
			sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Low(4), Map: spread(t, names, 4, "items_%d"), Group: "Shop"},
			sharding.Table{Name: "logs", Key: "id", Rule: sharding.Low(4), Map: spread(t, names, 2, "logs_%d"), OnMissing: sharding.FanOutReads},
		),
		sharding.Broadcast("regions", "Units"))
	r, err := sharding.New(dbs, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheRouterKnowsWhatItsOptionsSay(t *testing.T) {
	r := shop(t, sharding.FanOut(16, 4), sharding.Transactions(sharding.BestEffort), nil)
	if r.Limits() != (sharding.Limits{MaxShards: 16, Concurrency: 4}) || r.TxMode() != sharding.BestEffort {
		t.Errorf("%+v, %v", r.Limits(), r.TxMode())
	}
	if d := shop(t); d.Limits() != (sharding.Limits{MaxShards: 32, Concurrency: 8}) || d.TxMode() != sharding.SingleShard {
		t.Errorf("without options: %+v, %v", d.Limits(), d.TxMode())
	}
	if !r.IsBroadcast("REGIONS") || !r.IsBroadcast("units") || r.IsBroadcast("orders") || fmt.Sprint(r.Broadcasts()) != "[regions Units]" {
		t.Errorf("broadcast tables are %v", r.Broadcasts())
	}
	if !r.SameGroup("Orders", "items") || !r.SameGroup("logs", "LOGS") || r.SameGroup("orders", "logs") || r.SameGroup("users", "users") {
		t.Error("groups are wrong")
	}
	if r.Slots("orders") != 16 || r.Slots("users") != 0 || fmt.Sprint(r.Databases()) != "[db0 db1]" {
		t.Error("slots or databases are wrong")
	}
	if err := r.Limits().Check(16); err != nil {
		t.Error(err)
	}
	if err := r.Limits().Check(17); !errors.Is(err, sharding.ErrTooManyShards) {
		t.Error(err)
	}
	var zero sharding.Router
	if _, err := zero.Target("orders", 1); !errors.Is(err, sharding.ErrUnknownTable) || len(zero.Tables()) != 0 {
		t.Errorf("the zero router: %v", err)
	}
}

func TestMistakesInOptionsAndGroupsAreReported(t *testing.T) {
	names, dbs := databases(2)
	table := func(name string, change func(*sharding.Table)) sharding.Table {
		table := sharding.Table{Name: name, Key: "id", Rule: sharding.Low(2), Map: spread(t, names, 2, name+"_%d"), Group: "g"}
		change(&table)
		return table
	}
	swapped, err := sharding.MapOf(sharding.Target{"db1", "b_1"}, sharding.Target{"db0", "b_0"}, sharding.Target{"db1", "b_1"}, sharding.Target{"db0", "b_0"})
	if err != nil {
		t.Fatal(err)
	}
	for want, options := range map[string][]sharding.Option{
		"FanOut(0, 4): both must be at least 1":                     {sharding.FanOut(0, 4)},
		"Transactions(7)":                                           {sharding.Transactions(7)},
		"Broadcast: table \"a b\"":                                  {sharding.Broadcast("a b")},
		"\"A\": Name: is also a broadcast table":                    {sharding.Broadcast("a"), table("A", func(*sharding.Table) {})},
		"target db1/a_1 has the name of broadcast table \"A_1\"":    {sharding.Broadcast("A_1"), table("a", func(*sharding.Table) {})},
		"OnMissing: is 5":                                           {table("a", func(t *sharding.Table) { t.OnMissing = 5 })},
		"column \"ID\" occurs twice":                                {table("a", func(t *sharding.Table) { t.Also = []sharding.Alt{{Column: "ID", Rule: sharding.Low(2)}} })},
		"column \"no\": Rule is nil":                                {table("a", func(t *sharding.Table) { t.Also = []sharding.Alt{{Column: "no"}} })},
		"column \"no\": Rule has 8 slots, that of \"id\" 4":         {table("a", func(t *sharding.Table) { t.Also = []sharding.Alt{{Column: "no", Rule: sharding.Low(3)}} })},
		"its Rule is not that of \"a\"":                             {table("a", func(*sharding.Table) {}), table("b", func(t *sharding.Table) { t.Rule = sharding.Hash(4) })},
		"slot 0 is on db1/b_0, that of \"a\" on db0/a_0":            {table("a", func(*sharding.Table) {}), table("b", func(x *sharding.Table) { x.Map = spread(t, []string{"db1", "db0"}, 2, "b_%d") })},
		"its Map distributes slot 1 differently than that of \"a\"": {table("a", func(*sharding.Table) {}), table("b", func(x *sharding.Table) { x.Map = anyOf(t, "b_0", "b_0", "b_1", "b_1") })},
		"its Map has another version than that of \"a\"":            {table("a", func(*sharding.Table) {}), table("b", func(x *sharding.Table) { x.Map = x.Map.At(3) })},
		"slot 0 is on db1/b_1":                                      {table("a", func(*sharding.Table) {}), table("b", func(t *sharding.Table) { t.Map = swapped })},
		"Epochs: a slot occurs twice":                               {table("a", func(t *sharding.Table) { t.Rule = sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{1, 1}}) })},
	} {
		if _, err := sharding.New(dbs, options...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTheOnlyTableInItsDatabaseMayHaveItsLogicalName(t *testing.T) {
	names, dbs := databases(2)
	router, err := sharding.New(dbs,
		sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(2), Map: spread(t, names, 2, "Orders")},
		sharding.Table{Name: "logs", Key: "id", Rule: sharding.Low(2), Map: spread(t, names, 4, "logs_%d")})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := router.Target("orders", 3); err != nil || at != (sharding.Target{DB: names[1], Table: "Orders"}) {
		t.Error(at, err)
	}
	for name, want := range map[string]string{"orders": "", "ORDERS": "", "logs": "", "Logs_3": "logs", "logs_4": ""} {
		got := ""
		if table := router.Snapshot().Physical(name); table != nil {
			got = table.Name
		}
		if got != want {
			t.Errorf("%s is of table %q, want %q", name, got, want)
		}
	}
	_, err = sharding.New(dbs, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(2), Map: spread(t, names, 2, "orders")},
		sharding.Migration{Source: names[1], Tables: map[string]string{"Orders": "id"}})
	if err == nil || !strings.Contains(err.Error(), "its target in "+names[1]+" is the table that is being migrated") {
		t.Error(err)
	}
}

func anyOf(t *testing.T, tables ...string) sharding.Map {
	t.Helper()
	var on []sharding.Target
	for _, name := range tables {
		on = append(on, sharding.Target{DB: "db0", Table: name})
	}
	m, err := sharding.MapOf(on...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOtherColumnsLeadToTheSameShardFromTheirFirstValueOn(t *testing.T) {
	r := shop(t)
	for _, c := range []struct {
		column string
		value  any
		want   string
		err    error
	}{
		{"USER_ID", 5, "db1/orders_1", nil},
		{"id", 1005, "db1/orders_1", nil},
		{"ID", "1000", "db0/orders_0", nil},
		{"id", ^uint64(0), "db1/orders_3", nil},
		{"id", 999, "", sharding.ErrMissingKey}, // never a guess
		{"id", -1, "", sharding.ErrMissingKey},
		{"id", nil, "", sharding.ErrKeyType},
		{"id", "x", "", sharding.ErrKeyType},
		{"code", "berlin", "", nil},
		{"code", nil, "", sharding.ErrKeyType},
		{"name", "x", "", sharding.ErrMissingKey},
	} {
		got, err := r.TargetBy("orders", c.column, c.value)
		if !errors.Is(err, c.err) || c.err == nil && err != nil || c.want != "" && got.String() != c.want {
			t.Errorf("%s = %v: %v, %v", c.column, c.value, got, err)
		}
	}
	_, err := r.TargetBy("orders", "id", 999)
	if want := "sharding: route orders refused: no sharding key: 999 is below 1000; smaller ids carry no slot (id); add a condition on user_id"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	table, _ := r.Table("orders")
	if !table.Leads("ID") || !table.Leads("User_ID") || table.Leads("name") {
		t.Error("the wrong columns lead to shards")
	}
}

func TestHintsChooseTheTargetOfTheWholeGroup(t *testing.T) {
	r, ctx := shop(t), t.Context()
	if h := sharding.HintOf(ctx); h != (sharding.Hint{}) || h.Placed() {
		t.Errorf("an empty context says %+v", h)
	}
	orders3 := sharding.Target{DB: "db1", Table: "orders_3"}
	for _, c := range []struct {
		hint  sharding.Hint
		table string
		want  string
		err   error
	}{
		{sharding.HintOf(sharding.On(ctx, orders3)), "orders", "db1/orders_3", nil},
		{sharding.HintOf(sharding.On(ctx, orders3)), "ITEMS", "db1/items_3", nil},
		{sharding.HintOf(sharding.On(ctx, orders3)), "logs", "", sharding.ErrCrossShard},
		{sharding.HintOf(sharding.On(ctx, sharding.Target{DB: "db0", Table: "orders_3"})), "orders", "", sharding.ErrCrossShard},
		{sharding.HintOf(sharding.On(ctx, orders3)), "users", "", sharding.ErrUnknownTable},
		{sharding.HintOf(sharding.OnKey(ctx, "items", 6)), "orders", "db0/orders_2", nil},
		{sharding.HintOf(sharding.OnKey(ctx, "items", nil)), "orders", "", sharding.ErrKeyType},
		{sharding.HintOf(sharding.OnKey(ctx, "items", 6)), "logs", "", sharding.ErrCrossShard},
		{sharding.HintOf(sharding.OnKey(ctx, "users", 6)), "orders", "", sharding.ErrUnknownTable},
		{sharding.HintOf(sharding.AllShards(sharding.On(ctx, orders3))), "orders", "", nil},
	} {
		got, placed, err := r.Snapshot().Hinted(c.table, c.hint)
		if placed != (c.want != "") || !errors.Is(err, c.err) || c.err == nil && err != nil || placed && got.String() != c.want {
			t.Errorf("%+v on %s: %v, %v, %v", c.hint, c.table, got, placed, err)
		}
	}
}

func TestALaterHintReplacesAllButPrimary(t *testing.T) {
	ctx := sharding.Primary(t.Context())
	ctx = sharding.OnKey(ctx, "orders", 5)
	if h := sharding.HintOf(ctx); h != (sharding.Hint{Table: "orders", Key: 5, Primary: true}) {
		t.Errorf("%+v", h)
	}
	ctx = sharding.AllShards(ctx)
	if h := sharding.HintOf(ctx); h != (sharding.Hint{All: true, Primary: true}) {
		t.Errorf("%+v", h)
	}
	ctx = sharding.Primary(sharding.Unsharded(ctx))
	if h := sharding.HintOf(ctx); h != (sharding.Hint{Unsharded: true, Primary: true}) {
		t.Errorf("%+v", h)
	}
}

// moved is the map of the shop's table after slot 1 moved to the target of slot 0.
func moved(t *testing.T, r *sharding.Router, table string) sharding.Map {
	t.Helper()
	old, ok := r.Table(table)
	if !ok {
		t.Fatal("no such table")
	}
	zero, _ := old.Map.Target(0)
	one, _ := old.Map.Target(1)
	m, err := old.Map.Apply(r.Slots(table), sharding.Move{Slot: 1, From: one, To: zero})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSwapExchangesTheMapsOfAGroupAtOnce(t *testing.T) {
	r := shop(t)
	orders := moved(t, r, "orders")
	err := r.Swap(map[string]sharding.Map{"orders": orders})
	if err == nil || !strings.Contains(err.Error(), "another version than that of") {
		t.Errorf("one table of a group alone: %v", err)
	}
	before := r.Snapshot()
	items := moved(t, r, "items")
	if err := r.Swap(map[string]sharding.Map{"ORDERS": orders, "items": items}); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Target("orders", 1); err != nil || got.String() != "db0/orders_0" {
		t.Errorf("after the swap: %v, %v", got, err)
	}
	if got, err := before.Target("orders", 1); err != nil || got.String() != "db1/orders_1" {
		t.Errorf("a snapshot from before: %v, %v", got, err)
	}
	for want, maps := range map[string]map[string]sharding.Map{
		"version 1 is not above 1": {"orders": orders, "items": items},
		"1 maps for 0 tables":      {"users": orders.At(2)},
		"0 maps for 0 tables":      {},
		"2 maps for 1 tables":      {"logs": moved(t, r, "logs"), "users": orders},
		"16 slots need 16 targ":    {"logs": anyOf(t, "x", "y").At(1)},
	} {
		if err := r.Swap(maps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := r.Swap(map[string]sharding.Map{"orders": orders, "items": items}); !errors.Is(err, sharding.ErrStaleMap) {
		t.Error(err)
	}
}

func TestASnapshotIsReplacedWhenAMapIs(t *testing.T) {
	r := shop(t)
	logs := moved(t, r, "logs")
	first := r.Snapshot()
	replaced, again := r.Replaced(first), r.Replaced(first)
	isClosed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	if isClosed(replaced) {
		t.Error("the present snapshot is replaced")
	}
	if err := r.Swap(map[string]sharding.Map{"logs": logs}); err != nil {
		t.Fatal(err)
	}
	if !isClosed(replaced) || !isClosed(again) || !isClosed(r.Replaced(first)) {
		t.Error("the first snapshot is not replaced")
	}
	second := r.Replaced(r.Snapshot())
	r.Replaced(first)
	if isClosed(second) {
		t.Error("the second snapshot is replaced")
	}
}

func TestHeldSlotsRefuseKeysAndSharedOnesStatementsForAll(t *testing.T) {
	r := shop(t)
	logs := moved(t, r, "logs")
	if err := r.Swap(map[string]sharding.Map{"logs": logs.Holding(7, 1, 7)}); err != nil {
		t.Fatal(err)
	}
	_, err := r.Target("logs", 17)
	if !errors.Is(err, sharding.ErrSlotMoving) || !strings.Contains(err.Error(), "slot 1: ") || !strings.Contains(err.Error(), "try again") {
		t.Error(err)
	}
	if _, err := r.Target("logs", 2); err != nil {
		t.Error(err)
	}
	if _, err := r.Snapshot().Everywhere("logs"); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Error(err)
	}
	if err := r.Swap(map[string]sharding.Map{"logs": logs.At(2).Sharing(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Target("logs", 17); err != nil {
		t.Error(err)
	}
	if _, err := r.Snapshot().Everywhere("logs"); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Error(err)
	}
	if err := r.Swap(map[string]sharding.Map{"logs": logs.At(3)}); err != nil {
		t.Fatal(err)
	}
	if all, err := r.Snapshot().Everywhere("logs"); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := r.Snapshot().Everywhere("users"); !errors.Is(err, sharding.ErrUnknownTable) {
		t.Error(err)
	}
}

func TestAMapThatHasEndedRefusesEveryKeyUntilTheNextOne(t *testing.T) {
	r := shop(t)
	over := false
	logs := moved(t, r, "logs")
	if err := r.Swap(map[string]sharding.Map{"logs": logs.While(func() bool { return !over })}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Target("logs", 1); err != nil {
		t.Fatal(err)
	}
	over = true
	on := sharding.Hint{On: r.Targets("logs")[0]}
	_, err := r.Target("logs", 1)
	_, all := r.Snapshot().Everywhere("logs")
	_, _, hinted := r.Snapshot().Hinted("logs", on)
	for _, err := range []error{err, all, hinted} {
		if !errors.Is(err, sharding.ErrStaleMap) {
			t.Error(err)
		}
	}
	if _, err := r.Target("orders", 1); err != nil {
		t.Errorf("another table: %v", err)
	}
	if err := r.Swap(map[string]sharding.Map{"logs": logs.At(2)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Target("logs", 1); err != nil {
		t.Error(err)
	}
}

// Run with -race. A snapshot never mixes two maps, even during swaps.
func TestASnapshotIsOfOneVersionWhileMapsAreSwapped(t *testing.T) {
	r := shop(t)
	first := map[string]sharding.Map{"orders": moved(t, r, "orders"), "items": moved(t, r, "items")}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				s := r.Snapshot()
				order, err := s.Target("orders", 1)
				item, alsoErr := s.Target("items", 1)
				if err != nil || alsoErr != nil || order.DB != item.DB || order.Table[len("orders"):] != item.Table[len("items"):] {
					t.Errorf("%v, %v, %v, %v", order, item, err, alsoErr)
					return
				}
			}
		})
	}
	back := map[string]sharding.Map{}
	for _, name := range []string{"orders", "items"} {
		table, _ := shop(t).Table(name)
		back[name] = table.Map
	}
	for v := int64(1); v <= 500; v++ {
		next := map[string]sharding.Map{}
		for name := range first {
			next[name] = back[name].At(v)
			if v%2 == 1 {
				next[name] = first[name].At(v)
			}
		}
		if err := r.Swap(next); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
}

func TestErrorsContainTheirData(t *testing.T) {
	why := errors.New("connection lost")
	err := error(&sharding.PartialCommitError{Committed: []string{"db0", "db2"}, Failed: map[string]error{"db3": errors.New("deadlock"), "db1": why}})
	if want := "sharding: transaction committed in db0, db2 only, not in db1 (connection lost), db3 (deadlock); its writes there stay, so repair the others or undo them by hand"; err.Error() != want || !errors.Is(err, why) {
		t.Error(err)
	}
	err = &sharding.PartialCommitError{Failed: map[string]error{"db1": why, "db2": errors.New("rolled back")}}
	if want := "sharding: transaction may be committed in one of db1 (connection lost), db2 (rolled back), because a connection was lost during COMMIT; read its rows there before you send it again"; err.Error() != want || !errors.Is(err, why) {
		t.Error(err)
	}
	refused := fmt.Errorf("ERROR: %s (SQLSTATE P0001)", sharding.FenceMessage)
	if err := sharding.SlotMoving(refused); !errors.Is(err, sharding.ErrSlotMoving) || !errors.Is(err, refused) || sharding.SlotMoving(err).Error() != err.Error() {
		t.Error(err)
	}
	for _, table := range []string{"shardid_log_slots_shop_1_2", "shard_fence"} {
		if unprepared := errors.New("Error 1146 (42S02): Table 'r_w." + table + "' doesn't exist"); !errors.Is(sharding.SlotMoving(unprepared), sharding.ErrSlotMoving) {
			t.Error("a statement that knew nothing of the triggers is not to be repeated:", unprepared)
		}
	}
	if errors.Is(sharding.SlotMoving(why), sharding.ErrSlotMoving) || sharding.SlotMoving(nil) != nil {
		t.Error("another error is changed")
	}
}

func TestLookupsAreChecked(t *testing.T) {
	m, err := sharding.Spread([]string{"a"}, 2, "users_%d")
	if err != nil {
		t.Fatal(err)
	}
	others, err := sharding.Spread([]string{"a"}, 2, "others_%d")
	if err != nil {
		t.Fatal(err)
	}
	users := func(all ...sharding.Lookup) sharding.Table {
		return sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(2), Map: m, Lookups: all}
	}
	for want, options := range map[string][]sharding.Option{
		"leads to the shard by itself": {users(sharding.Lookup{Column: "ID", Table: "l"})},
		"another lookup":               {users(sharding.Lookup{Column: "email", Table: "l"}, sharding.Lookup{Column: "city", Table: "L"})},
		"column of its own":            {users(sharding.Lookup{Column: "claim", Table: "l"})},
		"is a broadcast table":         {users(sharding.Lookup{Column: "email", Table: "l"}), sharding.Broadcast("l")},
		"shard it by email": {users(sharding.Lookup{Column: "email", Table: "others"}),
			sharding.Table{Name: "others", Key: "id", Rule: sharding.Mod(2), Map: others}},
		"belongs to table": {users(sharding.Lookup{Column: "email", Table: "l"}),
			sharding.Table{Name: "others", Key: "id", Rule: sharding.Mod(2), Map: others, Lookups: []sharding.Lookup{{Column: "email", Table: "l"}}}},
		"after the migration": {users(sharding.Lookup{Column: "email", Table: "l"}), sharding.Migration{Source: "a", Tables: map[string]string{"users": ""}}},
	} {
		if _, err := sharding.New(sharding.DBs{"a": new(sql.DB)}, options...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := sharding.New(sharding.DBs{"a": new(sql.DB)}, users(sharding.Lookup{Column: "email", Table: "l", Unique: true})); err != nil {
		t.Error(err)
	}
}

func TestParentsAreChecked(t *testing.T) {
	tables := func(group string, all ...sharding.Parent) []sharding.Option {
		var options []sharding.Option
		for _, name := range []string{"orders", "items", "notes"} {
			m, err := sharding.Spread([]string{"a"}, 2, name+"_%d")
			if err != nil {
				t.Fatal(err)
			}
			of := sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(2), Map: m, Group: "shop"}
			if name == "items" {
				of.Group, of.Parents = group, all
			}
			if name == "notes" {
				of.Parents = []sharding.Parent{{Column: "Item_id", Table: "ITEMS"}, {Column: "other", Table: "notes", ID: "number"}}
			}
			options = append(options, of)
		}
		return options
	}
	ofOrders := sharding.Parent{Column: "order_id", Table: "Orders"}
	for want, options := range map[string][]sharding.Option{
		`"USER_ID" is the Key, which leads`:           tables("shop", sharding.Parent{Column: "USER_ID", Table: "orders"}),
		`column "order_id" occurs twice`:              tables("shop", ofOrders, ofOrders),
		`"baskets": not a sharded table; declare it`:  tables("shop", sharding.Parent{Column: "basket_id", Table: "baskets"}),
		`"orders" is not in its Group`:                tables("", ofOrders),
		`"User_ID" is the Key of "orders"`:            tables("shop", sharding.Parent{Column: "owner", Table: "orders", ID: "User_ID"}),
		`"id" leads round in a circle`:                tables("shop", sharding.Parent{Column: "id", Table: "notes", ID: "item_id"}),
		`"": not a plain SQL name`:                    tables("shop", sharding.Parent{Table: "orders"}),
		`"self" leads round in a circle; leave one o`: tables("shop", sharding.Parent{Column: "self", Table: "items", ID: "self"}),
	} {
		if _, err := sharding.New(sharding.DBs{"a": new(sql.DB)}, options...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	r, err := sharding.New(sharding.DBs{"a": new(sql.DB)}, tables("shop", ofOrders, sharding.Parent{Column: "Id", Table: "orders", ID: "first"})...)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]string{
		"orders": {"id": "orders.id", "first": "orders.first"},
		"items":  {"order_id": "orders.id", "id": "orders.first"}, // a reference of a reference
		"notes":  {"item_id": "orders.first", "other": "notes.number", "number": "notes.number"},
	} {
		table, _ := r.Table(name)
		if got := table.Kin(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestARefusalWithoutAHintOfItsOwnSaysWhatHelpsAgainstItsCause(t *testing.T) {
	for _, cause := range []error{sharding.ErrSlotMoving, sharding.ErrStaleMap} {
		err := &sharding.RouteError{Op: "query", Table: "orders", Err: fmt.Errorf("slot 3: %w", cause)}
		if !strings.Contains(err.Error(), "try again") {
			t.Error(err)
		}
	}
}

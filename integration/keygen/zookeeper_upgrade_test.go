// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/keygen/zookeeper"
)

const oldBook = "/leases/of-shop"

// oldRecord is a worker id's data as the version before wrote it.
type oldRecord struct {
	Owner      string `json:"owner"`
	Holder     string `json:"holder"`
	Generation int64  `json:"generation"`
	Ceiling    int64  `json:"ceiling"`
	Until      int64  `json:"until"`
}

// oldTake runs what book.take of commit f649a89 asks ZooKeeper for: open, present,
// list, and the record of the first worker id that is free.
func oldTake(c *zk.Conn, owner string, l keygen.Layout, at func(step string)) error {
	data, _, err := c.Get(oldBook)
	if err != nil {
		return err
	}
	var counting struct {
		Epoch time.Time `json:"epoch"`
		Unit  string    `json:"unit"`
	}
	if err := json.Unmarshal(data, &counting); err != nil {
		return err
	}
	if !counting.Epoch.Equal(l.Epoch) || counting.Unit != l.Unit.String() {
		return keygen.ErrLayout
	}
	at("looked")
	for _, below := range []string{"/workers", "/clock"} {
		if _, err := c.Create(oldBook+below, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	stat, err := c.Set(oldBook+"/clock", nil, -1)
	if err != nil {
		return err
	}
	names, _, err := c.Children(oldBook + "/workers")
	if err != nil {
		return err
	}
	at("listed")
	return oldWrite(c, owner, names, l.Tick(time.UnixMilli(stat.Mtime)))
}

func oldWrite(c *zk.Conn, owner string, names []string, now int64) error {
	mine := oldRecord{Owner: owner, Holder: "host/" + owner, Generation: 1, Ceiling: now + 60_000, Until: now + 60_000}
	for _, name := range names {
		if _, err := strconv.ParseInt(name, 10, 64); err != nil {
			return err
		}
		data, stat, err := c.Get(oldBook + "/workers/" + name)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		var r oldRecord
		if err = errors.Join(err, json.Unmarshal(data, &r)); err != nil {
			return err
		}
		if r.Until > now {
			continue
		}
		text, err := json.Marshal(mine)
		if err != nil {
			return err
		}
		if _, err := c.Set(oldBook+"/workers/"+name, text, stat.Version); err == nil {
			return nil
		}
	}
	text, err := json.Marshal(mine)
	if err == nil {
		_, err = c.Create(fmt.Sprintf("%s/workers/%010d", oldBook, len(names)), text, 0, zk.WorldACL(zk.PermAll))
	}
	return err
}

// oldZooKeeper has a book as that version made it, with the record of a worker id
// that was returned.
func oldZooKeeper(t *testing.T, c *zk.Conn, l keygen.Layout) {
	t.Helper()
	book := fmt.Appendf(nil, `{"epoch":%q,"unit":%q}`, l.Epoch.UTC().Format(time.RFC3339Nano), l.Unit)
	const record = `{"owner":"","holder":"","generation":1,"ceiling":5,"until":5}`
	for _, n := range []struct {
		path string
		data []byte
	}{{"/leases", nil}, {oldBook, book}, {oldBook + "/workers", nil}, {oldBook + "/clock", nil}, {oldBook + "/workers/0000000000", []byte(record)}} {
		if _, err := c.Create(n.path, n.data, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
}

func zooLedger(t *testing.T, c *zk.Conn) workerid.Ledger {
	t.Helper()
	l, err := zookeeper.NewLeases(c, "/leases")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestInZooKeeperALeaseOfAVersionBeforeKeepsAnotherLayoutOut(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	narrow, wide := split(10, 12), split(12, 10)
	oldZooKeeper(t, c, narrow)
	if err := oldTake(c, "old", narrow, nowhere); err != nil {
		t.Fatal(err)
	}
	ledger := zooLedger(t, c)
	_, err := ledger.Take(t.Context(), claimOf("new", wide))
	if !errors.Is(err, keygen.ErrLayout) || !strings.Contains(err.Error(), "host/old") {
		t.Fatalf("%v", err)
	}
	same := claimOf("new", narrow) // by word of Former, processes are upgraded one by one
	same.Former = narrow
	if e, err := ledger.Take(t.Context(), same); err != nil || e.Worker == 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if err := oldTake(c, "older", narrow, nowhere); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("another of the version before: %v", err)
	}
}

// In each of the places where a process of the version before can be when the first
// new one comes, one of both is refused.
func TestInZooKeeperAVersionBeforeInTheMidstOfTakingALeaseIsRefused(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	for _, step := range []string{"looked", "listed"} {
		narrow, wide := split(10, 12), split(12, 10)
		oldZooKeeper(t, c, narrow)
		var taken error
		err := oldTake(c, "old", narrow, func(at string) {
			if at == step {
				_, taken = zooLedger(t, c).Take(t.Context(), claimOf("new", wide))
			}
		})
		if taken != nil || err == nil {
			t.Errorf("%s: the new one %v, the version before %v", step, taken, err)
		}
		if _, err := zooLedger(t, c).Take(t.Context(), claimOf("newer", wide)); err != nil {
			t.Error(err)
		}
		wipe(t, c, "/leases")
	}
}

// wipe deletes a znode and all below it.
func wipe(t *testing.T, c *zk.Conn, path string) {
	t.Helper()
	names, _, err := c.Children(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		wipe(t, c, path+"/"+name)
	}
	if err := c.Delete(path, -1); err != nil {
		t.Fatal(err)
	}
}

// oldWorkers has a znode of Workers as the version that noted no layout made it, with
// a worker id that is held until then.
func oldWorkers(t *testing.T, c *zk.Conn, l keygen.Layout, until time.Time) {
	t.Helper()
	book := fmt.Appendf(nil, `{"epoch":%q,"unit":%q}`, l.Epoch.UTC().Format(time.RFC3339Nano), l.Unit)
	record := fmt.Appendf(nil, `{"owner":"10.0.0.1:80","holder":"10.0.0.1:80 (old/1)","generation":1,"ceiling":%d,"until":%[1]d}`, l.Tick(until))
	for _, n := range []struct {
		path string
		data []byte
	}{{"/snowflake", nil}, {"/snowflake/shop", book}, {"/snowflake/shop/workers", nil}, {"/snowflake/shop/clock", nil}, {"/snowflake/shop/workers/0000000000", record}} {
		if _, err := c.Create(n.path, n.data, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
}

func notedLayout(t *testing.T, c *zk.Conn) (noted struct{ Layout string }) {
	t.Helper()
	data, _, err := c.Get("/snowflake/shop")
	if err == nil {
		err = json.Unmarshal(data, &noted)
	}
	if err != nil {
		t.Fatal(err)
	}
	return noted
}

func TestAZnodeOfWorkersWithoutALayoutIsAdoptedOnlyWhenNoLeaseIsLive(t *testing.T) {
	few := fewWorkers()
	t.Run("live", func(t *testing.T) {
		c := server.RunZooKeeper(t).Open(t, steady)
		oldWorkers(t, c, few, time.Now().Add(time.Hour))
		lease, err := openWorkers(t, c, anywhere()).Acquire(t.Context(), few)
		if !errors.Is(err, keygen.ErrLayout) || !strings.Contains(err.Error(), "10.0.0.1:80 (old/1)") {
			t.Errorf("%v, %v", lease, err)
		}
		if noted := notedLayout(t, c); noted.Layout != "" {
			t.Errorf("layout %s was noted", noted.Layout)
		}
	})
	t.Run("ended", func(t *testing.T) {
		c := server.RunZooKeeper(t).Open(t, steady)
		oldWorkers(t, c, few, time.Now().Add(-time.Hour))
		snowflakes(t, openWorkers(t, c, anywhere()))
		if noted := notedLayout(t, c); noted.Layout != few.Fingerprint() {
			t.Errorf("layout %q was noted, want %s", noted.Layout, few.Fingerprint())
		}
		if _, err := openWorkers(t, c, anywhere()).Acquire(t.Context(), split(10, 12)); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("another layout: %v", err)
		}
	})
}

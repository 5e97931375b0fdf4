// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// How long a lost client of ZooKeeper is believed to come back: session is for
// those whose end a test waits for, steady for those that a busy machine must not
// end.
const (
	session = 600 * time.Millisecond
	steady  = server.SteadySession
)

// counting are the ways to have ZooKeeper count. The types of the client are
// inferred.
var counting = map[string]func(*zk.Conn, zookeeper.CounterConfig) (*zookeeper.Counter, error){
	"versions": func(c *zk.Conn, cfg zookeeper.CounterConfig) (*zookeeper.Counter, error) {
		return zookeeper.NewVersions(c, cfg)
	},
	"zxids": func(c *zk.Conn, cfg zookeeper.CounterConfig) (*zookeeper.Counter, error) {
		return zookeeper.NewZxids(c, cfg)
	},
	"sequence": func(c *zk.Conn, cfg zookeeper.CounterConfig) (*zookeeper.Counter, error) {
		return zookeeper.NewSequence(c, cfg)
	},
}

func onEachCounting(t *testing.T, test func(t *testing.T, open func(*zk.Conn, zookeeper.CounterConfig) *zookeeper.Counter)) {
	t.Helper()
	for name, construct := range counting {
		t.Run(name, func(t *testing.T) {
			test(t, func(c *zk.Conn, cfg zookeeper.CounterConfig) *zookeeper.Counter {
				counter, err := construct(c, cfg)
				if err != nil {
					t.Fatal(err)
				}
				return counter
			})
		})
	}
}

func seeded(t *testing.T, c *zookeeper.Counter, first int64) *zookeeper.Counter {
	t.Helper()
	if err := c.Seed(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestZooKeepersNumbersKeepTheContract(t *testing.T) {
	z := server.RunZooKeeper(t)
	onEachCounting(t, func(t *testing.T, open func(*zk.Conn, zookeeper.CounterConfig) *zookeeper.Counter) {
		for _, block := range []int64{1, 1000} {
			cfg := zookeeper.CounterConfig{Path: fmt.Sprintf("/%s/%d", t.Name(), block), Block: block}
			t.Run(fmt.Sprint("blocks of ", block), func(t *testing.T) {
				keygentest.Source(t, func(t *testing.T) keygen.Source {
					return seeded(t, open(z.Open(t, steady), cfg), 1)
				})
			})
		}
		t.Run("generator", func(t *testing.T) {
			keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
				return redisSegments(t, seeded(t, open(z.Open(t, steady), zookeeper.CounterConfig{Path: "/" + t.Name(), Block: 1000}), 1), 5000)
			})
		})
	})
}

func TestNoIDComesTwiceWhenZooKeeperIsKilledAgainAndAgain(t *testing.T) {
	z := server.RunZooKeeper(t)
	var gens []*segment.Generator
	stops := map[string][]func() []int64{}
	for name, construct := range counting {
		for range 2 {
			counter, err := construct(z.Open(t, steady), zookeeper.CounterConfig{Path: "/" + name, Block: 3})
			if err != nil {
				t.Fatal(err)
			}
			g := redisSegments(t, seeded(t, counter, 1), 3)
			gens, stops[name] = append(gens, g), append(stops[name], drawing(t, g))
		}
	}
	for range 5 {
		for _, g := range gens {
			before := g.Stats().Reservations
			testwait.Until(t, "progress", func() bool { return g.Stats().Reservations > before+3 })
		}
		z.Kill()
		if err := z.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, both := range stops {
		ids := append(both[0](), both[1]()...)
		t.Logf("%s: %d ids over 5 kills", name, len(ids))
		if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
			t.Errorf("%s: %d came twice, of %d", name, id, len(ids))
		}
	}
}

func TestAVersionIsANumberThatOtherProgramsSeeToo(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	counter, err := zookeeper.NewVersions(c, zookeeper.CounterConfig{Path: "/ids"})
	if err != nil {
		t.Fatal(err)
	}
	seeded(t, counter, 1)
	for want := range int64(3) {
		if span, err := counter.Reserve(t.Context(), 1); err != nil || span != (keygen.Span{First: want + 1, Count: 1, Step: 1}) {
			t.Errorf("%+v, %v", span, err)
		}
	}
	if _, stat, err := c.Get(onlyChild(t, c, "/ids")); err != nil || stat.Version != 3 {
		t.Errorf("%+v, %v", stat, err)
	}
}

func TestAZxidIsTheTransactionsNumber(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	counter, err := zookeeper.NewZxids(c, zookeeper.CounterConfig{Path: "/ids"})
	if err != nil {
		t.Fatal(err)
	}
	span, err := seeded(t, counter, 1).Reserve(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, stat, err := c.Get(onlyChild(t, c, "/ids")); err != nil || stat.Mzxid != span.First {
		t.Errorf("%+v, %v after %+v", stat, err, span)
	}
}

func onlyChild(t *testing.T, c *zk.Conn, path string) string {
	t.Helper()
	names, _, err := c.Children(path)
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	return path + "/" + names[0]
}

func TestACounterThatZooKeeperDoesNotHaveIsRefusedAndNotBegun(t *testing.T) {
	z := server.RunZooKeeper(t)
	onEachCounting(t, func(t *testing.T, open func(*zk.Conn, zookeeper.CounterConfig) *zookeeper.Counter) {
		c := z.Open(t, steady)
		cfg := zookeeper.CounterConfig{Path: "/" + t.Name(), Block: 10}
		counter := open(c, cfg)
		if span, err := counter.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrUnknownTag) {
			t.Errorf("%+v, %v", span, err)
		}
		if found, _, err := c.Exists(cfg.Path); found || err != nil {
			t.Errorf("it was begun, %v", err)
		}
		seeded(t, counter, 1001)
		span, err := counter.Reserve(t.Context(), 1)
		if err != nil || span.First < 1001 {
			t.Errorf("%+v, %v after a seed at 1001", span, err)
		}
		cfg.Block = 20
		if span, err := open(c, cfg).Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrUnknownTag) {
			t.Errorf("%+v, %v in other blocks", span, err)
		}
	})
}

func TestACounterThatIsLostIsRegressedUntilItIsSeededAbove(t *testing.T) {
	z := server.RunZooKeeper(t)
	onEachCounting(t, func(t *testing.T, open func(*zk.Conn, zookeeper.CounterConfig) *zookeeper.Counter) {
		c := z.Open(t, steady)
		cfg := zookeeper.CounterConfig{Path: "/" + t.Name()}
		old := seeded(t, open(c, cfg), 1)
		var last keygen.Span
		for range 5 {
			span, err := old.Reserve(t.Context(), 1)
			if err != nil || span.First <= last.First {
				t.Fatalf("%+v, %v after %+v", span, err, last)
			}
			last = span
		}
		forget(t, c, cfg.Path)
		if span, err := old.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrRegressed) {
			t.Errorf("%+v, %v from a counter that is gone", span, err)
		}
		seeded(t, open(c, cfg), 1) // somebody who knows less
		if span, err := old.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrRegressed) && span.First <= last.First {
			t.Errorf("%+v, %v from a counter that went back below %+v", span, err, last)
		}
		cfg.Floor = 1 << 61
		if span, err := open(c, cfg).Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrRegressed) {
			t.Errorf("%+v, %v below the floor", span, err)
		}
		forget(t, c, cfg.Path)
		seeded(t, open(c, cfg), 1)
		if span, err := old.Reserve(t.Context(), 1); err != nil || span.First < cfg.Floor {
			t.Errorf("%+v, %v, seeded at the floor", span, err)
		}
	})
}

// forget deletes a counter.
func forget(t *testing.T, c *zk.Conn, path string) {
	t.Helper()
	for _, path := range []string{onlyChild(t, c, path), path} {
		if err := c.Delete(path, -1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProcessesThatSeedACounterAtOnceMakeOne(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	var wg sync.WaitGroup
	firsts := make([]int64, 16)
	for i := range firsts {
		counter, err := zookeeper.NewVersions(c, zookeeper.CounterConfig{Path: "/ids/order"})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := counter.Seed(t.Context(), 1); err != nil {
				t.Error(err)
			}
			span, err := counter.Reserve(t.Context(), 1)
			if err != nil {
				t.Error(err)
			}
			firsts[i] = span.First
		})
	}
	wg.Wait()
	slices.Sort(firsts)
	for i, first := range firsts {
		if first != int64(i+1) {
			t.Fatalf("the keys are %v", firsts)
		}
	}
	onlyChild(t, c, "/ids/order")
}

func TestACallEndsWithItsContextWhenZooKeeperHangs(t *testing.T) {
	z := server.RunZooKeeper(t)
	through := relayTo(t, z.Addr())
	counter, err := zookeeper.NewVersions(through.open(t, time.Minute), zookeeper.CounterConfig{Path: "/ids"})
	if err != nil {
		t.Fatal(err)
	}
	seeded(t, counter, 1)
	through.hold()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if span, err := counter.Reserve(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", span, err)
	}
	through.release()
	// What the call that was given up reserved is a gap.
	if span, err := counter.Reserve(t.Context(), 1); err != nil || span.First < 1 || span.First > 2 {
		t.Errorf("%+v, %v", span, err)
	}
}

// The version of a znode is moved to its end in the log that the server reads
// when it starts: two billion writes would take weeks.
func TestAVersionThatWrapsRoundIsRefused(t *testing.T) {
	z := server.RunZooKeeper(t)
	cfg := zookeeper.CounterConfig{Path: "/ids"}
	c := z.Open(t, steady)
	counter, err := zookeeper.NewVersions(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if span, err := seeded(t, counter, 1).Reserve(t.Context(), 1); err != nil || span.First != 1 {
		t.Fatalf("%+v, %v", span, err)
	}
	node := onlyChild(t, c, "/ids")
	z.Kill()
	age(t, z.Log(), node, math.MaxInt32-1)
	if err := z.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the client is connected again", func() bool { _, _, err := c.Exists("/"); return err == nil })
	if span, err := counter.Reserve(t.Context(), 1); err != nil || span.First != math.MaxInt32 {
		t.Errorf("%+v, %v, want the last version", span, err)
	}
	for range 3 {
		if span, err := counter.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrExhausted) {
			t.Errorf("%+v, %v after the last version", span, err)
		}
	}
	late, err := zookeeper.NewVersions(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if span, err := late.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrExhausted) {
		t.Errorf("%+v, %v in a process that starts later", span, err)
	}
	if _, stat, err := c.Get(node); err != nil || stat.Version != math.MinInt32 {
		t.Errorf("%+v, %v: refused attempts went on counting", stat, err)
	}
}

// age sets the version in the last write to a znode in a server's log. There an
// entry is the Adler-32 of the transaction in 8 bytes, its length in 4, the
// transaction, and one byte; and that one of a write is a header of 32 bytes, the
// path and the data after their lengths, and the version.
func age(t *testing.T, log, node string, version uint32) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(text, append(binary.BigEndian.AppendUint32(nil, uint32(len(node))), node...))
	if at < 0 {
		t.Fatalf("no write to %s in %s", node, log)
	}
	txn := at - 32
	data := at + 4 + len(node)
	length := int32(binary.BigEndian.Uint32(text[data:]))
	binary.BigEndian.PutUint32(text[data+4+int(max(length, 0)):], version)
	size := int(binary.BigEndian.Uint32(text[txn-4:]))
	binary.BigEndian.PutUint64(text[txn-12:], uint64(adler32.Checksum(text[txn:txn+size])))
	if err := os.WriteFile(log, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package workerid_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

func ExampleStatic() {
	lease, err := workerid.Static(5).Acquire(context.Background(), keygen.Twitter())
	fmt.Println(lease.ID(), err)
	_, err = workerid.Static(1024).Acquire(context.Background(), keygen.Twitter())
	fmt.Println(err)
	// Output:
	// 5 <nil>
	// workerid: keygen: no worker id: 1024 is not between 0 and 1023, the highest worker id of the layout
}

func ExampleEnv() {
	if err := os.Setenv("POD_INDEX", "2"); err != nil {
		fmt.Println(err)
		return
	}
	lease, err := workerid.Env("POD_INDEX").Acquire(context.Background(), keygen.Twitter())
	fmt.Println(lease.ID(), err)
	// Output: 2 <nil>
}

// The machine with the address 10.1.2.3 gets 515, 2·256 + 3. On any other one the
// address is refused.
func ExamplePrivateIP() {
	addr := netip.MustParseAddr("10.1.2.3")
	lease, err := workerid.PrivateIP(addr).Acquire(context.Background(), keygen.Sonyflake())
	fmt.Println((lease == nil) == (err != nil))
	// Output: true
}

// The third pod of the StatefulSet "orders", orders-2, gets 2. If the name has no number,
// Ordinal returns an error and never guesses.
func ExampleOrdinal() {
	lease, err := workerid.Ordinal().Acquire(context.Background(), keygen.Twitter())
	fmt.Println((lease == nil) == (err != nil))
	// Output: true
}

// A process with two worker ids switches to the other one when its clock is set back: see
// snowflake.SwitchWorker.
func ExampleBackup() {
	ctx := context.Background()
	workers := workerid.Backup(5, 5+512)
	first, err := workers.Acquire(ctx, keygen.Twitter())
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := workers.Acquire(ctx, keygen.Twitter())
	fmt.Println(first.ID(), second.ID(), err)
	_, err = workers.Acquire(ctx, keygen.Twitter())
	fmt.Println(errors.Is(err, keygen.ErrNoWorker))
	// Output:
	// 5 517 <nil>
	// true
}

// Processes that lease their worker ids need no configured numbers. The ledger is in the
// application's database: Leases of a sqlstore.Store.
func ExampleNewLeased() {
	ctx := context.Background()
	workers, err := workerid.NewLeased(workerid.LeasedConfig{
		Ledger:    keygentest.NewMemoryLedger(time.Now), // store.Leases() in a program
		Namespace: "shop",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // processes
		lease, err := workers.Acquire(ctx, keygen.Twitter())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lease.ID())
	}
	// Output:
	// 0
	// 1
}

// With a record, a configured worker id knows how far it was used, also by a process whose
// clock was an hour ahead.
func ExampleRecorded() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	layout := keygen.Twitter()
	worker := workerid.Recorded(filepath.Join(dir, "worker"), workerid.Static(5))
	lease, err := worker.Acquire(context.Background(), layout)
	if err != nil {
		fmt.Println(err)
		return
	}
	window := lease.(keygen.Window)
	end := window.NotBefore() + int64(time.Hour/layout.Unit)
	if err := window.Release(context.Background(), end); err != nil {
		fmt.Println(err)
		return
	}
	next, err := worker.Acquire(context.Background(), layout)
	fmt.Println(next.NotBefore() >= end, err)
	// Output: true <nil>
}

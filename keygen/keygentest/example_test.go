// SPDX-License-Identifier: Apache-2.0

package keygentest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

func ExampleDuplicate() {
	fmt.Println(keygentest.Duplicate([]int64{3, 1, 2}))
	fmt.Println(keygentest.Duplicate([]int64{3, 1, 2, 3}))
	// Output:
	// 0 false
	// 3 true
}

// A process takes a worker id, and the ledger fails over to a copy that has not seen it.
// The lease is lost, and the worker id is given to nobody before it has run out.
func ExampleNewMemoryLedger() {
	ctx := context.Background()
	var clock keygentest.WallClock
	ledger := keygentest.NewMemoryLedger(clock.Now)
	empty := ledger.Copy()

	claim := workerid.Claim{Namespace: "orders", Owner: "a", Holder: "host a", Most: 1, Layout: keygen.Twitter(), Term: time.Minute}
	first, err := ledger.Take(ctx, claim)
	fmt.Println("worker", first.Worker, err)

	ledger.FailOver(empty)
	_, err = ledger.Renew(ctx, claim, first)
	fmt.Println(errors.Is(err, keygen.ErrWorkerLost))

	claim.Owner = "b"
	second, err := ledger.Take(ctx, claim)
	fmt.Println("worker", second.Worker, "again, later:", second.NotBefore >= first.Ceiling, err)
	// Output:
	// worker 0 <nil>
	// true
	// worker 0 again, later: true <nil>
}

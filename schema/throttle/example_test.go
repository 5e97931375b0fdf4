// SPDX-License-Identifier: Apache-2.0

package throttle_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/throttle"
)

// The copy of a migration pauses while a backup runs on the source, and fails when the
// backup takes longer than Longest.
func ExampleNew() {
	source := new(sql.DB) // from sql.Open
	backup := true
	copying, err := throttle.New(throttle.Config{
		Source:  source,
		Name:    "orders",
		Rate:    5000, // rows a second, on average
		Longest: 10 * time.Millisecond,
		Also: func(context.Context) (string, error) {
			if backup {
				return "a backup is under way", nil
			}
			return "", nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// migrate.Config{Throttle: copying.Wait, Cause: copying.Cause, …} calls it before each chunk.
	err = copying.Wait(context.Background())
	fmt.Println(errors.Is(err, throttle.ErrTooLong))
	backup = false
	fmt.Println(copying.Wait(context.Background()))
	// Output:
	// true
	// <nil>
}

// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// These errors come from input of a user: answer with a 4xx.
func Example_errorsOfInput() {
	_, err := keygen.ParseID("12x")
	fmt.Println(errors.Is(err, keygen.ErrSyntax), err)

	scrambler, err := keygen.NewScrambler([16]byte{1}, 40)
	check(err)
	_, err = scrambler.Scramble(1 << 41)
	fmt.Println(errors.Is(err, keygen.ErrRange), err)

	_, err = keygen.Twitter().Parse(-1)
	fmt.Println(errors.Is(err, keygen.ErrLayout), err)
	// Output:
	// true keygen: not an id: 'x' is not a decimal digit, at byte 2 of "12x"
	// true keygen: id out of range: 2199023255552 is not between 1 and 1099511627775, the highest id of 40 bits
	// true keygen: layout: id -1 is negative; ids have at most 63 bits
}

// These errors come from the program's configuration: stop at the start, and show them to
// the operator.
func Example_errorsOfConfiguration() {
	ctx := context.Background()
	_, err := keygen.Set{}.Lookup("order")
	fmt.Println(errors.Is(err, keygen.ErrUnknownGenerator), err)

	err = keygen.Layout{}.Validate()
	fmt.Println(errors.Is(err, keygen.ErrLayout), err)

	_, err = snowflake.New(ctx, snowflake.Config{Worker: workerid.Static(5000), Layout: keygen.Twitter()})
	fmt.Println(errors.Is(err, keygen.ErrNoWorker), err)
	// Output:
	// true keygen: unknown generator "order"; the set names no generators; add it before the set is used
	// true keygen: layout: Unit is 0s; the shortest is 1ns
	// true snowflake: acquire a worker id: workerid: keygen: no worker id: 5000 is not between 0 and 1023, the highest worker id of the layout
}

// These errors come from a running program. A call waits for a source that does not answer
// until its context ends: try again later, or answer with 503.
func Example_errorsOfRunning() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := segment.New(ctx, segment.Config{Source: silent{}})
	fmt.Println(errors.Is(err, keygen.ErrStarved), errors.Is(err, context.DeadlineExceeded))

	g, err := snowflake.New(context.Background(), snowflake.Config{Worker: workerid.Static(1)})
	check(err)
	check(g.Close())
	_, err = g.Next(context.Background())
	fmt.Println(errors.Is(err, keygen.ErrClosed), err)

	last := keygen.Counting(1<<63-2, 1)
	for range 3 {
		_, err = last.Next(context.Background())
	}
	fmt.Println(errors.Is(err, keygen.ErrExhausted), err)
	// Output:
	// true true
	// true snowflake: keygen: generator is closed
	// true keygen: no keys left: Counting(9223372036854775806, 1) has 0 of 1 keys left; start and step must be at least 1, and keys at most 9223372036854775807
}

// silent is a source whose database does not answer.
type silent struct{}

// Reserve waits for as long as the context allows.
func (silent) Reserve(ctx context.Context, _ int64) (keygen.Span, error) {
	<-ctx.Done()
	return keygen.Span{}, ctx.Err()
}

// check keeps the examples short; a program returns its errors.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

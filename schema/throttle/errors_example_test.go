// SPDX-License-Identifier: Apache-2.0

package throttle_test

import (
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema/throttle"
)

// New names the invalid fields.
func Example_errors() {
	_, err := throttle.New(throttle.Config{})
	fmt.Println(errors.Is(err, throttle.ErrConfig), err)
	// Output:
	// true throttle: configuration cannot work: Source: is nil
	// Name: "" does not have 1 to 64 letters
}

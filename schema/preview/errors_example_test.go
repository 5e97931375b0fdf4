// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema/preview"
)

// Start says which field is missing.
func Example_errors() {
	_, err := preview.Start(context.Background(), preview.Config{})
	fmt.Println(errors.Is(err, preview.ErrConfig), err)
	// Output:
	// true preview: configuration: Source is nil; give it the database that is being migrated
}

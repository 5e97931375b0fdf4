// SPDX-License-Identifier: Apache-2.0

package firstlease

import (
	"context"
	"fmt"
	"time"
)

// maxWait is the longest wait.
const maxWait = time.Minute

// Acquire returns what acquire returns, which gets a context that ends with ctx or after a minute. After the minute the error says so.
func Acquire[T any](ctx context.Context, acquire func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	lease, err := acquire(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w, after %v without an answer", err, maxWait)
	}
	return lease, err
}

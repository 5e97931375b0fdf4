// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"testing"
)

func TestTheErrorThatEndsTheOthersIsTheOneReported(t *testing.T) {
	cause := errors.New("a row is too long")
	fail := func(context.Context) error { return cause }
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for range 20_000 {
		if err := Together(t.Context(), wait, fail, wait); !errors.Is(err, cause) {
			t.Fatalf("got %v", err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"sync"
)

// Together runs tasks until all have ended; the first error ends the others.
func Together(ctx context.Context, tasks ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	for _, task := range tasks {
		wg.Go(func() {
			if err := task(ctx); err != nil {
				once.Do(func() { first = err }) // before the other tasks are cancelled and fail, too
				cancel()
			}
		})
	}
	wg.Wait()
	return first
}

// InTurn runs tasks one after another, up to the first that fails.
func InTurn(ctx context.Context, tasks ...func(context.Context) error) error {
	for _, task := range tasks {
		if err := task(ctx); err != nil {
			return err
		}
	}
	return nil
}

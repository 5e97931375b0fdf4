// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/shardid/shardid/examples/internal/web"
	"github.com/shardid/shardid/keygen"
)

const (
	atOnce = 4
	// thinking is the pause of a customer between two orders.
	thinking = 5 * time.Millisecond
)

// customers order over HTTP and remember each order that the shop has confirmed.
type customers struct {
	url   string
	users int

	mu      sync.Mutex
	orders  []web.Order
	longest time.Duration // the longest time of an order
}

// buy sends orders until ctx ends. It returns the first error of any customer.
func (c *customers) buy(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for n := range atOnce {
		all.Go(func() {
			for i := n; ctx.Err() == nil; i += atOnce {
				if err := c.order(ctx, i); err != nil && ctx.Err() == nil {
					stop(err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(thinking):
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// order buys, and reads what was bought.
func (c *customers) order(ctx context.Context, n int) error {
	o := web.Order{UserID: keygen.ID(1 + n%c.users), Items: []web.Item{{ProductID: 1, Quantity: 1}, {ProductID: 2, Quantity: int64(1 + n%5)}}}
	began := time.Now()
	if err := c.post(ctx, "/orders", &o); err != nil {
		return err
	}
	took := time.Since(began)
	c.mu.Lock()
	c.orders, c.longest = append(c.orders, o), max(c.longest, took)
	c.mu.Unlock()
	return c.read(ctx, o)
}

// lookAgain reads every order that was confirmed so far.
func (c *customers) lookAgain(ctx context.Context) error {
	c.mu.Lock()
	orders, longest := slices.Clone(c.orders), c.longest
	c.mu.Unlock()
	for _, o := range orders {
		if err := c.read(ctx, o); err != nil {
			return err
		}
	}
	slog.Info("every order is there", "ordered meanwhile", len(orders), "longest wait", longest.Round(time.Millisecond))
	return nil
}

func (c *customers) read(ctx context.Context, want web.Order) error {
	var got web.Order
	if err := c.do(ctx, http.MethodGet, "/orders/"+want.ID.String(), nil, &got); err != nil {
		return err
	}
	if got.UserID != want.UserID || !slices.Equal(got.Items, want.Items) {
		return fmt.Errorf("order %d is %+v, not %+v", want.ID, got, want)
	}
	return nil
}

func (c *customers) post(ctx context.Context, path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, path, text, v)
}

func (c *customers) do(ctx context.Context, method, path string, body []byte, into any) (err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, into)
}

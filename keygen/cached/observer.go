// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
)

// Observer receives the events of a [Generator], for logs and metrics. Each function may be
// nil. The caller that waited calls Wait, so several calls of Wait may run at once. The
// goroutine that fills the ring calls the other functions, one at a time, and fills no further
// until they return. The functions must not call Close.
type Observer struct {
	// Wait: a call found the ring empty and waited for took; it returned err.
	Wait func(took time.Duration, err error)
	// Refill: the ids of one tick were made, or err says why not. The generator retries after
	// an error.
	Refill func(tick keygen.Span, took time.Duration, err error)
	// Outage: making ids failed for the first time since the last success.
	Outage func(err error)
	// Recovery: ids were made again; lasted is the time since the Outage.
	Recovery func(lasted time.Duration)
}

func (o Observer) engine() spans.Observer {
	return spans.Observer{Wait: o.Wait, Refill: o.Refill, Outage: o.Outage, Recovery: o.Recovery}
}

// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
)

// Observer receives the events of a [Generator], for logs and metrics. Each function may be
// nil. The caller that waited calls Wait, so several calls of Wait may run at once. The
// goroutine that fetches segments calls the other functions, one at a time, and fetches no
// further until they return. The functions must not call Close.
type Observer struct {
	// Wait: a call found no id in memory and waited for took; it returned err.
	Wait func(took time.Duration, err error)
	// Refill: the source returned a segment or an error after took. The generator retries after
	// an error.
	Refill func(segment keygen.Span, took time.Duration, err error)
	// Step: the size of segments changes.
	Step func(from, to int64)
	// Outage: the source failed for the first time since its last success.
	Outage func(err error)
	// Recovery: the source succeeded again; lasted is the time since the Outage.
	Recovery func(lasted time.Duration)
}

func (o Observer) engine() spans.Observer {
	return spans.Observer{Wait: o.Wait, Refill: o.Refill, Outage: o.Outage, Recovery: o.Recovery}
}

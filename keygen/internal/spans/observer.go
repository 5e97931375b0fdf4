// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"time"

	"github.com/shardid/shardid/keygen"
)

// Observer receives the events of a Buffer. Each function may be nil. The goroutine that waited
// calls Wait, so several calls of Wait may run at once. The goroutine that fills calls Refill,
// Outage and Recovery, one at a time. The Buffer holds no lock during a call. The functions
// must not call Close.
type Observer struct {
	// Wait: a call found no key and waited for took; it returned err.
	Wait func(took time.Duration, err error)
	// Refill: the source returned a span or an error after took.
	Refill func(span keygen.Span, took time.Duration, err error)
	// Outage: the source failed for the first time since its last success.
	Outage func(err error)
	// Recovery: the source succeeded again; lasted is the time since the Outage.
	Recovery func(lasted time.Duration)
}

func (o Observer) wait(took time.Duration, err error) {
	if o.Wait != nil {
		o.Wait(took, err)
	}
}

func (o Observer) refill(span keygen.Span, took time.Duration, err error) {
	if o.Refill != nil {
		o.Refill(span, took, err)
	}
}

func (o Observer) outage(err error) {
	if o.Outage != nil {
		o.Outage(err)
	}
}

func (o Observer) recovery(lasted time.Duration) {
	if o.Recovery != nil {
		o.Recovery(lasted)
	}
}

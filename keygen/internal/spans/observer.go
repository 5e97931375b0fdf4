package spans

import (
	"time"

	"github.com/shardid/shardid/keygen"
)

// Observer is told what happens in a Buffer; each of its functions may be nil.
// They are called by the goroutine that waited or filled, with no lock held, one
// call of Refill, Outage or Recovery at a time. They must not call Close.
type Observer struct {
	// Wait: a call found no key and waited; err is what it returned.
	Wait func(took time.Duration, err error)
	// Refill: the source was asked for a span.
	Refill func(span keygen.Span, took time.Duration, err error)
	// Outage: the source failed, for the first time since it succeeded.
	Outage func(err error)
	// Recovery: the source succeeded again, so long after the Outage.
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

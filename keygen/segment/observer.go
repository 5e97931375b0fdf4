package segment

import (
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
)

// Observer is told what happens in a [Generator], for logs and metrics; each of
// its functions may be nil. Wait is called by whoever waited, so by several
// goroutines at once; the others by the goroutine that fetches segments, one at
// a time, which fetches no further while they run. None may call Close.
type Observer struct {
	// Wait: a call found no id in memory and waited; err is what it returned.
	Wait func(took time.Duration, err error)
	// Refill: the source was asked for a segment. An error is retried.
	Refill func(segment keygen.Span, took time.Duration, err error)
	// Step: segments have another size from now on.
	Step func(from, to int64)
	// Outage: the source failed, for the first time since it succeeded.
	Outage func(err error)
	// Recovery: the source succeeded again, so long after the Outage.
	Recovery func(lasted time.Duration)
}

func (o Observer) engine() spans.Observer {
	return spans.Observer{Wait: o.Wait, Refill: o.Refill, Outage: o.Outage, Recovery: o.Recovery}
}

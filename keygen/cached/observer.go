package cached

import (
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
)

// Observer is told what happens in a [Generator], for logs and metrics; each of
// its functions may be nil. Wait is called by whoever waited, so by several
// goroutines at once; the others by the goroutine that fills the ring, one at a
// time, which fills no further while they run. None may call Close.
type Observer struct {
	// Wait: a call found the ring empty and waited; err is what it returned.
	Wait func(took time.Duration, err error)
	// Refill: the ids of one tick were made, or could not be made. An error is
	// retried.
	Refill func(tick keygen.Span, took time.Duration, err error)
	// Outage: no ids could be made, for the first time since some could.
	Outage func(err error)
	// Recovery: ids were made again, so long after the Outage.
	Recovery func(lasted time.Duration)
}

func (o Observer) engine() spans.Observer {
	return spans.Observer{Wait: o.Wait, Refill: o.Refill, Outage: o.Outage, Recovery: o.Recovery}
}

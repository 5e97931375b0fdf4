// SPDX-License-Identifier: Apache-2.0

package keygen

import "time"

// Stats is a snapshot of a generator. It is computed by the call, so that issuing keys costs
// nothing extra. Fields that do not apply to a generator are zero.
type Stats struct {
	Issued   int64 // keys issued since the start
	Waits    int64 // calls that had to wait, for the clock or for a reservation
	Failures int64 // calls that returned an error

	Rate            float64       // keys per second, averaged over at least the last second
	Remaining       int64         // keys held in memory, ready to be issued
	Reservations    int64         // spans reserved from the source
	FailedReserves  int64         // reservations that failed
	LastError       error         // error of the newest reservation; nil when it succeeded
	LastReservation time.Duration // how long the newest reservation took

	Worker      int64     // worker id in use
	LeasedUntil time.Time // when the lease on the worker id ends unless it is renewed
	Expires     time.Time // when the layout's time field is used up
}

// Reporter is the optional ability of a generator to describe its state.
type Reporter interface {
	Stats() Stats
}

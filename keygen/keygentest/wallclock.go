// SPDX-License-Identifier: Apache-2.0

package keygentest

import (
	"sync/atomic"
	"time"
)

// WallClock is a wall clock that a test sets, for a Config.Now. The zero WallClock has the
// system's time; in a bubble of testing/synctest, the bubble's. It is safe for concurrent
// use.
type WallClock struct{ ahead atomic.Int64 }

// Now returns the system's time plus the offset of the clock.
func (w *WallClock) Now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// Step moves the clock forwards, or backwards by a negative duration.
func (w *WallClock) Step(by time.Duration) { w.ahead.Add(int64(by)) }

// Set puts the clock ahead of the system's time, behind it by a negative duration.
func (w *WallClock) Set(ahead time.Duration) { w.ahead.Store(int64(ahead)) }

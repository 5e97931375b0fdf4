// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"sync"
	"time"
)

// rate limits the number of rows per second.
type rate struct {
	mu        sync.Mutex
	perSecond int64
	free      time.Time // when the next rows may be copied
}

func (r *rate) set(perSecond int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perSecond, r.free = max(0, perSecond), time.Time{}
}

func (r *rate) copied(rows int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.perSecond > 0 {
		r.catchUp()
		r.free = r.free.Add(time.Duration(float64(rows) / float64(r.perSecond) * float64(time.Second)))
	}
}

// wait returns how long it is until the next rows may be copied.
func (r *rate) wait() (d time.Duration, perSecond int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.perSecond == 0 {
		return 0, 0
	}
	r.catchUp()
	return time.Until(r.free), r.perSecond
}

// catchUp drops unused time, except for the last second: the time in which a chunk is
// copied counts.
func (r *rate) catchUp() {
	if least := time.Now().Add(-time.Second); r.free.Before(least) {
		r.free = least
	}
}

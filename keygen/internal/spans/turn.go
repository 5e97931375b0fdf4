// SPDX-License-Identifier: Apache-2.0

package spans

// turn is the right of one call to wait for a new span. The other calls that found no key queue
// for it. The call gives it up when it has its key. If a new span woke all of them, the first
// to run could take every key of a small span and be the first to wait again; on one processor
// that would be the same call each time, and the others would get no key.
type turn struct {
	line chan struct{} // capacity 1: the call that sent its element has the turn
	held bool
}

func (t *turn) leave() {
	if t.held {
		t.held = false
		<-t.line
	}
}

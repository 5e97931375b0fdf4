// SPDX-License-Identifier: Apache-2.0

package zookeeper

import "time"

// Observer receives the events of a [Workers], for logs and alarms. Each function may be nil.
// The goroutine that renews the worker id calls them, one at a time, and does nothing else
// until they return.
type Observer struct {
	// Alarm: the process gave up its worker id, because the clock was set back or another
	// process has the worker id now; err says which. The generator issues no ids until it has
	// another worker id, for which the clock must be right again. An ErrClocksDiffer only
	// reports that the clock is far ahead of ZooKeeper's; ids then have ZooKeeper's time.
	Alarm func(err error)
	// Outage: ZooKeeper did not answer, for the first time since its last answer.
	Outage func(err error)
	// Recovery: ZooKeeper answered again; lasted is the time since the Outage.
	Recovery func(lasted time.Duration)
}

func (o Observer) alarm(err error) {
	if o.Alarm != nil {
		o.Alarm(err)
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

package zookeeper

import "time"

// Observer is told what happens to the worker id of a [Workers], for logs and
// alarms; each of its functions may be nil. They are called by the goroutine that
// renews the worker id, one at a time, which does nothing else meanwhile.
type Observer struct {
	// Alarm: the worker id was given up, because the clock was set back or another
	// process has it now; err says which. No ids are issued until the generator has
	// got another one, for which the clock has to be right again. An ErrClocksDiffer
	// only says that the clock is far ahead of ZooKeeper's, whose time ids have then.
	Alarm func(err error)
	// Outage: ZooKeeper did not answer, for the first time since it did.
	Outage func(err error)
	// Recovery: ZooKeeper answered again, so long after the Outage.
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

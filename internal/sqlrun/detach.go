package sqlrun

import "context"

// Detachable is the context of transactions that are committed one after the other.
// It ends as its parent does until it is detached; from then on the parent's end
// does not fall between two COMMITs. End must be called in the end.
type Detachable struct {
	context.Context //nolint:containedctx // it is one

	parent context.Context //nolint:containedctx // of the context
	stop   func() bool
	End    context.CancelFunc
}

// NewDetachable returns a context that ends as parent does.
func NewDetachable(parent context.Context) *Detachable {
	own, end := context.WithCancel(context.WithoutCancel(parent))
	return &Detachable{Context: own, parent: parent, stop: context.AfterFunc(parent, end), End: end}
}

// Detach is called once. It returns the parent's error when that has ended already.
func (d *Detachable) Detach() error {
	if d.stop() {
		return nil
	}
	return d.parent.Err()
}

// Err returns the parent's error when that is why the context ended.
func (d *Detachable) Err() error {
	err := d.Context.Err()
	if cause := d.parent.Err(); err != nil && cause != nil {
		err = cause
	}
	return err
}

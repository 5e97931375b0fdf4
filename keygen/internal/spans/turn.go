package spans

// turn is a call's place in the line of those that found no key, which it leaves when it
// has one. Were all of them woken at once, the one that runs first would take every key of
// a small span and be the first to wait again: on one processor that is the same one each
// time, and the others get none.
type turn struct {
	line chan struct{} // holds one, of the call whose turn it is
	held bool
}

func (t *turn) leave() {
	if t.held {
		t.held = false
		<-t.line
	}
}

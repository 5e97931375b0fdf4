// Package spans is the buffered engine that generators share: what Leaf calls
// the double buffer, CosId the chain and UidGenerator the ring.
//
// # Promise
//
// Callers take keys from the span in use with one atomic addition and a comparison.
// Behind it stands a ring of spans to come, which one goroutine at a time, owned by the
// Buffer, fills when fewer keys remain than its padding factor says. Callers that
// outrun it wait for it, each under its own context, and no caller talks to the source
// itself. A key is given to one caller only, as long as the source never gives a key
// twice; a source that goes back to keys it has given to this Buffer is found out and
// nothing of its span is issued.
//
// # Who owns a key
//
// An addition to chunk.taken gives its caller the keys that it covered, as
// far as the span reaches, whatever happens to the chunk meanwhile. Chunks are
// only ever replaced, never refilled: a caller that slept between reading the
// current chunk and adding to it gets a key of the old chunk, or finds it used
// up. Giving keys up (Discard, Close) is an exchange of taken for the span's
// end, after which every addition lands beyond the end.
//
// # Failure modes
//
// While the source fails, keys in memory go on being issued and the engine
// retries with growing, jittered pauses. A caller that finds no key waits for
// its context or for the Buffer's patience, whichever ends first, and gets
// keygen.ErrStarved with the source's last error inside. Errors that a retry
// cannot cure (keygen.SetupError, ErrUnknownTag, ErrRegressed, ErrExhausted,
// ErrExpired) reach the callers that find no key at once; the next call asks the
// source again. While there are keys it is asked again when half of those left in
// the span in use are gone. Nothing that a source
// or an observer does ends the filling for good, not even when it ends the
// goroutine.
package spans

// Package spans is the buffered engine that generators over a keygen.Source
// share: what Leaf calls the double buffer, CosId the chain and UidGenerator
// the ring.
//
// # Promise
//
// Callers take keys from the current span with one atomic addition. One
// goroutine at a time, owned by the Buffer, keeps the next span ready; callers
// that outrun it wait for it, each under its own context, and no caller talks
// to the source itself. A key is given to one caller only, as long as the
// source never gives a key twice; a source that goes back to keys it has given
// to this Buffer is found out and nothing of its span is issued.
//
// # Failure modes
//
// While the source fails, keys in memory go on being issued and the engine
// retries with growing, jittered pauses. A caller that finds no key waits for
// its context or for the Buffer's patience, whichever ends first, and gets
// keygen.ErrStarved with the source's last error inside. Errors that a retry
// cannot cure (keygen.ErrUnknownTag, keygen.ErrRegressed) reach the callers that
// wait at once; the next call asks the source again.
package spans

// SPDX-License-Identifier: Apache-2.0

// Package spans buffers keys in memory for the generators segment and cached. Leaf calls such a
// buffer the double buffer, CosId the chain and UidGenerator the ring.
//
// # Promise
//
// Callers take keys from the current span with one atomic addition and a comparison. Further
// spans wait in a ring. When fewer keys remain than the padding factor demands, a goroutine
// that the Buffer owns fills the ring; there is one such goroutine at a time. Callers that find
// no key wait for it, each under its own context. No caller calls the source itself. Each key
// goes to one caller, provided that the source never returns a key twice. The Buffer refuses a
// span that begins at or below keys it got before, and issues none of it.
//
// # Who owns a key
//
// A caller that adds to chunk.taken owns the keys that its addition covered, up to the end of
// the span. That holds whatever happens to the chunk meanwhile, because a chunk is replaced and
// never refilled: a caller that is preempted between reading the current chunk and adding to it
// gets a key of the old chunk, or finds it used up. Discard and Close make keys unusable by an
// atomic swap of taken to the span's end; every later addition then lies past the end.
//
// # Failure modes
//
// While the source fails, the Buffer issues the keys in memory and retries with growing,
// jittered pauses. A caller that finds no key waits until its context ends or Config.MaxWait
// has passed, whichever comes first, and gets keygen.ErrStarved, which wraps the source's last
// error. Errors that a retry cannot cure (keygen.SetupError, ErrUnknownTag, ErrRegressed,
// ErrExhausted, ErrExpired) reach the callers that find no key at once, and the next call asks
// the source again. While keys remain, the Buffer asks again after half of the current span's
// remaining keys are issued. A source or an observer cannot stop later fills, not even by
// ending the goroutine that called it.
package spans

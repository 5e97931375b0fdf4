// SPDX-License-Identifier: Apache-2.0

package objectid

// StartAt makes the next id of g take the random bytes and the counter of n + 1.
func (g *Generator) StartAt(n uint64) { g.taken.Store(n) }

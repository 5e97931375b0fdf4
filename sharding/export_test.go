// SPDX-License-Identifier: Apache-2.0

package sharding

// Waiting reports whether a statement is waiting for the next place of a table.
func (r *Router) Waiting() bool { return len(r.routes.mutex) == 1 }

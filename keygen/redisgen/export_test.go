// SPDX-License-Identifier: Apache-2.0

package redisgen

// KnownGroups is of how many groups p remembers how far they are.
func KnownGroups(p *Periods) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.newest)
}

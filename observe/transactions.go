// SPDX-License-Identifier: Apache-2.0

package observe

import "github.com/shardid/shardid/sharding/twophase"

// transactions returns the metrics of a resolver, none if r is nil.
func transactions(r *twophase.Resolver) []Family {
	inDoubt := Family{Name: "shardid_transactions_in_doubt", Help: "Prepared branches of transactions that the resolver's last run left.", Type: Gauge}
	resolved := Family{Name: "shardid_transactions_resolved_total", Help: "Branches that the resolver ended after their program was killed.", Type: Counter, Labels: []string{"outcome"}}
	up := Family{Name: "shardid_transactions_resolver_up", Help: "1 when the resolver's last run reached all databases, 0 when it did not.", Type: Gauge}
	if r != nil {
		total, err := r.Total()
		inDoubt.Samples = []Sample{{Value: float64(total.InDoubt)}}
		resolved.Samples = []Sample{{Values: []string{"committed"}, Value: float64(total.Committed)}, {Values: []string{"rolled_back"}, Value: float64(total.RolledBack)}}
		up.Samples = []Sample{{Value: number(err == nil)}}
	}
	return []Family{inDoubt, resolved, up}
}

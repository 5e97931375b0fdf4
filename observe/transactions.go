// SPDX-License-Identifier: Apache-2.0

package observe

import "github.com/shardid/shardid/sharding/twophase"

// transactions are the metrics of a resolver, or none of nil.
func transactions(r *twophase.Resolver) []Family {
	inDoubt := Family{Name: "shardid_transactions_in_doubt", Help: "Prepared branches of transactions that the last look of the resolver has left.", Type: Gauge}
	resolved := Family{Name: "shardid_transactions_resolved_total", Help: "Branches that the resolver has ended after their program was killed.", Type: Counter, Labels: []string{"outcome"}}
	up := Family{Name: "shardid_transactions_resolver_up", Help: "1 when the last look of the resolver could ask all databases, 0 when not.", Type: Gauge}
	if r != nil {
		total, err := r.Total()
		inDoubt.Samples = []Sample{{Value: float64(total.InDoubt)}}
		resolved.Samples = []Sample{{Values: []string{"committed"}, Value: float64(total.Committed)}, {Values: []string{"rolled_back"}, Value: float64(total.RolledBack)}}
		up.Samples = []Sample{{Value: number(err == nil)}}
	}
	return []Family{inDoubt, resolved, up}
}

// SPDX-License-Identifier: Apache-2.0

package observe

import "time"

// Gather returns the present values of all metrics, in the order of [Describe]. A metric without
// values has no samples. Gather queries no database.
func (s *Service) Gather() []Family {
	generators := s.Generators()
	var all []Family
	for _, m := range generatorMetrics {
		all = append(all, m.family(generators))
	}
	all = append(all, s.cfg.Statements.families()...)
	all = append(all, s.cfg.Migrations.families()...)
	return append(all, transactions(s.cfg.Transactions)...)
}

// Describe returns the metrics that [Service.Gather] returns, without samples. They are
// the same for every service.
func Describe() []Family {
	s := Service{now: time.Now}
	return s.Gather()
}

// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"fmt"
	"math"
)

// Balance is a verdict on how ids spread over slots.
type Balance int

const (
	// TooFew says nothing, as the sample has less than five ids for each slot.
	TooFew Balance = iota
	// Even means that the ids spread as evenly as chance would spread them, or more so.
	Even
	// Uneven means that chance does not spread ids so.
	Uneven
)

// AuditReport says how a sample of ids spreads over the slots of a rule.
type AuditReport struct {
	IDs   int
	Slots int
	// Chi2 is chi² per degree of freedom: about 1 for ids drawn by lot, less for
	// ids that are spread more evenly than that. It is 0 for one slot.
	Chi2 float64
	// Fullest and Emptiest are the slots with most and with fewest ids, and Most
	// and Fewest their numbers of ids.
	Fullest, Emptiest Slot
	Most, Fewest      int
	// Empty is the number of slots without an id.
	Empty   int
	Verdict Balance
}

// Audit counts how ids spread over the slots of a rule: a sample of a production
// table, best the newest ids, shows whether its generator fits the rule. An id
// that the rule refuses is an error.
func Audit(rule Rule, ids []int64) (AuditReport, error) {
	if err := checkRule(rule); err != nil {
		return AuditReport{}, fmt.Errorf("sharding: Audit: Rule %w", err)
	}
	counts := make([]int, rule.Slots())
	for _, id := range ids {
		slot, err := within(rule, id)
		if err != nil {
			return AuditReport{}, fmt.Errorf("sharding: Audit: id %d: %w", id, err)
		}
		counts[slot]++
	}
	return report(counts, len(ids)), nil
}

func report(counts []int, ids int) AuditReport {
	r := AuditReport{IDs: ids, Slots: len(counts)}
	mean, sum := float64(ids)/float64(len(counts)), 0.0
	for slot, n := range counts {
		if n > counts[r.Fullest] {
			r.Fullest = Slot(slot)
		}
		if n < counts[r.Emptiest] {
			r.Emptiest = Slot(slot)
		}
		if n == 0 {
			r.Empty++
		}
		sum += (float64(n) - mean) * (float64(n) - mean)
	}
	r.Most, r.Fewest = counts[r.Fullest], counts[r.Emptiest]
	if freedom := float64(len(counts) - 1); freedom > 0 && ids > 0 {
		r.Chi2 = sum / mean / freedom
	}
	r.Verdict = r.judge(mean)
	return r
}

// judge allows what chance exceeds once in a million samples or less: five
// standard deviations of chi² per degree of freedom, which are wide when the
// slots are few.
func (r AuditReport) judge(mean float64) Balance {
	switch freedom := float64(r.Slots - 1); {
	case mean < 5:
		return TooFew
	case freedom > 0 && r.Chi2 > 1+5*math.Sqrt(2/freedom)+20/freedom:
		return Uneven
	}
	return Even
}

// String returns the verdict as a sentence that says what to do.
func (r AuditReport) String() string {
	counted := fmt.Sprintf("%d ids over %d slots: chi² per degree of freedom %.3f, fullest slot %d (%d ids), emptiest slot %d (%d ids)",
		r.IDs, r.Slots, r.Chi2, r.Fullest, r.Most, r.Emptiest, r.Fewest)
	switch r.Verdict {
	case TooFew:
		return fmt.Sprintf("%s; too few to judge, take %d or more", counted, 5*r.Slots)
	case Uneven:
		return fmt.Sprintf("%s; uneven, %d slots are empty: choose a rule that hashes the id, or a generator whose low bits are even", counted, r.Empty)
	}
	return counted + "; even"
}

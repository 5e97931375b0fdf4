// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"fmt"
	"math"
)

// Balance rates how evenly ids spread over slots.
type Balance int

const (
	// TooFew means that the sample has fewer than five ids for each slot, which is too few for a
	// rating.
	TooFew Balance = iota
	// Even means that the ids spread at least as evenly as random ids would.
	Even
	// Uneven means that random ids would not spread so unevenly.
	Uneven
)

// AuditReport describes how a sample of ids spreads over the slots of a rule.
type AuditReport struct {
	IDs   int
	Slots int
	// Chi2 is chi² per degree of freedom: about 1 for random ids, and less for ids that spread more
	// evenly. It is 0 for one slot.
	Chi2 float64
	// Fullest and Emptiest are the slots with the most and the fewest ids; Most and Fewest are the
	// numbers of their ids.
	Fullest, Emptiest Slot
	Most, Fewest      int
	// Empty is the number of slots without an id.
	Empty   int
	Verdict Balance
}

// Audit counts how ids spread over the slots of a rule. A sample of a production table, preferably
// of its newest ids, shows whether the ids' generator fits the rule. An id that the rule refuses is
// an error.
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
	r.Verdict = r.balance(mean)
	return r
}

// balance allows deviations that occur by chance in more than one of a million samples: up to five
// standard deviations of chi² per degree of freedom, which is large when the slots are few.
func (r AuditReport) balance(mean float64) Balance {
	switch freedom := float64(r.Slots - 1); {
	case mean < 5:
		return TooFew
	case freedom > 0 && r.Chi2 > 1+5*math.Sqrt(2/freedom)+20/freedom:
		return Uneven
	}
	return Even
}

// String returns the result as a sentence that says what to do.
func (r AuditReport) String() string {
	counted := fmt.Sprintf("%d ids over %d slots: chi² per degree of freedom %.3f, fullest slot %d (%d ids), emptiest slot %d (%d ids)",
		r.IDs, r.Slots, r.Chi2, r.Fullest, r.Most, r.Emptiest, r.Fewest)
	switch r.Verdict {
	case TooFew:
		return fmt.Sprintf("%s; too few ids for a result; take %d or more", counted, 5*r.Slots)
	case Uneven:
		return fmt.Sprintf("%s; uneven, %d slots are empty: choose a rule that hashes the id, or a generator whose low bits are even", counted, r.Empty)
	}
	return counted + "; even"
}

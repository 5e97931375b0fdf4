// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"fmt"
	"time"
)

// WhyNoSlot names a value that a condition gives for a column that leads to shards, if that value does not, and
// says why: otherwise the user would be told to add the condition that is there.
func WhyNoSlot(p Proof, args []any) string {
	var among []Proof
	switch p := p.(type) {
	case allOf:
		among = p
	case AnyOf:
		among = p
	case *Equals:
		for _, o := range p.List {
			if why := p.Lead.whyNoSlot(o.Value(args)); why != "" {
				return why
			}
		}
	case *Within:
		return p.whyEverySlot(args)
	}
	for _, each := range among {
		if why := WhyNoSlot(each, args); why != "" {
			return why
		}
	}
	return ""
}

// whyEverySlot says why a condition with a lower or upper end does not exclude slots.
func (p *Within) whyEverySlot(args []any) string {
	for _, end := range []*Operand{p.Low, p.High} {
		if end == nil {
			continue
		}
		if v := end.Value(args); p.Lead.slotBy(v).All {
			if why := p.Lead.whyNoSlot(v); why != "" {
				return why
			}
		}
	}
	if p.Slots(args).All {
		return "the condition on " + p.Lead.Column + " allows rows of every shard"
	}
	return ""
}

func (l *Lead) whyNoSlot(v any) string {
	switch v.(type) {
	case Unbound:
		return "the argument for " + l.Column + " is missing"
	case inexact:
		return "the database may compare " + l.Column + " as a float with a list of values that are not all whole numbers; pass them as whole numbers, and leave NULL out"
	}
	v, err := Plain(v)
	known := true
	if v != nil {
		if v, known = l.Formed(v); known {
			_, err = l.Table.SlotBy(l.Column, v)
		}
	}
	_, isTime := v.(time.Time)
	switch {
	case err != nil:
		return "the value of " + l.Column + " leads to no shard: " + err.Error()
	case isTime && !l.comparesWith(v):
		return l.Column + " is not a column of times with the precision of its rule, or it is one of SQLite, which compares times as texts"
	case v != nil && (!known || !l.comparesWith(v)):
		return fmt.Sprintf("the database compares a Go %T with %s otherwise than its rule does", v, l.Column)
	}
	return ""
}

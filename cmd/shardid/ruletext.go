package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// ruleText is a rule as the layout file writes it, "low(10)".
type ruleText string

var ruleForm = regexp.MustCompile(`^\s*(\w+)\s*\(([^()]*)\)\s*$`)

// ruleNames are all that a ruleText may name.
const ruleNames = "low, bits, mod, hash, hash_text, offset_step, compat, compat_text, ranges, epochs"

// rule returns the rule. Numbers out of range are told by the rule itself.
func (t ruleText) rule() (sharding.Rule, error) {
	form := ruleForm.FindStringSubmatch(string(t))
	if form == nil {
		return nil, fmt.Errorf("rule %q: write it as low(10)", string(t))
	}
	name, arguments := form[1], form[2]
	if name == "epochs" {
		return t.epochs(arguments)
	}
	numbers, err := parseNumbers(arguments, ",")
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", string(t), err)
	}
	return t.make(name, numbers)
}

func parseNumbers(text, separator string) ([]int64, error) {
	var all []int64
	for part := range strings.SplitSeq(strings.TrimSpace(text), separator) {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", strings.TrimSpace(part))
		}
		all = append(all, n)
	}
	return all, nil
}

func (t ruleText) make(name string, n []int64) (sharding.Rule, error) {
	one := map[string]func(int) sharding.Rule{
		"low": sharding.Low, "mod": sharding.Mod, "hash": sharding.Hash, "hash_text": sharding.HashText, "compat": sharding.Compat,
		"compat_text": sharding.CompatText,
	}
	two := map[string]func(a, b int) sharding.Rule{"bits": sharding.Bits, "offset_step": sharding.OffsetStep}
	switch f, g := one[name], two[name]; {
	case f != nil && len(n) == 1:
		return f(int(n[0])), nil
	case g != nil && len(n) == 2:
		return g(int(n[0]), int(n[1])), nil
	case name == "ranges":
		return sharding.Ranges(n...), nil
	case f != nil || g != nil:
		return nil, fmt.Errorf("rule %q: %s takes another number of arguments", string(t), name)
	}
	return nil, fmt.Errorf("rule %q is unknown; give one of %s", string(t), ruleNames)
}

// epochs reads "0 = 0, 1000000 = 0 1": the first id, and the slots of the servers
// in the order of their offsets.
func (t ruleText) epochs(arguments string) (sharding.Rule, error) {
	var all []sharding.Epoch
	for part := range strings.SplitSeq(arguments, ",") {
		from, list, _ := strings.Cut(part, "=")
		first, err := parseNumbers(from, ",")
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w; write it as epochs(0 = 0, 1000000 = 0 1)", string(t), err)
		}
		slots, err := parseNumbers(strings.Join(strings.Fields(list), " "), " ")
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w; write it as epochs(0 = 0, 1000000 = 0 1)", string(t), err)
		}
		epoch := sharding.Epoch{From: first[0]}
		for _, slot := range slots {
			epoch.Slots = append(epoch.Slots, sharding.Slot(slot))
		}
		all = append(all, epoch)
	}
	return sharding.Epochs(all[0], all[1:]...), nil
}

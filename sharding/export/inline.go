// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// inline is a number from 0 to count-1 that ShardingSphere computes from the sharding column with
// Groovy. The expression names the column once: ShardingSphere compares the expressions of binding
// tables without the column's first occurrence.
type inline struct {
	count int
	// of returns the expression of the number modulo n; n divides count.
	of func(n int) string
}

// inlineOf returns false for rules that Groovy's operators cannot compute.
func inlineOf(l layout) (inline, bool) {
	if l.rule.Kind == sharding.KindBits {
		return inline{len(l.targets), func(n int) string {
			return fmt.Sprintf("(%s as long) >> %d & %d", l.Key, l.rule.Shift, n-1)
		}}, true
	}
	shift, isModulo := l.shift()
	return inline{len(l.targets), func(n int) string {
		if n == 1 {
			return "0"
		}
		// Java's remainder is negative for negative keys.
		return fmt.Sprintf("(%s %% %d + %d) %% %[2]d", l.Key, n, n+shift%n)
	}}, isModulo
}

// choose returns the expression of the name with this number.
func (x inline) choose(names []string) string {
	names = shortest(names)
	number := x.of(len(names))
	if len(names) == 1 {
		return names[0]
	}
	if runs := blocks(names); len(runs) < len(names) {
		return pick(runs, fmt.Sprintf("(%s).intdiv(%d)", number, len(names)/len(runs)))
	}
	return pick(names, number)
}

// shortest returns the shortest prefix of which the names are repetitions.
func shortest(names []string) []string {
	for n := 1; n < len(names); n++ {
		if len(names)%n == 0 && slices.Equal(names[n:], names[:len(names)-n]) {
			return names[:n]
		}
	}
	return names
}

// blocks returns each name once if the names are in runs of equal length.
func blocks(names []string) []string {
	once := slices.Compact(slices.Clone(names))
	run := len(names) / len(once)
	for i, name := range names {
		if i/run >= len(once) || name != once[i/run] {
			return names
		}
	}
	return once
}

// pick returns an expression for the name with this number.
func pick(names []string, number string) string {
	prefix, width, counted := numbered(names)
	switch {
	case !counted:
		return "${['" + strings.Join(names, "', '") + "'][(" + number + ").intValue()]}"
	case width > 1:
		return fmt.Sprintf("%s${(%s).toString().padLeft(%d, '0')}", prefix, number, width)
	}
	return prefix + "${" + number + "}"
}

// numbered reports whether the names are a prefix and 0, 1, 2, … with at least width digits.
func numbered(names []string) (prefix string, width int, ok bool) {
	prefix = strings.TrimRight(names[0], "0")
	width = len(names[0]) - len(prefix)
	for i, name := range names {
		number := strconv.Itoa(i)
		if pad := width - len(number); pad > 0 {
			number = strings.Repeat("0", pad) + number
		}
		if width == 0 || name != prefix+number {
			return "", 0, false
		}
	}
	return prefix, width, true
}

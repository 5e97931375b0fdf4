// SPDX-License-Identifier: Apache-2.0

package shapes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// dice make random choices, and hold the state of one statement.
type dice struct {
	*rand.Rand

	args  []any
	names int
	taken []string // aliases that are also names of tables
}

func (m *dice) pick(list ...string) string { return list[m.IntN(len(list))] }

func (m *dice) chance(of int) bool { return m.IntN(of) == 0 }

func (m *dice) name(prefix string) string {
	m.names++
	if shadow := m.pick("orders", "items", "regions", "coupons"); prefix == "t" && m.chance(25) && !slices.Contains(m.taken, shadow) {
		m.taken = append(m.taken, shadow)
		return shadow
	}
	return prefix + strconv.Itoa(m.names)
}

// value returns a literal or a parameter.
func (m *dice) value(v any) string {
	if m.chance(2) {
		m.args = append(m.args, v)
		return "?"
	}
	if s, ok := v.(string); ok {
		return "'" + s + "'"
	}
	return fmt.Sprint(v)
}

// cut removes the arguments from an index on, for a part of the text that follows the next
// generated part.
func (m *dice) cut(at int) []any {
	cut := slices.Clone(m.args[at:])
	m.args = m.args[:at]
	return cut
}

// user returns a value to compare with a sharding key: usually a number, or a value that databases
// may or may not convert to one.
func (m *dice) user() string {
	n := strconv.Itoa(m.IntN(8))
	switch m.IntN(24) {
	case 0:
		return m.value(int64(-m.IntN(3)))
	case 1:
		return "'" + n + m.pick("", "", " ", ".0", "x", "e0") + "'"
	case 2:
		return n + m.pick(".0", ".5", "e0")
	case 3:
		return m.pick("NULL", "TRUE", "FALSE", "0x5", "'05'", "- -5", "-(-5)", "+5")
	case 4:
		return m.value(n)
	case 5:
		m.args = append(m.args, []any{5.0, 2.5, true, []byte(n), nil, uint8(3), "7 "}[m.IntN(7)])
		return "?"
	}
	return m.value(int64(m.IntN(8)))
}

// users is a list of users: two, or so many that each shard gets only its own.
func (m *dice) users() string {
	list := []string{m.user(), m.user()}
	if m.chance(3) {
		few := []int64{int64(m.IntN(8)), int64(m.IntN(8)), int64(m.IntN(8))}
		for range 28 + m.IntN(20) {
			list = append(list, m.value(few[m.IntN(len(few))]))
		}
	}
	return strings.Join(list, ", ")
}

func (m *dice) small() string { return m.value(int64(m.IntN(6))) }

func (m *dice) text() string { return m.value(m.pick("a", "b", "d", "", "ab", "c")) }

func (m *dice) textOr(other string) string {
	if m.chance(2) {
		return m.text()
	}
	return other
}

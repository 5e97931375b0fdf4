package gormplugin

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/internal/sqltext"
)

func TestAMemoryTellsOfATextWhatWasSaidOfThatText(t *testing.T) {
	m := newMemory[int](8)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 4 * len(m.places) { // more than there are places
				text := strconv.Itoa(n)
				if got := *m.put(text, n); got != n {
					t.Errorf("put %d, got %d", n, got)
				}
				if got := m.get(text); got != nil && *got != n {
					t.Errorf("%s is %d", text, *got)
				}
			}
		})
	}
	all.Wait()
	if m.put("123456789", 1); m.get("123456789") != nil {
		t.Error("a text that is too long is kept")
	}
}

func TestFragmentsAreParsedOnceAndAlike(t *testing.T) {
	f := newFragments(sqltext.MySQL)
	for text, simple := range map[string]bool{
		"id = ?": true,
		"orders.id >= ? AND n <> 5\nand x LIKE ?": true,
		"id IN ? AND n IN (?, 2)":                 true,
		"":                                        false,
		"(id = ?)":                                false,
		"id = ? OR n = ?":                         false,
		"id = ? XOR 1":                            false,
		"id = ? || 1":                             false,
		"NOT id = ?":                              false,
		"id = ? AND NOT n = ?":                    false,
		"id = n":                                  false,
		"id = 'x'":                                false,
		"`id` = ?":                                false,
		"id = ? -- ":                              false,
		"id = /**/ ?":                             false,
		"id BETWEEN ? AND ?":                      false,
		"id = ? COLLATE x":                        false,
		"id = ?)":                                 false,
		"id = ? AND":                              false,
		`id = ? AND n = "\"`:                      false,
		"a.b.c = ?":                               false,
		"id = ? AND " + strings.Repeat("n = ? AND ", 60) + "n = ?": true,
	} {
		first, again := f.of(text), f.of(text)
		if first.simple != simple {
			t.Errorf("%q is simple: %t", text, first.simple)
		}
		if kept := len(text) <= maxFragment; kept != (first == again) {
			t.Errorf("%q is kept: %t", text, !kept)
		}
	}
}

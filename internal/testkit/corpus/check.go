// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/internal/testkit/tablewalk"
)

// check returns the errors of a statement, given the tables of its file.
func (f *File) check(s Statement) error {
	if refused := s.With == Refused || s.Without == Refused; refused != (s.Because != "") {
		return fmt.Errorf("statement %q: because belongs to what is refused, and only there", s.Name)
	}
	if s.With == Refused && s.Without != Refused {
		return fmt.Errorf("statement %q is refused only where ids carry the slot, which says more", s.Name)
	}
	for d, flavor := range map[Dialect]sqltext.Flavor{MySQL: sqltext.MySQL, SQLite: sqltext.SQLite} {
		if n := parametersOf(s.Text, flavor); s.For(d) && n != len(s.Args) {
			return fmt.Errorf("statement %q has %d parameters for %s and %d args", s.Name, n, d, len(s.Args))
		}
	}
	return f.checkPlacement(s)
}

func parametersOf(text string, flavor sqltext.Flavor) int {
	n := 0
	scanner := sqltext.NewScanner(text, flavor)
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		if t.Kind == sqltext.Param {
			n++
		}
	}
	return n
}

// checkPlacement compares the outcome with the tables that the statement names.
func (f *File) checkPlacement(s Statement) error {
	named := map[Placement]bool{}
	walk := tablewalk.New(s.Text, sqltext.SQLite)
	for t, table, ok := walk.Next(); ok; t, table, ok = walk.Next() {
		if known, is := f.table(sqltext.Ident(s.Text, t)); table && is {
			named[known.Placement] = true
		}
	}
	want := Everywhere
	switch {
	case named[Sharded]:
		if s.With == AtHome || s.With == Everywhere || s.Without == AtHome || s.Without == Everywhere {
			return fmt.Errorf("statement %q names a sharded table and is %s with, %s without", s.Name, s.With, s.Without)
		}
		return nil
	case named[Home]:
		want = AtHome
	case !named[Broadcast]:
		return fmt.Errorf("statement %q names none of the tables", s.Name)
	}
	if s.With != want || s.Without != want {
		return fmt.Errorf("statement %q names no sharded table and is %s with, %s without, want %s", s.Name, s.With, s.Without, want)
	}
	return nil
}

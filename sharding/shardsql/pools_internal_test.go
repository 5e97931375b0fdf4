// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"
)

// A server gets the time zones or the collations that it lacks while the program runs.
func TestADifferenceOfDatabasesIsAskedForAgainAndAnAgreementIsNot(t *testing.T) {
	d, pools := &database{}, []*sql.DB{{}, {}, {}}
	knows, asked := []string{"new", "old", "new"}, 0
	ask := func(i int) (string, error) {
		asked++
		if knows[i] == "down" {
			return "", driver.ErrBadConn
		}
		return knows[i], nil
	}
	check := func(wantOther, wantAsked int) {
		t.Helper()
		asked = 0
		other, answers, err := d.differing(pools, "Europe/Kyiv", ask)
		if err != nil || other != wantOther || asked != wantAsked || other == 0 && !slices.Equal(answers, knows) {
			t.Errorf("database %d differs, %q, %v; %d were asked", other, answers, err, asked)
		}
	}
	check(1, 2)
	knows[1] = "new"
	check(0, 3)
	check(0, 0)
	d, knows = &database{}, []string{"", "", ""}
	check(0, 3)
	knows[2] = "new"
	check(2, 3)
	knows[1] = "down"
	if _, _, err := d.differing(pools, "Europe/Kyiv", ask); !errors.Is(err, driver.ErrBadConn) {
		t.Error(err)
	}
}

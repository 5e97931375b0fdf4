// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// refuses fails unless Run refuses to begin with a finding of this code and text,
// and has changed no table.
func (o *odd) refuses(t *testing.T, code migrate.Code, says string) {
	t.Helper()
	var blocked *migrate.BlockedError
	err := o.Run(t.Context())
	if !errors.As(err, &blocked) || !errors.Is(err, migrate.ErrNotReady) ||
		!slices.ContainsFunc(blocked.Findings, func(f migrate.Finding) bool { return f.Code == code && strings.Contains(f.Message, says) }) {
		t.Errorf("a run ended with %v", err)
	}
	if got := database.Texts(t, o.source, "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()"); len(got) > 0 {
		t.Errorf("a run that was refused made %q", got)
	}
}

// If a precondition of a run is missing, inspect blocks, and the run does not begin.
func TestAJobThatInspectBlocksIsNotBegun(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, grants []string) {
		for i, grant := range grants {
			if strings.Contains(grant, "odd") || strings.Contains(grant, "shop_east") {
				t.Fatalf("grant %d is not of this test: %s", i, grant)
			}
		}
		without := func(right string) *moving {
			t.Helper()
			admin := s.Open(t, "shop")
			database.Exec(t, admin, "DROP USER IF EXISTS mover")
			database.Exec(t, admin, "DROP TABLE IF EXISTS orders")
			var some []string
			for _, grant := range grants {
				grant = strings.NewReplacer(", "+right+",", ",", ", "+right+" ON", " ON").Replace(grant)
				if !strings.HasPrefix(grant, "GRANT "+right+" ON") {
					some = append(some, grant)
				}
			}
			return newMoving(t, s, some...)
		}
		rights := []string{"PROCESS", "TRIGGER", "LOCK TABLES", "DROP"}
		if !isMariaDB(t, s.Open(t, "shop")) {
			rights = append(rights, "XA_RECOVER_ADMIN")
		}
		for _, right := range rights {
			m := without(right)
			found, err := m.job.Inspect(t.Context())
			if err != nil || !slices.ContainsFunc(found, func(f migrate.Finding) bool {
				return f.Severity == migrate.Block && f.Code == migrate.Privileges && strings.Contains(f.Message+f.Fix, right)
			}) {
				t.Errorf("%s: %+v, %v", right, found, err)
			}
			if err := m.job.Run(t.Context()); err == nil {
				t.Errorf("a run went through without %s", right)
			}
		}
	})
}

func TestAServerThatTakesNoWritesIsFound(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, grants []string) {
		m := newMoving(t, s, grants...)
		database.Exec(t, m.admin, "SET GLOBAL read_only = ON")
		found, err := m.job.Inspect(t.Context())
		if err != nil || !slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return f.Severity == migrate.Block && f.Code == migrate.ReadOnly && f.Database == "source"
		}) {
			t.Errorf("%+v, %v", found, err)
		}
		database.Exec(t, m.admin, "SET GLOBAL read_only = OFF")
		if err := m.job.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestADefaultOfASequenceIsFound(t *testing.T) {
	o := newOdd(t, server.RunMariaDB(t), "odd", "odd", sharding.Low(1), "CREATE SEQUENCE numbers",
		"CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, n INT DEFAULT NEXTVAL(numbers))", "INSERT INTO odd (id, u) VALUES (1, 1)")
	o.finds(t, "block sequence the default of n of odd uses a sequence")
	o.refuses(t, migrate.ForeignDefault, "default of n")
	database.Exec(t, o.source, "ALTER TABLE odd ALTER n DROP DEFAULT")
	o.run(t)
}

// For the column, 'bob' and 'bob ' are one value. For the rule they are two, of which
// the other may have no place.
func TestAKeyThatHidesBehindAnEqualOneIsFound(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "odd", "odd", sharding.List(map[string]sharding.Slot{"ann": 0, "bob": 1}),
			"CREATE TABLE odd (id INT PRIMARY KEY, u VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL)", "INSERT INTO odd VALUES (1, 'ann'), (2, 'bob'), (3, 'bob ')")
		o.finds(t, "block unplaced of 3 values of u that were tried, 1 have no place")
		o.refuses(t, migrate.Unplaced, "bob ")
		database.Exec(t, o.source, "UPDATE odd SET u = 'bob' WHERE id = 3")
		o.run(t)
	})
}

func TestAValueThatACopyWouldChangeKeepsAJobFromBeginning(t *testing.T) {
	o := newOdd(t, server.RunMySQL(t), "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, j JSON)",
		"INSERT INTO odd VALUES (1, 1, JSON_OBJECT('at', NOW()))")
	o.refuses(t, migrate.LostValue, "j has a DECIMAL, a date")
	database.Exec(t, o.source, "UPDATE odd SET j = CAST(CAST(j AS CHAR) AS JSON)")
	o.run(t)
}

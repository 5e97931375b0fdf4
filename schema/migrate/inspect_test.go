package migrate_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

func inspect(t *testing.T, job *migrate.Job) []migrate.Finding {
	t.Helper()
	found, err := job.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// codes are those of the findings that are more than good to know.
func codes(found []migrate.Finding) (all []migrate.Code) {
	for _, f := range found {
		if f.Severity != migrate.Info {
			all = append(all, f.Code)
		}
	}
	return all
}

func TestInspectOfATableThatCanBeMigratedBlocksNothing(t *testing.T) {
	found := inspect(t, newShop(t, 20).job(t, "id"))
	if migrate.Blocked(found) || !slices.Equal(codes(found), []migrate.Code{migrate.UniqueAcross}) {
		t.Errorf("%+v", found)
	}
}

func TestInspectNamesWhatStandsInTheWay(t *testing.T) {
	for name, test := range map[string]struct {
		change []string
		code   migrate.Code
		says   string
	}{
		"a trigger":       {[]string{"CREATE TRIGGER audit AFTER INSERT ON orders BEGIN SELECT 1; END"}, migrate.ForeignTriggers, "audit"},
		"a child":         {[]string{"CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders (id))"}, migrate.OutsideJob, "items"},
		"a missing value": {[]string{"DROP TABLE orders", "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER)", "INSERT INTO orders VALUES (7, NULL)"}, migrate.NoShardingKey, "row 7"},
		"a missing key":   {[]string{"DROP TABLE orders", "CREATE TABLE orders (id INTEGER PRIMARY KEY)"}, migrate.NoShardingKey, "user_id"},
		"a composite key": {[]string{"DROP TABLE orders", "CREATE TABLE orders (a INTEGER, b INTEGER, user_id INTEGER, PRIMARY KEY (a, b))"}, migrate.Unsupported, "(a, b)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, 5)
			for _, statement := range test.change {
				exec(t, s.source, statement)
			}
			found := inspect(t, s.job(t, "user_id"))
			if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
				return f.Severity == migrate.Block && f.Code == test.code && strings.Contains(f.Message, test.says)
			}) {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestInspectSeesWhatIsOnTheShards(t *testing.T) {
	s := newShop(t, 5)
	exec(t, s.shards["b"], "CREATE TABLE orders_01 (id INTEGER PRIMARY KEY)")
	exec(t, s.shards["b"], "INSERT INTO orders_01 VALUES (1)")
	s.shards["a"] = sql.OpenDB(nobody{})
	found := inspect(t, s.job(t, "id"))
	if found[0].Code != migrate.Unreachable || found[0].Database != "a" {
		t.Errorf("%+v", found)
	}
	if !slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Code == migrate.NotEmpty && f.Table == "orders_01" }) {
		t.Errorf("%+v", found)
	}
}

// nobody is a database that does not answer.
type nobody struct{}

func (nobody) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("connection refused")
}
func (n nobody) Driver() driver.Driver          { return n }
func (nobody) Open(string) (driver.Conn, error) { return nil, errors.New("connection refused") }

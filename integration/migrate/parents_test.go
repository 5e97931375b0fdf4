package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// kin are parents with children under every kind of foreign key that servers know,
// in one job, and their owners, who stay.
type kin struct {
	source *sql.DB
	shards sharding.DBs
	cfg    migrate.Config
}

const kinSQL = `
CREATE TABLE owners (id INT PRIMARY KEY);
CREATE TABLE parents (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, owner INT, up INT, UNIQUE KEY (a, b),
	FOREIGN KEY (owner) REFERENCES owners (id), FOREIGN KEY (up) REFERENCES parents (id));
CREATE TABLE cascading (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE nulling (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE restricting (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE RESTRICT ON UPDATE RESTRICT);
CREATE TABLE passive (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE NO ACTION ON UPDATE NO ACTION);
CREATE TABLE pairs (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, FOREIGN KEY (a, b) REFERENCES parents (a, b) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE grandchildren (id INT AUTO_INCREMENT PRIMARY KEY, child INT, FOREIGN KEY (child) REFERENCES cascading (id) ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO owners VALUES (1), (2);
CREATE TABLE numbers (n INT PRIMARY KEY);
INSERT INTO numbers WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 40) SELECT n FROM r;
INSERT INTO parents SELECT n, n % 5, n, 1 + n % 2, IF(n > 36, 36, NULL) FROM numbers ORDER BY n;
INSERT INTO cascading SELECT n, n FROM numbers UNION SELECT 100 + n, n FROM numbers;
INSERT INTO grandchildren SELECT id, id FROM cascading;
INSERT INTO nulling SELECT n, n FROM numbers;
INSERT INTO pairs SELECT n, n % 5, n FROM numbers;
INSERT INTO restricting SELECT n, n FROM numbers WHERE n <= 4;
INSERT INTO passive SELECT n, n FROM numbers WHERE n <= 4`

// kinTables are the tables of the job with their columns, parents first.
var kinTables = []struct{ name, row string }{
	{"parents", "CONCAT_WS('|', id, a, b, COALESCE(owner, 'NULL'), COALESCE(up, 'NULL'))"},
	{"cascading", "CONCAT_WS('|', id, COALESCE(parent, 'NULL'))"},
	{"nulling", "CONCAT_WS('|', id, COALESCE(parent, 'NULL'))"},
	{"restricting", "CONCAT_WS('|', id, COALESCE(parent, 'NULL'))"},
	{"passive", "CONCAT_WS('|', id, COALESCE(parent, 'NULL'))"},
	{"pairs", "CONCAT_WS('|', id, COALESCE(a, 'NULL'), COALESCE(b, 'NULL'))"},
	{"grandchildren", "CONCAT_WS('|', id, COALESCE(child, 'NULL'))"},
}

func newKin(t *testing.T, s database.DSNOpener, name string, parentsFirst bool) *kin {
	t.Helper()
	k := &kin{source: s.Open(t, name), shards: sharding.DBs{"a": s.Open(t, name+"_a"), "b": s.Open(t, name+"_b")}}
	for statement := range strings.SplitSeq(kinSQL, ";") {
		database.Exec(t, k.source, statement)
	}
	k.cfg = migrate.Config{Name: "kin", Source: k.source, Shards: k.shards, ChunkRows: 7}
	for _, table := range kinTables {
		m, err := sharding.Spread([]string{"a", "b"}, 2, table.name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		k.cfg.Tables = append(k.cfg.Tables, migrate.Table{Table: sharding.Table{Name: table.name, Key: "id", Rule: sharding.Low(1), Map: m}})
	}
	if !parentsFirst {
		slices.Reverse(k.cfg.Tables)
	}
	return k
}

// job is as a runner of its own would have it.
func (k *kin) job(t *testing.T, change ...func(*migrate.Config)) *migrate.Job {
	t.Helper()
	cfg := k.cfg
	for _, c := range change {
		c(&cfg)
	}
	j, err := migrate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// onSource changes five parents of the source, whose foreign keys do the rest.
func (k *kin) onSource(t *testing.T, from int) {
	t.Helper()
	for i, statement := range []string{
		"DELETE FROM parents WHERE id = %d", "UPDATE parents SET id = id + 4001 WHERE id = %d", "UPDATE parents SET a = a + 10 WHERE id = %d",
		"UPDATE cascading SET id = id + 3001 WHERE parent = %d ORDER BY id LIMIT 1", "DELETE FROM cascading WHERE parent = %d ORDER BY id LIMIT 1",
	} {
		database.Exec(t, k.source, fmt.Sprintf(statement, from+i))
	}
}

// onShards changes eight parents of the shards and what bears their numbers; no
// foreign key does anything there.
func (k *kin) onShards(t *testing.T, from int) {
	t.Helper()
	for _, table := range k.cfg.Tables {
		for i, at := range table.Map.Targets() {
			statements := []string{
				fmt.Sprintf("DELETE FROM %s WHERE id IN (%d, %d)", at.Table, from, from+1),
				fmt.Sprintf("UPDATE %s SET id = id + 8000 WHERE id IN (%d, %d)", at.Table, from+2, from+3),
			}
			if table.Name == "parents" {
				statements = append(statements, fmt.Sprintf("UPDATE %s SET a = a + 20, owner = 2 WHERE id BETWEEN %d AND %d", at.Table, from+4, from+7),
					fmt.Sprintf("INSERT INTO %s VALUES (%d, 77, %[2]d, 1, NULL)", at.Table, 10_000+2*from+i))
			}
			for _, statement := range statements {
				database.Exec(t, k.shards[at.DB], statement)
			}
		}
	}
}

// compare fails unless each table has the rows of its shards.
func (k *kin) compare(t *testing.T, when, suffix, sealed string) {
	t.Helper()
	for _, table := range kinTables {
		conf := k.cfg.Tables[slices.IndexFunc(k.cfg.Tables, func(t migrate.Table) bool { return t.Name == table.name })]
		want := database.Texts(t, k.source, "SELECT "+table.row+" FROM "+table.name+suffix)
		var got []string
		for _, at := range conf.Map.Targets() {
			got = append(got, database.Texts(t, k.shards[at.DB], "SELECT "+table.row+" FROM "+at.Table+sealed)...)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s: %s: the source has %d rows, the shards %d", when, table.name, len(want), len(got))
			reportMissing(t, "only on the source", want, got)
			reportMissing(t, "only on a shard", got, want)
		}
	}
}

func (k *kin) mustRun(t *testing.T, when string) {
	t.Helper()
	if err := k.job(t).Run(t.Context()); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	if v, err := k.job(t).Verify(t.Context()); err != nil || !v.Clean() {
		t.Errorf("%s: %+v, %v", when, v, err)
	}
}

func (k *kin) mustSwitch(t *testing.T) {
	t.Helper()
	if _, err := k.job(t).Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
}

func TestChangesOfParentsAreCarriedBackUnderEveryForeignKey(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		for order, parentsFirst := range map[string]bool{"parents_first": true, "children_first": false} {
			k := newKin(t, s, "kin_"+order, parentsFirst)
			k.mustRun(t, order)
			k.onSource(t, 9)
			k.mustRun(t, order+", after changes of the source")
			k.compare(t, order+", before the switch", "", "")
			k.mustSwitch(t)
			k.onShards(t, 1)
			k.mustRun(t, order+", after changes of the shards")
			k.compare(t, order+", after the switch", "_old", "")
			if _, err := k.job(t).Rollback(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			k.onSource(t, 17)
			k.mustRun(t, order+", after the way back")
			k.compare(t, order+", after the way back", "", "_sealed")
			k.mustSwitch(t)
			k.onShards(t, 33)
			k.mustRun(t, order+", after changes of the shards in the second switch")
			k.compare(t, order+", after the second switch", "_old", "")
		}
	})
}

func TestChangesOfParentsAreCarriedBackAfterASwitchThatWasCutOff(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		for _, step := range []string{migrate.StepDrained, migrate.StepRenamed, migrate.StepFlipped} {
			k := newKin(t, s, "kin_"+step, true)
			k.mustRun(t, step)
			ctx, cancel := context.WithCancel(t.Context())
			j := k.job(t, func(c *migrate.Config) {
				c.Observe = func(at migrate.Step) {
					if at.Name == step {
						cancel()
					}
				}
			})
			if _, err := j.Cutover(ctx, longPause); !errors.Is(err, context.Canceled) {
				t.Errorf("after %s: %v", step, err)
			}
			k.mustSwitch(t)
			k.onShards(t, 33)
			k.mustRun(t, "after "+step)
			k.compare(t, "after "+step, "_old", "")
		}
	})
}

func TestParentsThatStayCanBeDeletedOnceTheJobIsFinalized(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		k := newKin(t, s, "kin", true)
		found, err := k.job(t).Inspect(t.Context())
		announced := func(f migrate.Finding) bool {
			return f.Code == migrate.OutsideJob && f.Table == "parents" && strings.Contains(f.Message, "(owner) refers to the table owners") && strings.Contains(f.Message, "until finalize drops the key")
		}
		if err != nil || !slices.ContainsFunc(found, announced) {
			t.Errorf("%+v, %v", found, err)
		}
		k.mustRun(t, "before the switch")
		k.mustSwitch(t)
		deleteOwner := func(id int) error {
			_, err := k.source.ExecContext(t.Context(), fmt.Sprintf("DELETE FROM owners WHERE id = %d", id))
			return err
		}
		if err := deleteOwner(1); err == nil || !strings.Contains(err.Error(), "1451") {
			t.Errorf("a parent of retired rows: %v", err)
		}
		for _, shard := range []string{"a", "b"} { // parents_0 and parents_1
			database.Exec(t, k.shards[shard], map[string]string{"a": "DELETE FROM parents_0 WHERE owner = 1", "b": "DELETE FROM parents_1 WHERE owner = 1"}[shard])
		}
		k.mustRun(t, "after the switch")
		if err := deleteOwner(1); err != nil {
			t.Error(err)
		}
		database.Exec(t, k.source, "CREATE TABLE late (id INT PRIMARY KEY, pair INT, FOREIGN KEY (pair) REFERENCES pairs_old (id))")
		if err := k.job(t).Finalize(t.Context()); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "late refers to pairs_old by (pair)") {
			t.Errorf("with a key to the archive: %v", err)
		}
		database.Exec(t, k.source, "DROP TABLE late")
		for range 2 { // again does no harm
			if err := k.job(t).Finalize(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := deleteOwner(2); err != nil {
			t.Errorf("after finalize: %v", err)
		}
		if rows := database.Texts(t, k.source, "SELECT COUNT(*) FROM parents_old WHERE owner = 2"); rows[0] != "20" {
			t.Errorf("the archive has %s rows", rows[0])
		}
		if left := database.Texts(t, k.source, "SELECT CONCAT(TABLE_NAME, ' ', REFERENCED_TABLE_NAME) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME = 'owners'"); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

func TestASwitchThatEndedBetweenTwoRenamesIsFinished(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		for order, parentsFirst := range map[string]bool{"parents_first": true, "children_first": false} {
			for _, renamed := range []int{1, 6} {
				when := fmt.Sprint(order, " ", renamed)
				k := newKin(t, s, fmt.Sprint("kin_", order, renamed), parentsFirst)
				k.mustRun(t, when)
				for _, table := range k.cfg.Tables[:renamed] {
					database.Exec(t, k.source, "RENAME TABLE "+table.Name+" TO "+table.Name+"_old")
				}
				k.mustSwitch(t)
				k.onShards(t, 1)
				k.mustRun(t, when)
				k.compare(t, when, "_old", "")
			}
		}
	})
}

// An attempt that fails under the lock must not go on with the renames of one before:
// what has not been carried over would be lost.
func TestASwitchThatEndedBetweenTwoRenamesLosesNoChangeOfTheOthers(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		for order, parentsFirst := range map[string]bool{"parents_first": true, "children_first": false} {
			k := newKin(t, s, "kin_open_"+order, parentsFirst)
			k.mustRun(t, order)
			closed, open := k.cfg.Tables[0].Name, k.cfg.Tables[3].Name
			database.Exec(t, k.source, "RENAME TABLE "+closed+" TO "+closed+"_old")
			database.Exec(t, k.source, "DELETE FROM "+open+" WHERE id IN (2, 3)")

			refused := errors.New("not now")
			notReady := func(cfg *migrate.Config) {
				cfg.Ready = func(context.Context, map[string]int64) error { return refused }
			}
			if _, err := k.job(t, notReady).Cutover(t.Context(), longPause); !errors.Is(err, refused) {
				t.Errorf("%s: %v", order, err)
			}
			database.Exec(t, k.source, "DELETE FROM "+open+" WHERE id = 4") // it is open yet
			k.mustSwitch(t)
			k.compare(t, order, "_old", "")
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

func TestVerifyDistinguishesTextsInEveryCharacterSet(t *testing.T) {
	t.Run("MariaDB", func(t *testing.T) {
		m := server.RunMariaDB(t)
		verifyTexts(t, m.Open(t, "shop"), m.Open(t, "a"))
	})
	t.Run("MySQL", func(t *testing.T) {
		m := server.RunMySQL(t)
		verifyTexts(t, m.Open(t, "shop"), m.Open(t, "a"))
	})
}

// verifyTexts compares a latin1 table with one that was made in utf8mb4, and one
// in utf8mb4 with one in latin1.
func verifyTexts(t *testing.T, source, shard *sql.DB) {
	t.Helper()
	const columns = " (id BIGINT PRIMARY KEY, a VARCHAR(50) NULL, b VARCHAR(50) NULL, c VARCHAR(50) CHARACTER SET ascii NULL) CHARACTER SET "
	for _, sets := range [][2]string{{"latin1", "utf8mb4"}, {"utf8mb4", "latin1"}, {"utf8mb3", "utf8mb4"}} {
		name := "from_" + sets[0] + "_to_" + sets[1]
		database.Exec(t, source, "CREATE TABLE "+name+columns+sets[0])
		database.Exec(t, shard, "CREATE TABLE "+name+"_0"+columns+sets[1])
		database.Exec(t, source, "INSERT INTO "+name+" VALUES (1, 'ünï', 'é', 'x'), (2, 'ab', '', NULL), (3, NULL, '1,2', '3'), (4, 'a', NULL, ''), (5, 'ß', 'ü', 'z')")
		spread, err := sharding.Spread([]string{"a"}, 1, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		job, err := migrate.New(migrate.Config{
			Name: name, Source: source, Shards: sharding.DBs{"a": shard},
			Tables: []migrate.Table{{Table: sharding.Table{Name: name, Key: "id", Rule: sharding.Mod(1), Map: spread}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := job.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v, err := job.Verify(t.Context()); err != nil || !v.Clean() || v.Rows != 5 || v.Suspects != 0 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		for _, change := range []string{
			"a = 'uni' WHERE id = 1", "a = 'ab ' WHERE id = 2", "b = '1', c = '2,3' WHERE id = 3", "b = '', c = NULL WHERE id = 4", "a = 'ü', b = 'ß' WHERE id = 5",
		} {
			database.Exec(t, shard, "UPDATE "+name+"_0 SET "+change)
		}
		v, err := job.Verify(t.Context())
		var differ []int64
		for _, d := range v.Divergences {
			differ = append(differ, d.ID)
		}
		if err != nil || !slices.Equal(differ, []int64{1, 2, 3, 4, 5}) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if err := job.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// typedJSON are values of MySQL's JSON whose text is that of a value of another type.
var typedJSON = map[string]string{ // with what the text alone makes of them
	"JSON_OBJECT('a', DATE'2024-01-02')":                                `{"a": "2024-01-02"}`,
	"JSON_OBJECT('a', JSON_ARRAY(TIME'03:04:05'))":                      `{"a": ["03:04:05.000000"]}`,
	"JSON_ARRAY(1, JSON_OBJECT('b', TIMESTAMP'2024-01-02 03:04:05.6'))": `[1, {"b": "2024-01-02 03:04:05.600000"}]`,
	"JSON_ARRAY(JSON_ARRAY(x'00ff'))":                                   `[["base64:type15:AP8="]]`,
	"CAST(x'00ff' AS JSON)":                                             `"base64:type15:AP8="`,
	"CAST(DATE'2024-01-02' AS JSON)":                                    `"2024-01-02"`,
	"JSON_ARRAY(1.25)":                                                  `[1.25]`,
	"JSON_OBJECT('a', CAST(5 AS DECIMAL(9)))":                           `{"a": 5}`,
}

func TestVerifyDistinguishesValuesWithTheSameText(t *testing.T) {
	m := server.RunMySQL(t)
	const zero = "JSON_OBJECT('n', -0e0)"
	o := newOdd(t, m, "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id INT AUTO_INCREMENT PRIMARY KEY, u INT NOT NULL DEFAULT 0, d DOUBLE, f FLOAT, j JSON)",
		"INSERT INTO odd (d) VALUES (-0e0), (-1.2345678901234567e-150)", "INSERT INTO odd (f) VALUES (-0e0)", "INSERT INTO odd (j) VALUES ("+zero+")")
	shard, changes := o.shards["a"], []string{"d = 0", "d = -1.2345678901234565e-150", "f = 0", "j = '{\"n\": 0.0}'"}
	for typed, text := range typedJSON {
		if _, err := o.source.ExecContext(t.Context(), "INSERT INTO odd (j) VALUES (?)", text); err != nil {
			t.Fatal(err)
		}
		changes = append(changes, "j = "+typed)
	}
	o.run(t)
	if v, err := o.Verify(t.Context()); err != nil || !v.Clean() || v.Rows != int64(len(changes)) {
		t.Errorf("%+v, %v", v, err)
	}
	for i, change := range changes {
		database.Exec(t, shard, fmt.Sprintf("UPDATE odd_0 SET %s WHERE id = %d", change, i+1))
	}
	v, err := o.Verify(t.Context())
	if err != nil || len(v.Divergences) != len(changes) {
		t.Errorf("of %d differences, verify tells %+v, %v", len(changes), v, err)
	}
	o.run(t) // writes them again
	if v, err := o.Verify(t.Context()); err != nil || !v.Clean() {
		t.Errorf("%+v, %v", v, err)
	}
}

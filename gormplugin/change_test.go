package gormplugin

import (
	"slices"
	"testing"

	"github.com/shardid/shardid/internal/sqltext"
)

// changed are texts with the tables that they change.
var changed = []struct {
	text   string
	tables []string
}{
	{"SELECT * FROM a FOR UPDATE", nil},
	{"(SELECT 1) UNION (SELECT id FROM a)", nil},
	{"EXPLAIN UPDATE a SET x = 1", nil},
	{"INSERT IGNORE INTO `s`.`a` (x, y) VALUES (?, (SELECT 1 FROM b)), (2, f(3, 4))", []string{"a"}},
	{"REPLACE a SET x = 1, y = (2)", []string{"a"}},
	{"INSERT INTO a SELECT * FROM b", []string{"a"}},
	{"UPDATE a SET x = (SELECT y FROM b), z = 1 WHERE id IN (SELECT id FROM c)", []string{"a", "a"}},
	{"UPDATE a AS p JOIN b q ON p.id = q.id SET q.x = p.x", []string{"b"}},
	{"UPDATE a, b SET x = 1", []string{"a", "b"}},
	{"DELETE FROM a WHERE id IN (SELECT id FROM b)", []string{"a"}},
	{"DELETE q FROM a p JOIN b AS q ON p.id = q.id WHERE p.x = 1", []string{"b"}},
	{"DELETE p.*, q FROM a p, b q", []string{"a", "b"}},
	{"DELETE FROM q USING a p INNER JOIN b q USING (id)", []string{"b"}},
	{"WITH x AS (SELECT 1) SELECT replace(y, 'a', 'b') FROM x", nil},
	{"TRUNCATE TABLE a", []string{"TRUNCATE", "TABLE", "a"}},
	{"CREATE TABLE a (x INT REFERENCES b (id))", []string{"CREATE", "TABLE", "a", "x", "INT", "REFERENCES", "id"}},
}

func TestATextTellsWhichTablesItChanges(t *testing.T) {
	for _, c := range changed {
		all := changesOf(c.text, sqltext.MySQL)
		if len(all) != 1 || !slices.Equal(all[0].tables, c.tables) {
			t.Errorf("%s: %+v", c.text, all)
		}
	}
	all := changesOf("SELECT 1; DELETE FROM a;", sqltext.SQLite)
	if len(all) != 2 || !slices.Equal(all[1].tables, []string{"a"}) {
		t.Errorf("%+v", all)
	}
}

func TestATextThatBreaksOffIsRead(t *testing.T) {
	texts := []string{"INSERT OR", "INSERT INTO a AS", "UPDATE OR", "DELETE OR", "INSERT INTO a (x) VALUES (1) ON DUPLICATE KEY UPDATE"}
	for _, c := range changed {
		texts = append(texts, c.text)
	}
	for _, text := range texts {
		for end := range len(text) + 1 {
			for _, c := range changesOf(text[:end], sqltext.MySQL) {
				if c.verb == "" && text[:end] != "(" {
					t.Errorf("%q has no verb", text[:end])
				}
			}
		}
	}
}

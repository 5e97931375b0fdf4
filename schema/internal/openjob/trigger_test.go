// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/sharding"
)

// films are a job of tables with triggers.
func films(t *testing.T) Tables {
	t.Helper()
	var all Tables
	for i, of := range []struct {
		name, key string
		rule      sharding.Rule
	}{{"film", "film_id", sharding.Low(2)}, {"film_text", "film_id", sharding.Low(2)}, {"odd name", "id", sharding.Low(2)}, {"store", "store_id", sharding.Mod(4)}} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, strings.ReplaceAll(of.name, " ", "_")+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &Table{Number: i, Table: backend.Table{Name: of.name, Key: of.key}, Conf: TableConfig{Table: sharding.Table{Name: of.name, Key: of.key, Rule: of.rule, Map: m}}})
	}
	return all
}

const guarded = "shardid: BEGIN IF @shardid_pinned <=> CONNECTION_ID() THEN LEAVE shardid; END IF; "

func TestATriggerThatNamesTablesOfTheJobIsCarriedToTheirShards(t *testing.T) {
	all := films(t)
	for body, want := range map[string]string{
		"SET NEW.at = NOW(); END": "SET NEW.at = NOW(); END",
		"INSERT INTO film_text (film_id, title) VALUES (NEW.film_id, 'film_text, film'); END":                            "INSERT INTO `film_text_2` (film_id, title) VALUES (NEW.film_id, 'film_text, film'); END",
		"insert ignore into `FILM_TEXT` (title, `film_id`) SELECT title, film_id FROM film WHERE film.film_id = 1; END":  "insert ignore into `film_text_2` (title, `film_id`) SELECT title, film_id FROM `film_2` WHERE `film_2`.film_id = 1; END",
		"UPDATE film_text SET title = OLD.title WHERE film_text.film_id = OLD.film_id; END":                              "UPDATE `film_text_2` SET title = OLD.title WHERE `film_text_2`.film_id = OLD.film_id; END",
		"DELETE FROM film_text WHERE film_id IN (SELECT x.film_id FROM film x JOIN film_text y USING (film_id)); END":    "DELETE FROM `film_text_2` WHERE film_id IN (SELECT x.film_id FROM `film_2` x JOIN `film_text_2` y USING (film_id)); END",
		"DELETE FROM `odd name` WHERE id = OLD.film_id; -- film\nEND":                                                    "DELETE FROM `odd_name_2` WHERE id = OLD.film_id; -- film\nEND",
		"IF OLD.title <> NEW.title THEN UPDATE film_text SET title = NEW.title WHERE film_id = NEW.film_id; END IF; END": "IF OLD.title <> NEW.title THEN UPDATE `film_text_2` SET title = NEW.title WHERE film_id = NEW.film_id; END IF; END",
	} {
		carried, why, _ := all.Carried(all[0], backend.OwnTrigger{Name: "keep", When: "AFTER INSERT", Body: guarded + body}, 2)
		if made := "CREATE TRIGGER `keep_2` AFTER INSERT ON `film_2` FOR EACH ROW " + guarded + want; why != "" || carried.Create != made {
			t.Errorf("%s\n%s%s\nwant %s", body, carried.Create, why, made)
		}
	}
}

func TestATriggerThatAShardCouldNotRunAsTheSourceDoesIsRefused(t *testing.T) {
	all := films(t)
	for body, want := range map[string]string{
		"INSERT INTO language (id) VALUES (1); END":                              "it names language, which is no table of the job",
		"INSERT INTO film_text VALUES (NEW.film_id); END":                        "without a list of columns that has film_id",
		"INSERT INTO film_text (title) VALUES ('x'); END":                        "without a list of columns that has film_id",
		"UPDATE sakila.film_text SET title = 1; END":                             "by its database",
		"UPDATE film_text SET title = 1 WHERE sakila.film_text.film_id = 1; END": "by the database's name",
		"UPDATE store SET n = n + 1 WHERE store_id = NEW.store_id; END":          "is not sharded by the same rule",
		"DELETE a FROM film_text a, film b WHERE a.film_id = b.film_id; END":     "which is no table of the job",
		"UPDATE film_text, film SET title = 1; END":                              "it lists tables with commas",
		"SET @x = (SELECT MAX(film_id) FROM film AS film_text); END":             "it uses the name film_text",
		"CALL count_films(); END":                                                "it uses CALL",
		"SET NEW.n = next_number(); END":                                         "it calls the function next_number",
		"SET NEW.n = LAST_INSERT_ID(); END":                                      "it uses LAST_INSERT_ID",
		"/*!50000 DELETE FROM language */; END":                                  "in a comment that servers execute",
		"/*M!100000 DELETE FROM language */; END":                                "in a comment that servers execute",
	} {
		if carried, why, fix := all.Carried(all[0], backend.OwnTrigger{Name: "keep", When: "AFTER INSERT", Body: guarded + body, Routines: []string{"next_number"}}, 2); !strings.Contains(why, want) || fix == "" {
			t.Errorf("%s: %s%s, want %s", body, why, carried.Create, want)
		}
	}
}

func TestATriggerThatRunsForTheJobsRowsTooIsRefusedWithItsGuard(t *testing.T) {
	all := films(t)
	for _, body := range []string{
		"SET NEW.at = NOW()",
		"BEGIN SET NEW.at = NOW(); END",
		"shardid: BEGIN IF @shardid_pinned IS NOT NULL THEN LEAVE shardid; END IF; SET NEW.at = NOW(); END",
		"shardid: BEGIN IF @shardid_pinned <=> CONNECTION_ID() THEN SET @x = 1; END IF; SET NEW.at = NOW(); END",
	} {
		if _, why, fix := all.Carried(all[0], backend.OwnTrigger{Name: "keep", When: "BEFORE INSERT", Body: body}, 0); why == "" ||
			!strings.Contains(fix, "CREATE DEFINER = ``@`` TRIGGER `keep` BEFORE INSERT ON `film` FOR EACH ROW "+strings.TrimSpace(guarded)+" "+body) {
			t.Errorf("%s: %s; %s", body, why, fix)
		}
	}
	long := backend.OwnTrigger{Name: strings.Repeat("n", 63), When: "BEFORE INSERT", Body: guarded + "END"}
	if _, why, _ := all.Carried(all[0], long, 0); !strings.Contains(why, "64 letters") {
		t.Error(why)
	}
}

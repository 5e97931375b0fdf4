// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/internal/backend"
)

func TestATypeThatChangesValuesWithoutAnErrorIsKnown(t *testing.T) {
	for _, types := range [][2]string{
		{"decimal(10,2)", "decimal(10,0)"},
		{"decimal(10,2)", "int(11)"},
		{"decimal(10,2)", "double"},
		{"double", "float"},
		{"datetime(3)", "datetime"},
		{"datetime", "date"},
		{"datetime", "timestamp"},
		{"time(6)", "time(3)"},
		{"varchar(20)", "char(20)"},
		{"varchar(20)", "int(11)"},
		{"int(11)", "varchar(20)"},
		{"binary(16)", "binary(20)"},
		{"varbinary(16)", "binary(16)"},
		{"longtext", "json"},
		{"numeric", "numeric(10,2)"},
		{"numeric(10,2)", "numeric(10)"},
		{"timestamp without time zone", "timestamp(3) without time zone"},
		{"timestamp with time zone", "timestamp without time zone"},
		{"numeric(10,2)[]", "numeric(10,1)[]"},
		{"timestamp(3) without time zone[]", "timestamp(0) without time zone[]"},
		{"numeric(10,2)[]", "numeric(10,2)"},
		{"interval second(3)", "interval second(1)"},
		{"interval day to second", "interval day to second(3)"},
		{"double", "double(10,1)"},
		{"float(10,3)", "float(10,1)"},
		{"varchar(30)", "varchar(3)"}, // spaces at the end are cut off
		{"character varying", "character varying(3)"},
		{"text", "tinytext"},
		{"text", "varchar(200)"},
		{"longtext", "text"},
		{"varchar(100)", "tinytext"},
		{"enum('A','b')", "enum('a','b')"},
		{"enum('a, (b)','c')", "enum('c')"},
		{"set('a','b')", "set('b','a')"},
	} {
		if !changesValues(types[0], types[1]) {
			t.Errorf("%s to %s changes nothing", types[0], types[1])
		}
	}
	for _, types := range [][2]string{
		{"decimal(10,2)", "decimal(20,4)"},
		{"int(10) unsigned", "bigint(20)"},
		{"int", "int(11)"},
		{"bigint(20) unsigned zerofill", "bigint"},
		{"bigint(20)", "int(11)"}, // an error of the copy, which names the row
		{"char(5)", "varchar(3)"},
		{"varchar(3)", "varchar(30)"},
		{"varchar(60)", "tinytext"},
		{"varchar(30)", "text"},
		{"tinytext", "varchar(255)"},
		{"text", "longtext"},
		{"character varying(20)[]", "character varying(30)[]"},
		{"numeric(10,2)[]", "numeric[]"},
		{"interval second(3)", "interval second"},
		{"double(10,1)", "double"},
		{"enum('a, (b)','/* c)','it''s')", "enum('it''s','/* c)','a, (b)','d (')"},
		{"enum('a, (b)','/* c)','it''s')", "varchar(20)"},
		{"set('a (b','c)')", "set('a (b','d','c)')"},
		{"enum('a','b')", "enum('b','a','c')"},
		{"enum('a','b')", "varchar(20)"},
		{"json", "longtext"},
		{"uuid", "varchar(36)"},
		{"uuid", "char(36)"},
		{"datetime", "datetime(3)"},
		{"binary(16)", "varbinary(20)"},
		{"tinyblob", "longblob"},
		{"numeric(10,2)", "numeric"},
		{"timestamp(3) without time zone", "timestamp without time zone"},
		{"character varying(20)", "text"},
		{"", "int"},
	} {
		if changesValues(types[0], types[1]) {
			t.Errorf("%s to %s changes values", types[0], types[1])
		}
	}
}

func TestAShardThatCannotTakeTheRowsIsToldWithWhatToDo(t *testing.T) {
	column := func(name, definition string) backend.Column {
		return backend.Column{Name: name, Definition: definition}
	}
	of := backend.Table{
		Name: "orders", Key: "id", Widened: []string{"id"},
		Columns: []backend.Column{column("id", "int unsigned"), column("user_id", "int"), column("total", "decimal(10,2)")},
	}
	for says, columns := range map[string][]backend.Column{
		"":                                  {column("ID", "bigint"), column("total", "decimal(12,2)"), column("user_id", "int")},
		"it has no column total":            {column("id", "bigint"), column("user_id", "int")},
		"its column user_id is generated":   {column("id", "bigint"), column("total", "decimal(10,2)")},
		"it has the column note":            {column("id", "bigint"), column("user_id", "int"), column("total", "decimal(10,2)"), column("note", "text")},
		"generated ids need BIGINT":         {column("id", "int unsigned"), column("user_id", "int"), column("total", "decimal(10,2)")},
		"its column total is decimal(10,0)": {column("id", "bigint"), column("user_id", "int"), column("total", "decimal(10,0)")},
	} {
		shard := backend.Table{Name: "orders_0", Key: "id", Columns: columns}
		if strings.HasSuffix(says, "generated") {
			shard.Generated = []string{"user_id"}
		}
		why, fix := Misfit(of, shard)
		if !strings.Contains(why, says) || (says == "") != (why == "") || (why == "") != (fix == "") {
			t.Errorf("want %q: %q, %q", says, why, fix)
		}
	}
	if why, _ := Misfit(of, backend.Table{Key: "user_id", Columns: []backend.Column{column("id", "bigint"), column("user_id", "int"), column("total", "decimal(10,2)")}}); !strings.Contains(why, "primary key") {
		t.Error(why)
	}
}

// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

const tidb = "tidb"

// TiDB returns the CREATE TABLE statements of the router's tables in TiDB (tidb.sql). TiDB divides
// tables into regions itself, so the rule does not matter: a table with n targets is spread over
// 2^ceil(log2 n) row id ranges, and has as many regions from the start.
//
// definitions has, by logical name, the output of SHOW CREATE TABLE for one of the table's targets.
// A table without a definition, or without a primary key, is refused. Broadcast tables are ordinary
// tables there and are omitted.
func TiDB(r *sharding.Router, definitions map[string]string) (Export, error) {
	var sql strings.Builder
	var errs []error
	for _, l := range layouts(r) {
		statement, err := tidbTable(l, definitions[l.Name])
		errs = append(errs, err)
		sql.WriteString(statement)
	}
	if err := errors.Join(errs...); err != nil {
		return Export{}, err
	}
	notes := []string{"TiDB numbers no rows here: the application's generators continue to make the ids."}
	if len(r.Broadcasts()) > 0 {
		notes = append(notes, "Broadcast tables are ordinary tables in TiDB, and are not in this file: create them as they are.")
	}
	return Export{[]File{{"tidb.sql", sql.String()}}, notes}, nil
}

// The lines of SHOW CREATE TABLE that change. Names and comments occur only inside the lines of
// columns, which start with two spaces and a backquote.
var (
	createLine  = regexp.MustCompile("^CREATE TABLE `(?:[^`]|``)+` \\($")
	primaryLine = regexp.MustCompile("^(  PRIMARY KEY \\((?:`(?:[^`]|``)+`(?:,|\\)))+)(?: USING BTREE)?(,?)$")
	optionsLine = regexp.MustCompile(`^\) ENGINE=\w+(?: AUTO_INCREMENT=\d+)?((?: DEFAULT)?(?: (?:CHARSET|COLLATE)=\w+)*)$`)
	// MySQL's own numbering; the word cannot occur outside of quotes otherwise.
	numbering = regexp.MustCompile(`(?i) AUTO_INCREMENT(,?)$`)
)

func tidbTable(l layout, definition string) (string, error) {
	lines := strings.Split(strings.TrimSpace(definition), "\n")
	bitCount := min(15, bits.Len(uint(len(l.distinct())-1)))
	found := 0
	for i, line := range lines {
		switch {
		case i == 0 && createLine.MatchString(line):
			lines[i] = "CREATE TABLE " + dialect.MySQL{}.Quote(l.Name) + " ("
			found++
		case primaryLine.MatchString(line):
			lines[i] = primaryLine.ReplaceAllString(line, "$1 NONCLUSTERED$2")
			found++
		case i == len(lines)-1 && optionsLine.MatchString(line):
			lines[i] = optionsLine.ReplaceAllString(line, ")$1") + fmt.Sprintf(" SHARD_ROW_ID_BITS=%d PRE_SPLIT_REGIONS=%[1]d;", bitCount)
			found++
		default:
			lines[i] = numbering.ReplaceAllString(line, "$1")
		}
	}
	if found != 3 {
		return "", refuseDefinition(l, definition)
	}
	return strings.Join(lines, "\n") + "\n", nil
}

func refuseDefinition(l layout, definition string) error {
	if definition == "" {
		return &RefusedError{tidb, l.Name, "its columns are not known", "pass the output of SHOW CREATE TABLE for one of its targets"}
	}
	return &RefusedError{
		tidb, l.Name, "its definition is not the output of MySQL's SHOW CREATE TABLE for a table with a primary key and no options except the character set",
		"give the table a primary key, or write its TiDB definition by hand",
	}
}

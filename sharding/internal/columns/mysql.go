// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// sortable lists, by character set, the suffixes of those collations of MySQL and MariaDB whose
// weights compare byte by byte as the server compares the texts. Collations with several levels of
// weights are not in it.
var sortable = map[string]string{
	"utf8mb4": "general_ci unicode_ci unicode_520_ci bin nopad_bin 0900_ai_ci 0900_bin uca1400_ai_ci",
	"utf8mb3": "general_ci unicode_ci unicode_520_ci bin nopad_bin uca1400_ai_ci",
	"latin1":  "swedish_ci german2_ci general_ci general_cs bin",
	"ascii":   "general_ci bin",
}

// isSortable reports whether a collation is one of them. MariaDB before 10.6 writes utf8 for
// utf8mb3.
func isSortable(name string) bool {
	if name == bytewise {
		return true
	}
	charset, rest, _ := strings.Cut(name, "_")
	if charset == "utf8" {
		charset = "utf8mb3"
	}
	return slices.Contains(strings.Fields(sortable[charset]), rest)
}

// bytewise is the collation of BINARY and VARBINARY, which information_schema does not name. A server sorts a VARBINARY by its
// bytes and its length together, so of one that is nearly as long as max_sort_length it does not compare the last bytes.
const bytewise = "binary"

// pads reports whether a collation ignores spaces at the end of a text.
func pads(collation string) bool {
	return collation != bytewise && !strings.Contains(collation, "_nopad_") && !strings.Contains(collation, "_0900_")
}

// texts reads the collations of a table on MySQL and MariaDB and, if r.sorts is set, how its texts, ENUMs and SETs
// compare. It adds the columns that are INVISIBLE.
func (r reader) texts(ctx context.Context, to map[string]catalog.Column) (err error) {
	type text struct {
		column, kind, collation, members, sent, zone string
		long, invisible                              bool
	}
	var found []text // read completely before the next query, for pools of one connection
	var invisible []string
	err = dialect.Each(ctx, r.db, func(rows *sql.Rows) error {
		var t text
		err := rows.Scan(&t.column, &t.kind, &t.collation, &t.members, &t.sent, &t.zone, &t.long, &t.invisible)
		if found = append(found, t); t.invisible {
			invisible = append(invisible, r.Quote(t.column))
		}
		return err
	}, `SELECT COLUMN_NAME, DATA_TYPE, COALESCE(COLLATION_NAME, ''), IF(DATA_TYPE IN ('enum', 'set'), COLUMN_TYPE, ''), @@character_set_connection, IF(@@time_zone = 'SYSTEM', @@system_time_zone, @@time_zone), COALESCE(CHARACTER_OCTET_LENGTH + IF(DATA_TYPE = 'varbinary', 4, 0) > @@max_sort_length, FALSE), EXTRA LIKE '%INVISIBLE%' FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND (COLLATION_NAME IS NOT NULL OR DATA_TYPE IN ('uuid', 'binary', 'varbinary', 'date', 'time', 'datetime', 'timestamp') OR EXTRA LIKE '%INVISIBLE%')`, r.table)
	if err != nil {
		return fmt.Errorf("collations of %s: %w", r.table, err)
	}
	if len(invisible) > 0 {
		if err := r.describeAll(ctx, strings.Join(invisible, ", "), to); err != nil {
			return err
		}
	}
	weights := map[string]catalog.Value{}
	for _, t := range found {
		name := strings.ToLower(t.column)
		c := to[name]
		c.Collation, c.Members = equality(t.kind, t.collation, t.sent, t.zone), t.members
		to[name] = c
		if kind := strings.ToLower(t.kind); (kind == "binary" || kind == "varbinary") && !t.long {
			t.collation = bytewise
		}
		if !r.sorts || t.collation == "" {
			continue
		}
		w, known := weights[t.collation]
		if !known && isSortable(t.collation) {
			if w, err = weight(ctx, r.db, t.collation); err != nil {
				return err
			}
			weights[t.collation] = w
		}
		if !t.long {
			w.Type.Most = 0
		}
		to[name] = compared(to[name], t.kind, t.collation, w)
	}
	return nil
}

// equality returns the Collation of a column whose values are sent in a character set, or are times of
// a zone.
func equality(kind, collation, sent, zone string) string {
	switch kind = strings.ToLower(kind); kind {
	case "binary", "varbinary":
		return catalog.AsBytes
	case "uuid", "date", "time", "datetime":
		return kind
	case "timestamp":
		if zone != "UTC" && !strings.ContainsAny(zone[:min(1, len(zone))], "+-") { // it may have two times with one text
			return ""
		}
		return kind
	case "enum", "set": // compared as numbers with others of the kind
		return ""
	}
	charset, _, _ := strings.Cut(collation, "_")
	if sent != "utf8mb4" && sent != charset { // which may lack a character
		return ""
	}
	return collation
}

// compared returns how values of a column type compare whose texts have these weights.
func compared(c catalog.Column, kind, collation string, weight catalog.Value) catalog.Column {
	switch strings.ToLower(kind) {
	case "enum", "set":
		c.Value = catalog.Value{Type: merge.Type{Kind: merge.Integer}, As: catalog.Number}
		c.Least = weight
	default:
		c.Value = weight
	}
	if weight.As == catalog.Plain {
		c.Unsorted = "it is not known whether the weights of its collation " + collation + " compare as its texts do"
	}
	return c
}

// Compared returns those columns that are compared by the weights of their texts, or by the positions of their members,
// by their names.
func Compared(t catalog.Table) map[string]Order {
	all := map[string]Order{}
	for name, c := range t.Columns {
		if collation := cmp.Or(c.Value.Collation, c.Least.Collation); collation != "" || c.Members != "" {
			all[name] = Order{current(collation), c.Members}
		}
	}
	return all
}

// Order is what the order of a column's values depends on.
type Order struct {
	collation string
	members   string // the type of an ENUM or a SET, "" for others
}

// current returns the name of a collation as MySQL and MariaDB write it now. MariaDB before 10.6 writes utf8.
func current(collation string) string {
	if rest, is := strings.CutPrefix(collation, "utf8_"); is {
		return "utf8mb3_" + rest
	}
	return collation
}

// A Difference is what the order of a column's values depends on and differs in a table.
type Difference struct {
	What           string // OfCollation or OfType
	Own, Is, Table string
}

// What may differ. OfType is that an ENUM or a SET has other members; its collation decides only which member is the least.
const (
	OfCollation = "collation"
	OfType      = "type"
)

// Differing returns, by their names, the columns of some tables of a database that do not have the given order. It reads MySQL and
// MariaDB.
func Differing(ctx context.Context, db dialect.Querier, tables []string, compared map[string]Order) (map[string]Difference, error) {
	args := make([]any, 0, len(tables))
	for _, table := range tables {
		args = append(args, table)
	}
	found := map[string]Difference{}
	err := dialect.Each(ctx, db, func(rows *sql.Rows) error {
		var column, table string
		var is Order
		if err := rows.Scan(&column, &is.collation, &is.members, &table); err != nil {
			return err
		}
		if want, has := compared[column]; has && found[column].What != OfType {
			if what, own, other := want.differs(is); what != "" {
				found[column] = Difference{what, own, other, table}
			}
		}
		return nil
	}, `SELECT LOWER(COLUMN_NAME) AS name, COALESCE(COLLATION_NAME, '`+bytewise+`') AS ordered, CAST(IF(DATA_TYPE IN ('enum', 'set'), COLUMN_TYPE, '') AS BINARY) AS members, MIN(TABLE_NAME)
		FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (?`+strings.Repeat(", ?", len(tables)-1)+`) AND (COLLATION_NAME IS NOT NULL OR DATA_TYPE IN ('binary', 'varbinary'))
		GROUP BY name, ordered, members ORDER BY MIN(TABLE_NAME)`, args...)
	return found, err
}

// differs returns in what another order differs, "" if values are in the same order. The order of members stays as it is if
// members are added behind the last one.
func (o Order) differs(other Order) (what, own, is string) {
	members := func(o Order) string { return strings.TrimSuffix(o.members, ")") + "," }
	switch {
	case !strings.HasPrefix(members(other), members(o)) && !strings.HasPrefix(members(o), members(other)):
		return OfType, cmp.Or(o.members, "no ENUM or SET"), cmp.Or(other.members, "no ENUM or SET")
	case o.collation != "" && current(other.collation) != o.collation: // "" is that of an ENUM whose weights are unknown
		return OfCollation, o.collation, other.collation
	}
	return "", "", ""
}

// wholeTexts is the number of bytes of a text whose weight is requested when a server sorts by the
// whole text. It is small enough that the weight fits into a packet; otherwise the weight is NULL.
const wholeTexts = 4096

// weight returns how texts of a collation compare. A server sorts by the first max_sort_length
// bytes of the weights; MariaDB, in collations with one weight for each character, by that many
// bytes of the text; and MySQL, in collations without padding, by the whole text. MariaDB may group
// by as many bytes as it sorts by.
func weight(ctx context.Context, db dialect.Querier, collation string) (catalog.Value, error) {
	charset, _, _ := strings.Cut(collation, "_")
	v := catalog.Value{Type: merge.Type{Kind: merge.Bytes}, As: catalog.Weight, Collation: collation}
	var space []byte
	var isMariaDB bool
	query := "SELECT WEIGHT_STRING(CONVERT(' ' USING " + charset + ") COLLATE `" + collation + "`), @@max_sort_length, VERSION() LIKE '%MariaDB%'"
	if err := db.QueryRowContext(ctx, query).Scan(&space, &v.Type.Prefix, &isMariaDB); err != nil {
		return v, fmt.Errorf("weight of a space in %s: %w", collation, err)
	}
	if pads(collation) {
		v.Type.Pad = string(space)
	}
	v.Type.Most = v.Type.Prefix
	switch {
	case strings.Contains(collation, "_0900_"):
		v.Type.Prefix, v.Type.Most = 0, wholeTexts
	case isMariaDB && !strings.Contains(collation, "_unicode_") && !strings.Contains(collation, "_uca1400_"):
		v.Type.Prefix *= len(space)
	}
	return v, nil
}

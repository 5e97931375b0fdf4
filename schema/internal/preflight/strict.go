package preflight

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// A table that was made under innodb_strict_mode = OFF may be one that a strict server
// refuses to make again: its row format does not go with its options, or its longest
// row does not fit on a page.

// tried is the temporary table with which a server is asked.
const tried = "shardid_tried"

// draft is what a shard's table will be made of.
type draft struct {
	definition string // as a temporary table without partitions
	refused    string // options that no strict server takes, "" if there are none
	compressed bool   // which no temporary table may be
}

var (
	mysqlPartitioned = regexp.MustCompile(`(?s)\n(/\*!\d+)? ?PARTITION BY .*$`)
	mysqlOptions     = regexp.MustCompile(`(?i)(row_format=\w+ *|key_block_size=\d+ *)+`)
)

// mysqlDraft notes what the shards are asked about later.
func (p tableProbe) mysqlDraft(ctx context.Context) error {
	made, err := p.Database.TargetDefinition(ctx, p.Session, p.shape, tried)
	if err != nil {
		return err
	}
	var format, options string
	err = p.QueryRowContext(ctx, "SELECT COALESCE(ROW_FORMAT, ''), COALESCE(CREATE_OPTIONS, '') FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", p.shape.Name).
		Scan(&format, &options)
	d := draft{
		definition: mysqlPartitioned.ReplaceAllString(strings.Replace(made[0], "CREATE TABLE", "CREATE TEMPORARY TABLE", 1), ""),
		compressed: strings.EqualFold(format, "Compressed"),
	}
	lower := strings.ToLower(options)
	if strings.Contains(lower, "row_format=fixed") || strings.Contains(lower, "key_block_size=") && !d.compressed {
		d.refused = strings.TrimSpace(mysqlOptions.FindString(options))
	}
	p.drafts[p.settings().Name] = d
	return err
}

// strict asks a server with shards whether it would make the table. What it cannot be
// asked about is told.
func (p shardProbe) strict(ctx context.Context, t openjob.TableConfig) error {
	d, known := p.drafts[t.Name]
	on, err := p.Number(ctx, "SELECT @@innodb_strict_mode")
	if err != nil || on == 0 || !known {
		return err
	}
	const fix = "create this table by hand in a form that it takes, or change it on the source, or SET GLOBAL innodb_strict_mode = OFF here until the tables are made"
	if d.refused != "" {
		p.add(RowFormat, Block, fmt.Sprintf("innodb_strict_mode is on, under which no table is made with the options of %s, %s", t.Name, d.refused), fix)
		return nil
	}
	if d.compressed {
		return nil // whose rows are shorter, and whose options go together
	}
	err = p.Exec(ctx, d.definition)
	if err == nil {
		return p.Exec(ctx, "DROP TEMPORARY TABLE "+p.Database.Quote(tried))
	}
	switch {
	case backend.IsMySQL(err, "1118", "1031", "1478", "1005", "1071"):
		p.add(RowFormat, Block, fmt.Sprintf("innodb_strict_mode is on, under which the server does not make the table of %s: %v", t.Name, err), fix)
	case backend.IsMySQL(err, ""): // a right that is missing, or what no temporary table has
		p.add(RowFormat, Info, fmt.Sprintf("whether innodb_strict_mode lets the table of %s be made could not be tried with a temporary table: %v", t.Name, err),
			"nothing, if the source makes its tables under innodb_strict_mode, too; GRANT CREATE TEMPORARY TABLES lets this be tried")
	default:
		return err
	}
	return nil
}

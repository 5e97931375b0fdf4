// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
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
	blockSize  int64  // KEY_BLOCK_SIZE in kB, 0 when the server is to choose it
}

var (
	mysqlPartitioned = regexp.MustCompile(`(?s)\n(/\*!\d+)? ?PARTITION BY .*$`)
	mysqlBlockSize   = regexp.MustCompile(`(?i)key_block_size=(\d{1,6})`)
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
	if size := mysqlBlockSize.FindStringSubmatch(options); size != nil {
		d.blockSize, _ = strconv.ParseInt(size[1], 10, 64) // a few digits
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
		return p.compressible(ctx, t, d, fix)
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

// compressible asks a strict server whether it makes compressed tables of such blocks: its
// pages may be of another size than those of the source. The options of the table go
// together, as the source has the table, and its rows are shorter than others.
func (p shardProbe) compressible(ctx context.Context, t openjob.TableConfig, d draft, fix string) error {
	var pageSize, ownFiles int64
	if err := p.QueryRowContext(ctx, "SELECT @@innodb_page_size, @@innodb_file_per_table").Scan(&pageSize, &ownFiles); err != nil {
		return err
	}
	const largestPage = 16 << 10 // of compressed tables
	var why string
	switch {
	case pageSize > largestPage:
		why = fmt.Sprintf("innodb_page_size is %d, above 16384, with which no table is compressed", pageSize)
	case d.blockSize<<10 > pageSize:
		why = fmt.Sprintf("its KEY_BLOCK_SIZE is %d kB, and innodb_page_size %d bytes", d.blockSize, pageSize)
	case ownFiles == 0:
		why = "innodb_file_per_table is off, under which no table is compressed"
	default:
		return nil
	}
	p.add(RowFormat, Block, fmt.Sprintf("innodb_strict_mode is on, under which the server does not make the compressed table of %s: %s", t.Name, why), fix)
	return nil
}

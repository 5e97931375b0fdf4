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

// A strict server may refuse to create a table that was created under innodb_strict_mode =
// OFF: its row format may not match its options, or its longest row may not fit on a page.

// tried is the name of the temporary table with which a server is tested.
const tried = "shardid_tried"

// draft is the definition of a shard's table.
type draft struct {
	definition string // as a temporary table without partitions
	refused    string // options that every strict server refuses, "" if there are none
	compressed bool   // which temporary tables cannot be: they are tried without that option
	blockSize  int64  // KEY_BLOCK_SIZE in kB, 0 when the server chooses it
}

var (
	mysqlPartitioned = regexp.MustCompile(`(?s)\n(/\*!\d+)? ?PARTITION BY .*$`)
	mysqlBlockSize   = regexp.MustCompile(`(?i)key_block_size=(\d{1,6})`)
	mysqlOptions     = regexp.MustCompile(`(?i)(row_format=\w+ *|key_block_size=\d+ *)+`)
)

// mysqlDraft stores the definition that shards are tested with later.
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

// strict tests whether a server with shards would create the table. What cannot be tested
// is reported.
func (p shardProbe) strict(ctx context.Context, t openjob.TableConfig) error {
	d, known := p.drafts[t.Name]
	on, err := p.Number(ctx, "SELECT @@innodb_strict_mode")
	if err != nil || !known {
		return err
	}
	const fix = "create this table by hand in a form that the server accepts, or change it on the source, or SET GLOBAL innodb_strict_mode = OFF here until the tables are created"
	if d.refused != "" && on != 0 {
		p.add(RowFormat, Block, fmt.Sprintf("innodb_strict_mode is on, under which the server refuses the options of %s: %s", t.Name, d.refused), fix)
		return nil
	}
	definition := d.definition
	if d.compressed {
		definition = mysqlOptions.ReplaceAllString(definition, "")
	}
	err = p.Exec(ctx, definition)
	if err == nil {
		err = p.Exec(ctx, "DROP TEMPORARY TABLE "+p.Database.Quote(tried))
	}
	switch {
	case backend.IsMySQL(err, "1291"):
		p.add(RowFormat, Block, fmt.Sprintf("the server refuses to create the table of %s in strict sql_mode: %v", t.Name, err), "give the ENUM or SET members that its collation tells apart, or create this table by hand with such ones")
	case backend.IsMySQL(err, "1064"):
		p.add(RowFormat, Block, fmt.Sprintf("the server does not understand the definition of %s that the source shows: %v", t.Name, err), "define what the error names otherwise on the source, or create this table by hand")
	case err != nil && !backend.IsMySQL(err, ""):
		return err
	case on == 0:
	case d.compressed:
		return p.compressible(ctx, t, d, fix)
	case backend.IsMySQL(err, "1118", "1031", "1478", "1005", "1071"):
		p.add(RowFormat, Block, fmt.Sprintf("innodb_strict_mode is on, under which the server refuses to create the table of %s: %v", t.Name, err), fix)
	case err != nil: // a missing right, or an option that temporary tables do not have
		p.add(RowFormat, Info, fmt.Sprintf("a trial with a temporary table failed, so it is unknown whether innodb_strict_mode allows the table of %s: %v", t.Name, err),
			"nothing, if the source has innodb_strict_mode on, too; GRANT CREATE TEMPORARY TABLES allows the trial")
	}
	return nil
}

// compressible tests whether a strict server creates compressed tables with such blocks:
// its pages may have another size than the source's. The options fit together, as the
// source has the table, and compressed rows are shorter than others.
func (p shardProbe) compressible(ctx context.Context, t openjob.TableConfig, d draft, fix string) error {
	var pageSize, ownFiles int64
	if err := p.QueryRowContext(ctx, "SELECT @@innodb_page_size, @@innodb_file_per_table").Scan(&pageSize, &ownFiles); err != nil {
		return err
	}
	const largestPage = 16 << 10 // of compressed tables
	var why string
	switch {
	case pageSize > largestPage:
		why = fmt.Sprintf("innodb_page_size is %d, above 16384, so that tables cannot be compressed", pageSize)
	case d.blockSize<<10 > pageSize:
		why = fmt.Sprintf("its KEY_BLOCK_SIZE is %d kB, and innodb_page_size %d bytes", d.blockSize, pageSize)
	case ownFiles == 0:
		why = "innodb_file_per_table is off, so that tables cannot be compressed"
	default:
		return nil
	}
	p.add(RowFormat, Block, fmt.Sprintf("innodb_strict_mode is on, under which the server refuses to create the compressed table of %s: %s", t.Name, why), fix)
	return nil
}

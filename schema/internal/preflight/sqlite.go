// SPDX-License-Identifier: Apache-2.0

package preflight

import "context"

// sqliteDatabase checks a file.
func (p serverProbe) sqliteDatabase(ctx context.Context) error {
	modes, err := p.List(ctx, "PRAGMA journal_mode")
	if err != nil {
		return err
	}
	if len(modes) == 1 && modes[0] != "wal" && modes[0] != "memory" { // a database in memory has no other readers
		p.add(Journal, Warn, "the journal mode is "+modes[0]+", in which readers and writers wait for each other", "PRAGMA journal_mode = WAL")
	}
	if p.Database.Label != "source" {
		return nil
	}
	bytes, err := p.Number(ctx, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
	if err == nil {
		p.size(bytes)
	}
	return err
}

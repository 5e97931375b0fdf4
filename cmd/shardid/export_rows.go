// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

// addLive refuses an export for which rows of the live shards are not valid, and adds to it
// the statements that turn the shards into Vitess' in place.
func addLive(ctx context.Context, progress *term.Progress, l layoutfile.File, out export.Export) (_ export.Export, err error) {
	s, err := l.Open(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, _, err := l.WithoutParents().Current(ctx, s.DBs)
	if err != nil {
		return out, explained(err, s.Mask)
	}
	d, err := watchedDoctor(ctx, progress, r, schema.DoctorConfig{MaxRows: -1, Timeout: 24 * time.Hour, Children: l.Children()})
	if err != nil {
		return out, err
	}
	if err := unmovable(s, d); err != nil {
		return out, err
	}
	if err := export.CheckVitessRows(ctx, r, export.VitessConfig(l.Vitess)); err != nil {
		return out, refusal(err)
	}
	return adopt(ctx, l, r, out)
}

// adopt adds the adoption in place, or a note with the reason why there is none.
func adopt(ctx context.Context, l layoutfile.File, r *sharding.Router, out export.Export) (export.Export, error) {
	names := map[string]string{}
	for _, db := range slices.Sorted(maps.Keys(l.Databases)) {
		server, err := dialect.Detect(ctx, r.DB(db))
		if err != nil {
			return out, err
		}
		if server.Name() != "mysql" {
			out.Notes = append(out.Notes, db+" is not MySQL: its rows have to be copied; there is no adoption in place.")
			return out, nil
		}
		var name string
		if err := r.DB(db).QueryRowContext(ctx, "SELECT DATABASE()").Scan(&name); err != nil {
			return out, err
		}
		names[db] = name
	}
	adoption, err := export.VitessAdoption(r, export.VitessConfig(l.Vitess), names)
	if err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("There is no adoption in place: %v.", err))
		return out, nil
	}
	out.Files, out.Notes = append(out.Files, adoption.Files...), append(out.Notes, adoption.Notes...)
	return out, nil
}

// refusal marks an error about the tables as the user's mistake; a database that does not
// answer is none.
func refusal(err error) error {
	if errors.Is(err, export.ErrInexact) {
		return input.Wrap(err)
	}
	return err
}

// unmovable returns the reasons why Vitess cannot take over the shards: rows that the
// router itself does not find, and tables that were not checked completely.
func unmovable(s layoutfile.Opened, d schema.Diagnosis) error {
	var errs []error
	for _, f := range d.Findings {
		switch f.Code {
		case schema.MisplacedRows, schema.UnplaceableRows, schema.MissingTable, schema.MissingColumn:
			errs = append(errs, input.Errorf("export: vitess: %s: %s; %s", f.Place, s.Mask.Hide(f.Message), f.Fix))
		case schema.Unreachable, schema.NotChecked, schema.PartlyChecked:
			errs = append(errs, fmt.Errorf("export: vitess: not all rows of %s were checked: %s; %s; or give --unchecked if the shards do not exist yet", f.Place, s.Mask.Hide(f.Message), f.Fix))
		}
	}
	return errors.Join(errs...)
}

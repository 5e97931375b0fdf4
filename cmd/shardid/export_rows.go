package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding/export"
)

// checkVitessRows refuses an export that rows of the live shards do not fit.
func (l layoutFile) checkVitessRows(ctx context.Context) (err error) {
	s, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r, err := l.withoutParents().router(s.dbs)
	if err != nil {
		return err
	}
	d, err := schema.Doctor(ctx, r, schema.DoctorConfig{MaxRows: -1, Timeout: 24 * time.Hour, Children: l.children()})
	if err != nil {
		return err
	}
	if err := s.unmovable(d); err != nil {
		return err
	}
	if err := export.CheckVitessRows(ctx, r, export.VitessConfig(l.Vitess)); err != nil {
		return refusal(err)
	}
	return nil
}

// refusal is the user's mistake where it is one of the tables; a database that does
// not answer is none.
func refusal(err error) error {
	if errors.Is(err, export.ErrInexact) {
		return input.Wrap(err)
	}
	return err
}

// unmovable returns what Vitess cannot take over: rows that the router itself does not
// find, and tables that were not seen whole.
func (s shards) unmovable(d schema.Diagnosis) error {
	var errs []error
	for _, f := range d.Findings {
		switch f.Code {
		case schema.MisplacedRows, schema.UnplaceableRows, schema.MissingTable, schema.MissingColumn:
			errs = append(errs, input.Errorf("export: vitess: %s: %s; %s", f.Place, s.mask.hide(f.Message), f.Fix))
		case schema.Unreachable, schema.NotChecked, schema.PartlyChecked:
			errs = append(errs, fmt.Errorf("export: vitess: the rows of %s were not seen whole: %s; %s; or give --unchecked where the shards are not made yet", f.Place, s.mask.hide(f.Message), f.Fix))
		}
	}
	return errors.Join(errs...)
}

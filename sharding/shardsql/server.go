// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/server"
)

// detect returns the dialect and the settings of the databases. It asks the home database once, and
// again after an error, which the callers that have waited for the answer get, too.
func (d *database) detect(ctx context.Context) (*server.Server, error) {
	came := time.Now()
	if err := d.detecting.lock(ctx); err != nil {
		return nil, err
	}
	defer d.detecting.unlock()
	switch {
	case d.server != nil:
		return d.server, nil
	case d.failed.at.After(came):
		return nil, d.failed.err
	}
	found, err := server.Detect(ctx, d.home)
	if err != nil {
		err = fmt.Errorf("shardsql: the home database: %w", err)
		if ctx.Err() == nil { // otherwise it is that of this caller alone
			d.failed.err, d.failed.at = err, time.Now()
		}
		return nil, err
	}
	if u := found.Unfit(); u != nil {
		return nil, &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s is %q in the home database", sharding.ErrSettings, u.Setting, u.Value), Hint: u.Hint}
	}
	d.server = found
	d.places.add(found.Place(), d.home)
	return found, nil
}

// checkSettings refuses a database whose settings differ from those of the home database, and a pool that
// [places.check] refuses. It checks a pool when a connection of it is first used, and again when that is maxAge ago, because
// another server may have taken over. It does not check the home database, where programs may change the settings of connections.
func (d *database) checkSettings(ctx context.Context, pool *sql.DB, on dialect.Querier) error {
	if pool == d.home {
		return nil
	}
	state := d.stateOf(pool)
	if state.agrees.Load() && !state.compared.claims(maxAge) {
		return nil
	}
	differs, place, err := d.server.Compare(ctx, on)
	if err != nil {
		if other, unknown := dialect.Detect(ctx, on); unknown == nil && other.Name() != d.server.Name() {
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s is %s, and the home database %s", sharding.ErrSettings, d.nameOf(pool), other.Kind, d.server.Kind),
				Hint: "give the router and Home databases that understand the same SQL"}
		}
		return fmt.Errorf("shardsql: settings of %s: %w", d.nameOf(pool), err)
	}
	if differs != nil {
		state.agrees.Store(false)
		return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s is %q in %s, and %q in the home database", sharding.ErrSettings, differs.Setting, differs.There, d.nameOf(pool), differs.Here),
			Hint: "set it to the same value in all data source names, or on all servers"}
	}
	settled, err := d.places.check(ctx, d, pool, on, place)
	state.agrees.Store(settled)
	state.compared.renew()
	return err
}

// zoneOffset matches a time zone that every database knows.
var zoneOffset = regexp.MustCompile(`^[+-]\d\d?:\d\d$`)

// zones are the time zones of the statements of a session.
type zones struct{ *session }

// check refuses a statement for several databases if they may convert times differently: if a zone is that of the
// server, or if one of them has not loaded a named zone, or has another of that name.
func (s zones) check(ctx context.Context, p *plan.Plan, args []driver.NamedValue, pools []*sql.DB) error {
	if len(pools) < 2 {
		return nil
	}
	for _, z := range p.Zones {
		zone := z.Name
		if z.Param >= 0 && z.Param < len(args) {
			zone, _ = merge.TextOf(args[z.Param].Value)
		}
		if strings.EqualFold(zone, "system") {
			return p.Refusal(p.Table(), fmt.Errorf("%w: the time zone SYSTEM may be another on each server", sharding.ErrSettings), "name the zone, or write an offset such as '+08:00'")
		}
		if zone == "" || zoneOffset.MatchString(zone) {
			continue
		}
		name := strings.ToLower(zone) // in which case it is written does not matter
		other, noons, err := s.database.differing(pools, name, func(i int) (string, error) { return s.noons(ctx, pools[i], zone) })
		if err != nil {
			return err
		}
		if other > 0 {
			return p.Refusal(p.Table(), fmt.Errorf("%w: noons of the time zone %s are %q in %s, and %q in %s", sharding.ErrSettings, zone, noons[0], s.database.nameOf(pools[0]), noons[other], s.database.nameOf(pools[other])),
				"load the same time zones into all servers with mysql_tzinfo_to_sql, or write an offset such as '+08:00'")
		}
	}
	return nil
}

// noons returns two times of a named time zone, or "" if a database does not know it.
func (s zones) noons(ctx context.Context, pool *sql.DB, zone string) (text string, err error) {
	const query = "SELECT CONCAT_WS(' ', CONVERT_TZ('2025-01-01 12:00:00', '+00:00', ?), CONVERT_TZ('2025-07-01 12:00:00', '+00:00', ?))"
	if err := s.on(pool).QueryRowContext(ctx, query, zone, zone).Scan(&text); err != nil {
		return "", fmt.Errorf("shardsql: time zone %s in %s: %w", zone, s.database.nameOf(pool), err)
	}
	return text, nil
}

// places has the pools of each place: see [server.Server.Place].
type places struct {
	lock  sync.Mutex
	pools map[string][]*sql.DB
}

// add returns the other pools of a place.
func (p *places) add(place string, pool *sql.DB) (others []*sql.DB) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, known := range p.pools[place] {
		if known != pool {
			others = append(others, known)
		}
	}
	if len(others) == len(p.pools[place]) {
		if p.pools == nil {
			p.pools = map[string][]*sql.DB{}
		}
		p.pools[place] = append(p.pools[place], pool)
	}
	return others
}

// check refuses a second pool of one database if both would be asked for the same rows. A copy for reading may be anywhere. If
// the other pool is busy, it is asked at the next statement.
func (p *places) check(ctx context.Context, d *database, pool *sql.DB, on dialect.Querier, place string) (settled bool, err error) {
	if place == "" || routerName(d.router, pool) == "" {
		return true, nil
	}
	settled = true
	for _, other := range p.add(place, pool) {
		if !d.overlap(pool, other) {
			continue
		}
		shared, busy := d.server.Shares(ctx, on, other)
		if !shared {
			settled = settled && busy == nil
			continue
		}
		hint := "give it one name in the router"
		if routerName(d.router, other) == "" {
			hint = "open it once, and give the same *sql.DB to the router and as the home database"
		}
		return false, &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s and %s", sharding.ErrSameDatabase, d.nameOf(pool), d.nameOf(other)), Hint: hint}
	}
	return settled, nil
}

// overlap reports whether two pools may not be of one database: a write of all copies of a broadcast table would be executed
// twice there, or wait for itself, and the rows of a physical table whose name both have would be read twice.
func (d *database) overlap(pool, other *sql.DB) bool {
	if len(d.router.Broadcasts()) > 0 {
		return true
	}
	one, two := routerName(d.router, pool), routerName(d.router, other)
	names := map[string]bool{}
	for _, t := range d.router.Tables() {
		for _, at := range t.Map.Targets() {
			if at.DB == one {
				names[strings.ToLower(at.Table)] = true
			}
		}
	}
	return slices.ContainsFunc(d.router.Tables(), func(t sharding.Table) bool {
		return slices.ContainsFunc(t.Map.Targets(), func(at sharding.Target) bool { return at.DB == two && names[strings.ToLower(at.Table)] })
	})
}

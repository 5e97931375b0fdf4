// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/twophase"
)

// Config configures a [Service]. The parts of a service that are not set are not reported.
type Config struct {
	// Generators are the generators that gormplugin or sqlxhook uses. Generators that report
	// nothing (see [keygen.Reporter]) are omitted. A generator with several names is reported under
	// the first of these: Default as "default", Text and Binary as "text/name" and "binary/name", and
	// the name "" as "default". Two generators must not have one name.
	Generators keygen.Set

	// Statements observes the statements of the router, if its Observer is installed there.
	Statements *Statements

	// Migrations are the migrations that the program watches.
	Migrations *Migrations

	// Transactions is the resolver of transactions over several databases, if this process runs
	// one.
	Transactions *twophase.Resolver

	// Router knows the databases of the shards.
	Router *sharding.Router

	// Horizon is how long generators must be able to continue without their source for the service
	// to be ready. Defaults to 10 seconds.
	Horizon time.Duration
}

const defaultHorizon = 10 * time.Second

// Service reports the metrics and the health of a process. It is safe for concurrent use, and needs
// no Close.
type Service struct {
	cfg        Config
	generators []named
	now        func() time.Time
}

type named struct {
	name string
	of   keygen.Reporter
}

// New returns a Service, or an error that names the invalid setting.
func New(cfg Config) (*Service, error) {
	if err := cfg.Generators.Check(); err != nil {
		return nil, fmt.Errorf("observe: Config.Generators: %w", err)
	}
	if cfg.Horizon < 0 {
		return nil, fmt.Errorf("observe: Config.Horizon is %v; it must not be negative", cfg.Horizon)
	}
	cfg.Horizon = cmp.Or(cfg.Horizon, defaultHorizon)
	s := &Service{cfg: cfg, now: time.Now}
	if !nilness.Is(cfg.Generators.Default) {
		s.add(defaultName, cfg.Generators.Default)
	}
	add(s, "", cfg.Generators.Named)
	add(s, "text/", cfg.Generators.Text)
	add(s, "binary/", cfg.Generators.Binary)
	if err := s.distinct(); err != nil {
		return nil, err
	}
	return s, nil
}

const defaultName = "default"

// distinct returns an error for two generators with one name, because a scrape that has two values of a
// metric with equal labels fails as a whole.
func (s *Service) distinct() error {
	seen := map[string]bool{}
	for _, g := range s.generators {
		if seen[g.name] {
			return fmt.Errorf("observe: Config.Generators has two generators that metrics would both call %q; rename one", g.name)
		}
		seen[g.name] = true
	}
	return nil
}

func add[K any](s *Service, prefix string, generators map[string]keygen.Generator[K]) {
	for _, name := range slices.Sorted(maps.Keys(generators)) {
		s.add(prefix+cmp.Or(name, defaultName), generators[name])
	}
}

func (s *Service) add(name string, generator any) {
	r, reports := generator.(keygen.Reporter)
	if reports && !slices.ContainsFunc(s.generators, func(g named) bool { return same(g.of, r) }) {
		s.generators = append(s.generators, named{name, r})
	}
}

// same reports whether a and b are the same reporter. Reporters of a type that cannot be
// compared are never the same.
func same(a, b keygen.Reporter) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// Router returns the router of the service, nil where it has none.
func (s *Service) Router() *sharding.Router { return s.cfg.Router }

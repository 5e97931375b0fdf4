// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/observe/statuspage"
)

// openTimeout is how long opening a generator may take.
const openTimeout = 10 * time.Second

// longestKey is the width of biz_tag in leaf_alloc.
const longestKey = 128

// Config is the configuration of a Service.
type Config struct {
	DB        *sql.DB       // the tables; the caller's to close
	Layout    keygen.Layout // of snowflake ids
	Namespace string        // of the leases of worker ids
	Guarded   bool          // segments come from guarded tags, which Leaf must not use
	Tags      int           // how many tags may be open
	Batch     int           // how many ids a request may ask for
	Wait      time.Duration // how long a request waits for ids
	Token     *Token        // nil allows everybody
}

// Service answers requests for ids.
type Service struct {
	cfg       Config
	store     *sqlstore.Store
	segments  *pool
	snowflake *pool

	mu      sync.Mutex
	view    http.Handler // of metrics and the page
	watched *observe.Service
	version [2]int // of the pools shown by view
}

// New returns a service. It opens no generator yet.
func New(ctx context.Context, cfg Config) (*Service, error) {
	store, err := sqlstore.New(ctx, cfg.DB)
	if err != nil {
		return nil, err
	}
	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: cfg.Namespace})
	if err != nil {
		return nil, err
	}
	source := store.Tag
	if cfg.Guarded {
		source = store.GuardedTag
	}
	return &Service{
		cfg: cfg, store: store, version: [2]int{-1, -1},
		segments: newPool(cfg.Tags, func(ctx context.Context, tag string) (generator, error) {
			g, err := segment.New(ctx, segment.Config{Source: source(tag)})
			if err != nil {
				return nil, err
			}
			return g, nil
		}),
		snowflake: newPool(1, func(ctx context.Context, _ string) (generator, error) {
			g, err := snowflake.New(ctx, snowflake.Config{Layout: cfg.Layout, Worker: worker})
			if err != nil {
				return nil, err
			}
			return g, nil
		}),
	}, nil
}

// Close closes the generators, which returns the lease of the worker id. Pending requests
// fail.
func (s *Service) Close() error { return errors.Join(s.segments.close(), s.snowflake.close()) }

// Handler returns the handler of all paths.
func (s *Service) Handler() http.Handler {
	inner := http.NewServeMux()
	segments, snowflakes := api{s, s.segment, segmentCode}, api{s, s.anyKey, snowflakeCode}
	for _, end := range []string{"", "/{$}"} { // as Spring does
		inner.HandleFunc("/api/segment/get/{key}"+end, segments.one)
		inner.HandleFunc("/api/snowflake/get/{key}"+end, snowflakes.one)
		inner.HandleFunc("/decodeSnowflakeId"+end, decode(time.Local)) //nolint:gosmopolitan // as Leaf does
	}
	inner.HandleFunc("GET /api/segment/batch/{key}", segments.batch)
	inner.HandleFunc("GET /api/snowflake/batch/{key}", snowflakes.batch)
	inner.HandleFunc("GET /metrics", s.observed)
	inner.HandleFunc("/status/", s.observed)
	inner.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, http.StatusNotFound, "", "No message available")
	})
	var guarded http.Handler = inner
	if s.cfg.Token != nil {
		guarded = s.cfg.Token.guard(inner)
	}
	outer := http.NewServeMux()
	outer.Handle("/", guarded)
	outer.HandleFunc("GET /livez", s.live)
	outer.HandleFunc("GET /readyz", s.ready)
	return outer
}

func (s *Service) segment(ctx context.Context, key string) (generator, error) {
	if len(key) > longestKey || !utf8.ValidString(key) {
		return nil, fmt.Errorf("%w: the key is no text of at most %d bytes", keygen.ErrUnknownTag, longestKey)
	}
	return s.segments.get(ctx, key)
}

// anyKey ignores the key, as Leaf's snowflake ids do not depend on it.
func (s *Service) anyKey(ctx context.Context, _ string) (generator, error) {
	return s.snowflake.get(ctx, "snowflake")
}

// api is a kind of ids.
type api struct {
	*Service

	find func(ctx context.Context, key string) (generator, error)
	code func(err error) int // Leaf's code of an error
}

func (a api) one(w http.ResponseWriter, r *http.Request) {
	ids, err := a.take(r, 1)
	if err != nil {
		failLeaf(w, r, a.code(err), err)
		return
	}
	writeID(w, r, ids[0])
}

// batch answers with an array of texts, because JavaScript's numbers are too small for ids.
func (a api) batch(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil || n < 1 || n > a.cfg.Batch {
		fail(w, r, http.StatusBadRequest, "", fmt.Sprintf("n must be a number from 1 to %d", a.cfg.Batch))
		return
	}
	ids, err := a.take(r, n)
	if err != nil {
		failLeaf(w, r, a.code(err), err)
		return
	}
	texts := make([]string, n)
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	writeJSON(w, http.StatusOK, texts)
}

// take draws ids for the request's key.
func (a api) take(r *http.Request, n int) ([]int64, error) {
	ctx, cancel := context.WithTimeout(r.Context(), a.cfg.Wait)
	defer cancel()
	g, err := a.find(ctx, r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	ids := make([]int64, n)
	return ids, g.Fill(ctx, ids)
}

// observer returns a service of the open generators, and its handlers.
func (s *Service) observer() (*observe.Service, http.Handler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	named, of := s.segments.snapshot()
	leased, and := s.snowflake.snapshot()
	if s.version == [2]int{of, and} {
		return s.watched, s.view, nil
	}
	set := keygen.Set{Named: shown(named), Default: leased["snowflake"]}
	watched, err := observe.New(observe.Config{Generators: set})
	if err != nil {
		return nil, nil, err
	}
	page, err := statuspage.New(statuspage.Config{Service: watched, Store: s.store})
	if err != nil {
		return nil, nil, err
	}
	view := http.NewServeMux()
	view.Handle("/metrics", watched.Metrics())
	view.Handle("/status/", page)
	s.watched, s.view, s.version = watched, view, [2]int{of, and}
	return watched, view, nil
}

// shown returns the generators of tags by their names in metrics. The name "default" is that of the
// snowflake generator, whether it is open or not.
func shown(tags map[string]keygen.Generator[int64]) map[string]keygen.Generator[int64] {
	const taken = "default"
	of, has := tags[taken]
	if !has {
		return tags
	}
	name := "tag " + taken
	for tags[name] != nil {
		name = "tag " + name
	}
	all := maps.Clone(tags)
	delete(all, taken)
	all[name] = of
	return all
}

func (s *Service) observed(w http.ResponseWriter, r *http.Request) {
	_, view, err := s.observer()
	if err != nil {
		fail(w, r, http.StatusInternalServerError, "", err.Error())
		return
	}
	view.ServeHTTP(w, r)
}

func (s *Service) live(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "text/plain;charset=UTF-8", []byte("ok\n"))
}

// ready answers 200, or 503 when ids cannot be given. It shows the reason and the tags only
// to clients that may see the status page.
func (s *Service) ready(w http.ResponseWriter, r *http.Request) {
	health := s.health(r.Context())
	if s.cfg.Token != nil && !s.cfg.Token.allows(r) {
		health.Checks = []observe.Check{}
	}
	status := http.StatusOK
	if health.Status == observe.Down {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, health)
}

// health queries the database only while no generator is open: open generators work for a
// while without it, and report for how long.
func (s *Service) health(ctx context.Context) observe.Health {
	watched, _, err := s.observer()
	if err == nil && len(watched.Generators()) > 0 {
		return watched.Health(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	check := observe.Check{Name: "database", Status: observe.OK}
	if err := errors.Join(err, s.Check(ctx)); err != nil {
		check.Status, check.Message = observe.Down, err.Error()
	}
	return observe.Health{Status: check.Status, Checks: []observe.Check{check}}
}

// Check returns nil if the database has the tables of segments or those of leases. One kind
// suffices, because Leaf's own database has no table of leases.
func (s *Service) Check(ctx context.Context) error {
	_, err := s.store.TagRows(ctx, 1)
	if err == nil {
		return nil
	}
	if _, leases := s.store.LeaseRows(ctx, 1); leases == nil {
		return nil
	}
	return err
}

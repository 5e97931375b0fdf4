// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Status is the state of a service or of one of its parts.
type Status string

// OK, Degraded and Down are the values of a Status.
const (
	OK       Status = "ok"
	Degraded Status = "degraded" // it works, but an operator should look at it
	Down     Status = "down"     // it does not work, or may stop working before the horizon
)

// rank orders statuses, the worst last.
func (s Status) rank() int {
	switch s {
	case OK:
		return 0
	case Degraded:
		return 1
	}
	return 2
}

// Check is the result of one check.
type Check struct {
	Name    string `json:"name"` // "generator order", "database east", "route"
	Status  Status `json:"status"`
	Message string `json:"message,omitempty"` // why it is not OK, and what to do
}

// Health is the state of a service.
type Health struct {
	Status Status  `json:"status"` // the worst of the generators and the route, and of all databases together
	Checks []Check `json:"checks"`
}

const (
	pingTimeout   = 2 * time.Second     // of a database whose caller has more time
	expiryWarning = 30 * 24 * time.Hour // before a layout's time field is used up
)

// Health checks the generators, the route and the databases, the databases in parallel. It takes
// two seconds at most.
//
// A generator is Down when its source or ledger fails and the generator cannot issue keys until the
// horizon ([Config].Horizon) without it, by its keys in memory at the present rate or by the time
// left of its lease. It is Degraded while the source or ledger fails and enough is left, when its
// clock differs from the ledger's, and when its layout ends in less than 30 days.
//
// The route of a migration is Down until it has been read (see sharding.Router.Load).
//
// A database that does not answer is Down. It makes the service Degraded as long as another
// database answers, because the rows of the other shards are still served. It makes the service
// Down when no database answers.
func (s *Service) Health(ctx context.Context) Health {
	h := Health{Status: OK}
	for _, g := range s.Generators() {
		h.add(g.check(s.cfg.Horizon))
	}
	if s.cfg.Router == nil {
		return h
	}
	h.add(s.route())
	databases := s.databases(ctx)
	answer := false
	for _, c := range databases {
		answer = answer || c.Status == OK
	}
	for _, c := range databases {
		h.Checks = append(h.Checks, c)
		if answer && c.Status == Down {
			c.Status = Degraded
		}
		h.worsen(c.Status)
	}
	return h
}

func (h *Health) add(c Check) {
	h.Checks = append(h.Checks, c)
	h.worsen(c.Status)
}

func (h *Health) worsen(to Status) {
	if to.rank() > h.Status.rank() {
		h.Status = to
	}
}

// check returns the state of a generator.
func (g Generator) check(horizon time.Duration) Check {
	c := Check{Name: "generator " + g.Name, Status: OK}
	left := g.Left()
	switch until := g.Expires.Sub(g.Read); {
	case !g.Expires.IsZero() && until < horizon:
		c.Status, c.Message = Down, fmt.Sprintf("its layout ends at %s; change the layout", g.Expires.UTC().Format(time.RFC3339))
	case errors.Is(g.LastError, keygen.ErrUnknownGenerator):
		c.Status, c.Message = Down, g.LastError.Error()
	case g.LastError != nil && left < horizon.Seconds():
		c.Status, c.Message = Down, fmt.Sprintf("%s are left: %v", seconds(left), g.LastError)
	case g.LastError != nil:
		c.Status, c.Message = Degraded, fmt.Sprintf("%s are left: %v", seconds(left), g.LastError)
		if math.IsInf(left, 1) {
			c.Message = g.LastError.Error()
		}
	case !g.Expires.IsZero() && until < expiryWarning:
		c.Status, c.Message = Degraded, fmt.Sprintf("its layout ends at %s; change the layout before", g.Expires.UTC().Format(time.RFC3339))
	}
	return c
}

func seconds(s float64) string {
	return time.Duration(min(s, 1e9) * float64(time.Second)).Round(time.Second / 10).String()
}

func (s *Service) route() Check {
	if s.cfg.Router.Unread() {
		return Check{"route", Down, "the route of a migration has not been read; call Router.Load when the program starts"}
	}
	return Check{Name: "route", Status: OK}
}

// databases pings each database of the router.
func (s *Service) databases(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	names := s.cfg.Router.Databases()
	checks := make([]Check, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		checks[i] = Check{Name: "database " + name, Status: OK}
		all.Go(func() {
			if err := s.cfg.Router.DB(name).PingContext(ctx); err != nil {
				checks[i].Status, checks[i].Message = Down, fmt.Sprintf("it does not answer: %v", err)
			}
		})
	}
	all.Wait()
	return checks
}

// Live returns a handler that answers 200 as long as the process answers at all. It checks nothing;
// the package comment says why.
func (s *Service) Live() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, Health{Status: OK, Checks: []Check{}})
	})
}

// Ready returns a handler that answers with [Service.Health] as JSON: with the code 200 when the
// service is OK or Degraded, and with 503 when it is Down.
func (s *Service) Ready() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := s.Health(r.Context())
		code := http.StatusOK
		if h.Status == Down {
			code = http.StatusServiceUnavailable
		}
		reply(w, code, h)
	})
}

func reply(w http.ResponseWriter, code int, h Health) {
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil { // it contains only strings, so this does not happen
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // an error means that the client closed the connection
}

// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"math"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Generator is the state of a generator at one moment.
type Generator struct {
	keygen.Stats

	Name   string
	Layout *keygen.Layout // nil where its keys have none
	Read   time.Time      // the moment
}

// fromSource reports whether the generator takes its keys from a source, so that they can
// run out.
func (g Generator) fromSource() bool { return g.LeasedUntil.IsZero() && g.Expires.IsZero() }

// Left returns for how many seconds the generator can continue without its source or ledger. With a
// lease, that is the time until the lease ends. Otherwise it is the number of keys in memory
// divided by the present rate. It is infinite while no keys are requested, and for a generator
// without source and ledger.
func (g Generator) Left() float64 {
	switch {
	case !g.LeasedUntil.IsZero():
		return max(g.LeasedUntil.Sub(g.Read).Seconds(), 0)
	case !g.fromSource():
		return math.Inf(1)
	case g.Rate > 0:
		return float64(g.Remaining) / g.Rate
	case g.Remaining > 0:
		return math.Inf(1)
	}
	return 0
}

// generatorMetric is a metric with at most one sample per generator.
type generatorMetric struct {
	name, help string
	typ        Type
	value      func(g Generator) (v float64, has bool)
}

func always(value func(g Generator) float64) func(Generator) (float64, bool) {
	return func(g Generator) (float64, bool) { return value(g), true }
}

func at(t func(g Generator) time.Time) func(Generator) (float64, bool) {
	return func(g Generator) (float64, bool) { return unix(t(g)), !t(g).IsZero() }
}

var generatorMetrics = []generatorMetric{
	{
		"shardid_ids_issued_total", "Keys that a generator has issued.", Counter,
		always(func(g Generator) float64 { return float64(g.Issued) }),
	},
	{
		"shardid_id_waits_total", "Calls that had to wait for the clock or for a reservation.", Counter,
		always(func(g Generator) float64 { return float64(g.Waits) }),
	},
	{
		"shardid_id_failures_total", "Calls for a key that returned an error.", Counter,
		always(func(g Generator) float64 { return float64(g.Failures) }),
	},
	{
		"shardid_reservations_total", "Segments reserved, ticks made in advance, and leases renewed.", Counter,
		always(func(g Generator) float64 { return float64(g.Reservations) }),
	},
	{
		"shardid_reservation_failures_total", "Reservations and renewals that failed; they are retried.", Counter,
		always(func(g Generator) float64 { return float64(g.FailedReserves) }),
	},
	{
		"shardid_reservation_last_duration_seconds", "How long the newest reservation or renewal took.", Gauge,
		always(func(g Generator) float64 { return g.LastReservation.Seconds() }),
	},
	{
		"shardid_source_up", "1 when the newest reservation or renewal succeeded, 0 when it failed.", Gauge,
		always(func(g Generator) float64 { return number(g.LastError == nil) }),
	},
	{
		"shardid_ids_remaining", "Keys in memory, ready to be issued.", Gauge,
		func(g Generator) (float64, bool) { return float64(g.Remaining), g.fromSource() || g.Remaining > 0 },
	},
	{
		"shardid_outage_budget_seconds", "How long the generator can continue without its source or ledger, at the present rate; +Inf while no keys are requested.", Gauge,
		func(g Generator) (float64, bool) { return g.Left(), g.fromSource() || !g.LeasedUntil.IsZero() },
	},
	{
		"shardid_worker_id", "The worker id in use.", Gauge,
		func(g Generator) (float64, bool) { return float64(g.Worker), !g.Expires.IsZero() },
	},
	{
		"shardid_worker_lease_expiry_timestamp_seconds", "When the lease on the worker id ends unless it is renewed.", Gauge,
		at(func(g Generator) time.Time { return g.LeasedUntil }),
	},
	{
		"shardid_layout_exhaustion_timestamp_seconds", "When the time field of the ids is used up.", Gauge,
		at(func(g Generator) time.Time { return g.Expires }),
	},
}

// Generators returns the present state of the service's generators, in the order of their metrics.
func (s *Service) Generators() []Generator {
	now := s.now()
	all := make([]Generator, len(s.generators))
	for i, g := range s.generators {
		all[i] = Generator{Stats: g.of.Stats(), Name: g.name, Read: now}
		if l, has := g.of.(interface{ Layout() keygen.Layout }); has {
			layout := l.Layout()
			all[i].Layout = &layout
		}
	}
	return all
}

func (m generatorMetric) family(generators []Generator) Family {
	f := Family{Name: m.name, Help: m.help, Type: m.typ, Labels: []string{"generator"}}
	for _, g := range generators {
		if v, has := m.value(g); has {
			f.Samples = append(f.Samples, Sample{Values: []string{g.Name}, Value: v})
		}
	}
	return f
}

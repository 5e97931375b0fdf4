package observe

import (
	"time"

	"github.com/shardid/shardid/keygen"
)

// reading is a generator's Stats at a moment.
type reading struct {
	keygen.Stats

	name string
	now  time.Time
}

// fromSource tells whether the generator takes its keys from a source, and so can run
// out of them.
func (r reading) fromSource() bool { return r.LeasedUntil.IsZero() && r.Expires.IsZero() }

// left is for how many seconds the generator can go on without its source or its ledger,
// as fast as it went lately; without end where it asks nobody.
func (r reading) left() float64 {
	switch {
	case !r.LeasedUntil.IsZero():
		return max(r.LeasedUntil.Sub(r.now).Seconds(), 0)
	case r.fromSource():
		return secondsLeft(r.Remaining, r.Rate)
	}
	return forever
}

// generatorMetric is a metric that each generator has one sample of, or none.
type generatorMetric struct {
	name, help string
	typ        Type
	value      func(r reading) (v float64, has bool)
}

func always(value func(r reading) float64) func(reading) (float64, bool) {
	return func(r reading) (float64, bool) { return value(r), true }
}

func at(t func(r reading) time.Time) func(reading) (float64, bool) {
	return func(r reading) (float64, bool) { return unix(t(r)), !t(r).IsZero() }
}

var generatorMetrics = []generatorMetric{
	{
		"shardid_ids_issued_total", "Keys that a generator has handed out.", Counter,
		always(func(r reading) float64 { return float64(r.Issued) }),
	},
	{
		"shardid_id_waits_total", "Calls that had to wait for the clock or for a reservation.", Counter,
		always(func(r reading) float64 { return float64(r.Waits) }),
	},
	{
		"shardid_id_failures_total", "Calls for a key that returned an error.", Counter,
		always(func(r reading) float64 { return float64(r.Failures) }),
	},
	{
		"shardid_reservations_total", "Segments that were reserved, ticks that were made ahead, and leases that were renewed.", Counter,
		always(func(r reading) float64 { return float64(r.Reservations) }),
	},
	{
		"shardid_reservation_failures_total", "Reservations and renewals that failed, and were tried again.", Counter,
		always(func(r reading) float64 { return float64(r.FailedReserves) }),
	},
	{
		"shardid_reservation_last_duration_seconds", "How long the newest reservation or renewal took.", Gauge,
		always(func(r reading) float64 { return r.LastReservation.Seconds() }),
	},
	{
		"shardid_source_up", "1 when the newest reservation or renewal succeeded, 0 when it failed.", Gauge,
		always(func(r reading) float64 { return number(r.LastError == nil) }),
	},
	{
		"shardid_ids_remaining", "Keys in memory, ready to be issued.", Gauge,
		func(r reading) (float64, bool) { return float64(r.Remaining), r.fromSource() || r.Remaining > 0 },
	},
	{
		"shardid_outage_budget_seconds", "How long the generator can go on while its source or ledger is away, at the present rate; +Inf while no keys are asked for.", Gauge,
		func(r reading) (float64, bool) { return r.left(), r.fromSource() || !r.LeasedUntil.IsZero() },
	},
	{
		"shardid_worker_id", "The worker id in use.", Gauge,
		func(r reading) (float64, bool) { return float64(r.Worker), !r.Expires.IsZero() },
	},
	{
		"shardid_worker_lease_expiry_timestamp_seconds", "When the lease on the worker id ends unless it is renewed.", Gauge,
		at(func(r reading) time.Time { return r.LeasedUntil }),
	},
	{
		"shardid_layout_exhaustion_timestamp_seconds", "When the time field of the ids is used up.", Gauge,
		at(func(r reading) time.Time { return r.Expires }),
	},
}

// readings returns the present state of each generator.
func (s *Service) readings() []reading {
	now := s.now()
	all := make([]reading, len(s.generators))
	for i, g := range s.generators {
		all[i] = reading{g.of.Stats(), g.name, now}
	}
	return all
}

func (m generatorMetric) family(readings []reading) Family {
	f := Family{Name: m.name, Help: m.help, Type: m.typ, Labels: []string{"generator"}}
	for _, r := range readings {
		if v, has := m.value(r); has {
			f.Samples = append(f.Samples, Sample{Values: []string{r.name}, Value: v})
		}
	}
	return f
}

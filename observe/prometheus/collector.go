// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardid/shardid/observe"
)

// NewCollector returns a collector of the service's metrics; register it once. It is safe for
// concurrent use. To register the metrics of two services in one registry, give them different
// labels: see prometheus.WrapRegistererWith.
func NewCollector(s *observe.Service) prometheus.Collector {
	c := &collector{service: s, descs: map[string]*prometheus.Desc{}}
	for _, f := range observe.Describe() {
		c.descs[f.Name] = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
	}
	return c
}

type collector struct {
	service *observe.Service
	descs   map[string]*prometheus.Desc // by name
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, f := range c.service.Gather() {
		for _, s := range f.Samples {
			to <- c.metric(f, s)
		}
	}
}

func (c *collector) metric(f observe.Family, s observe.Sample) prometheus.Metric {
	var m prometheus.Metric
	var err error
	switch d := c.descs[f.Name]; f.Type {
	case observe.Histogram:
		m, err = prometheus.NewConstHistogram(d, s.Count, s.Value, buckets(s), s.Values...)
	case observe.Counter:
		m, err = prometheus.NewConstMetric(d, prometheus.CounterValue, s.Value, s.Values...)
	default:
		m, err = prometheus.NewConstMetric(d, prometheus.GaugeValue, s.Value, s.Values...)
	}
	if err != nil {
		return prometheus.NewInvalidMetric(c.descs[f.Name], err)
	}
	return m
}

// buckets returns the buckets of a sample without the last one, which the library adds.
func buckets(s observe.Sample) map[float64]uint64 {
	counts := map[float64]uint64{}
	for _, b := range s.Buckets {
		if !math.IsInf(b.Bound, 1) {
			counts[b.Bound] = b.Count
		}
	}
	return counts
}

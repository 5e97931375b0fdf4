// SPDX-License-Identifier: Apache-2.0

package observe

import "time"

// Type is the type of a metric.
type Type string

// The types of metrics have Prometheus' names.
const (
	Counter   Type = "counter"   // only rises, and begins at 0 with the process
	Gauge     Type = "gauge"     // rises and falls
	Histogram Type = "histogram" // counts observations by their size
)

// Family is a metric with all its samples.
type Family struct {
	Name    string // in Prometheus' form: shardid_ids_issued_total
	Help    string // one sentence
	Type    Type
	Labels  []string // the names of the labels, the same for all samples
	Samples []Sample
}

// Sample is one value of a metric.
type Sample struct {
	Values []string // of the family's Labels, in their order
	// Value is the value of a counter or gauge. For a histogram it is the sum of the observations.
	Value float64
	// Count is the number of observations of a histogram.
	Count uint64
	// Buckets count the observations of a histogram up to each of the family's Bounds. Each bucket
	// includes those before it.
	Buckets []Bucket
}

// Bucket is the number of observations of a histogram that were at most Bound.
type Bucket struct {
	Bound float64
	Count uint64
}

// unix returns a time in seconds since 1970, as Prometheus expects.
func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

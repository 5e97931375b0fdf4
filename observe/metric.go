// SPDX-License-Identifier: Apache-2.0

package observe

import "time"

// Type is the type of a metric.
type Type string

// The types of metrics, with the names that Prometheus has for them.
const (
	Counter   Type = "counter"   // only rises, and begins at 0 with the process
	Gauge     Type = "gauge"     // rises and falls
	Histogram Type = "histogram" // counts observations by their size
)

// Family is a metric with all its samples.
type Family struct {
	Name    string // by Prometheus' conventions: shardid_ids_issued_total
	Help    string // one sentence
	Type    Type
	Labels  []string // the names of the labels, the same for all samples
	Samples []Sample
}

// Sample is one value of a metric.
type Sample struct {
	Values []string // of the family's Labels, in their order
	// Value is that of a counter or gauge. Of a histogram it is the sum of what was
	// observed.
	Value float64
	// Count is how often something was observed, of a histogram.
	Count uint64
	// Buckets count what was observed up to each of the family's Bounds, each with
	// those before, of a histogram.
	Buckets []Bucket
}

// Bucket is how many observations of a histogram were at most Bound.
type Bucket struct {
	Bound float64
	Count uint64
}

// unix is a time as Prometheus has them, in seconds since 1970.
func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// SPDX-License-Identifier: Apache-2.0

// Package prometheus registers the metrics of package observe with the Prometheus client
// library.
//
// A scrape returns what [observe.Service.Gather] returns at that moment, under the same names,
// and queries no database. Programs without the client library do not need this package:
// [observe.Service.Metrics] serves the same text.
//
// It is a module of its own, so that only its users compile the client library: go get github.com/shardid/shardid/observe/prometheus.
package prometheus

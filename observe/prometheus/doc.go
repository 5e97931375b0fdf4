// SPDX-License-Identifier: Apache-2.0

// Package prometheus hands the metrics of package observe to the Prometheus client library.
//
// It promises what [observe.Service.Gather] returns at the moment of a scrape, under the
// same names, and asks no database. Programs without the client library need none of it:
// [observe.Service.Metrics] serves the same text.
//
// It is a module of its own, so that nobody compiles the client library who does not use
// it: go get github.com/shardid/shardid/observe/prometheus.
package prometheus

// SPDX-License-Identifier: Apache-2.0

// Package otel reports statements and generators to OpenTelemetry.
//
// [Statements] makes a span for each statement and records its duration as
// db.client.operation.duration, by the stable part of the semantic conventions for databases
// (version 1.30). [Register] lets a meter provider collect the metrics of package observe.
// Their names are those of [observe.Describe], with a dot after "shardid" and without the
// suffixes that OpenTelemetry's exporter for Prometheus adds. So Prometheus has the same names
// with this exporter and without it.
//
// No value of a statement leaves the process: spans have the statement's fingerprint, in which
// values are question marks, and the outcome instead of the error.
//
// It is a module of its own, so that only its users compile OpenTelemetry:
// go get github.com/shardid/shardid/observe/otel.
package otel

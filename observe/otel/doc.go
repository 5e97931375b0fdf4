// SPDX-License-Identifier: Apache-2.0

// Package otel tells OpenTelemetry of statements and generators.
//
// [Statements] makes a span of each statement, and records its duration as
// db.client.operation.duration, by the semantic conventions for databases (version 1.30,
// where they are stable). [Register] lets a meter provider collect the metrics of package
// observe: their names are those of [observe.Describe] with a point behind "shardid" and
// without the endings that OpenTelemetry's exporter for Prometheus adds, so that a
// Prometheus behind it has the names that it has without it.
//
// It promises that no value of a statement leaves the process: spans have the statement's
// fingerprint, in which values are question marks, and the outcome instead of the error.
//
// It is a module of its own, so that nobody compiles OpenTelemetry who does not use it:
// go get github.com/shardid/shardid/observe/otel.
package otel
